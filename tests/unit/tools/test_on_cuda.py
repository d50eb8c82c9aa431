"""A section of the trial on a GPU that takes too long holds nothing afterwards."""

import sys
import time
from pathlib import Path

import pytest
from on_cuda import ends_within

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[1], "w") as file:
    file.write(str(child.pid))
if sys.argv[2] == "waits":
    child.wait()
"""


@pytest.mark.parametrize("how", ["waits", "leaves it running"])
def test_what_a_section_started_ends_with_it(how, tmp_path):
    file = tmp_path / "child"
    ended = ends_within(3, [sys.executable, "-c", PARENT, str(file), how])
    assert ended is (how != "waits")
    child = int(file.read_text())
    stat = Path(f"/proc/{child}/stat")
    for _ in range(600):
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)  # it may end at any moment
    pytest.fail("a process is left")
