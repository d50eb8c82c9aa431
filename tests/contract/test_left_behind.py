"""What a program under test leaves running ends before anything is written that a job posts."""

import sys
import textwrap
import time

import pytest
from contract.conftest import lives

HEAD = """\
import json, os, signal, subprocess, sys, time
def stays():
    open("pids", "a").write(f"{os.getpid()}\\n")
    while not os.path.exists("out/run.json"):
        time.sleep(0.01)
    open("forged", "w").write("by what was left behind")
    time.sleep(60)
def forked(then):
    if not os.fork():
        os.setsid()
        os.closerange(0, 3)
        then()
        os._exit(0)
def again():
    for _ in range(50):
        if not os.fork():
            os.setsid()
            stays()
        os.wait()
"""
LEAVES = {
    "a process in a session of its own": "forked(stays)",
    "one whose parent has ended": "forked(lambda: forked(stays))",
    "one that is deaf": "forked(lambda: (signal.signal(signal.SIGTERM, signal.SIG_IGN), stays()))",
    "one that is started again": "forked(again)",
    "several": "[forked(stays) for _ in range(20)]",
    "a program": "subprocess.Popen([sys.executable, 'left.py'], start_new_session=True, "
    "stdin=-3, stdout=-3, stderr=-3)",
}
COMMAND = """
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], "answer": "positive", "documents": [{"id": "a", "text": "x"}]}), flush=True)
"""


@pytest.mark.walk(3)
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process is given such children")
@pytest.mark.parametrize("way", LEAVES)
def test_nothing_that_a_program_leaves_outlives_the_run(place, way):
    (place.root / "left.py").write_text(f"{HEAD}\nstays()\n")
    waits = "\nwhile not os.path.exists('pids'):\n    time.sleep(0.01)\n"
    (place.root / "app.py").write_text(HEAD + LEAVES[way] + waits + textwrap.dedent(COMMAND))
    code = place.gate({"command": [sys.executable, "app.py"]})
    assert (place.root / "out" / "run.json").exists(), (code, place.err)
    started = (place.root / "pids").read_text().split()
    assert [number for number in started if lives(number)] == []
    time.sleep(0.1)  # lower bound: what still ran would have written by then
    assert not (place.root / "forged").exists()
