"""A user's program reads no secret of the gate's, nor of any process above it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
POWERLESS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.getuid() == 0 else []
"""Root without root's rights is a user like others, and still reads root's own interpreter."""
SECRET = "swordfish-0815"  # noqa: S105  # of nothing
GATE = """\
import subprocess, sys
import fairgate.cli
from fairgate.__main__ import main
from fairgate.io.machine import program_environment
def command_line(_):
    command, given = [sys.executable, "-I", sys.argv[-1]], program_environment([])
    done = subprocess.run(command, env=given, capture_output=True, text=True)
    print(done.stdout, flush=True)
    return 0
fairgate.cli.main = command_line
sys.exit(main())
"""
"""As the action's: below the process that writes the exit status."""
PROGRAM = f"""\
import os
pid, seen = os.getpid(), 0
while pid > 1:
    try:
        text = open(f"/proc/{{pid}}/environ", "rb").read()
    except OSError:
        text = b""
    if {SECRET!r}.encode() in text:
        print("environment of", pid)
    try:
        for line in open(f"/proc/{{pid}}/maps"):
            ends, rights = line.split()[:2]
            if "[heap]" in line or "[stack]" in line:
                low, high = (int(end, 16) for end in ends.split("-"))
                with open(f"/proc/{{pid}}/mem", "rb") as memory:
                    memory.seek(low)
                    own = pid == os.getpid()
                    if not own and {SECRET!r}.encode() in memory.read(high - low):
                        print("memory of", pid)
    except OSError:
        pass
    status = open(f"/proc/{{pid}}/status").read()
    pid, seen = int(status.split("PPid:")[1].split()[0]), seen + 1
print("looked at", seen)
"""
NEEDS_PROC = pytest.mark.skipif(
    not Path("/proc/self/environ").exists() or not all(map(shutil.which, POWERLESS[:1])),
    reason="asks /proc, as root with setpriv",
)


def last_step(name):
    action = YAML(typ="safe").load((ROOT / name).read_text(encoding="utf-8"))
    return action["runs"]["steps"][-1]["run"]


def found_by_a_program(script):
    """Run a step's script as a user without root rights; return what a program in it finds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gate = folder / "action" / ".github" / "action" / "gate.py"
        gate.parent.mkdir(parents=True)
        (folder / "action" / "merge").mkdir()
        (folder / "program.py").write_text(PROGRAM)
        gate.write_text(GATE)
        (folder / "step.sh").write_text(f"{script} {folder}/program.py\n")
        place = folder / "action" / ("merge" if "/../" in script else "")
        done = subprocess.run(
            [*POWERLESS, "bash", "--noprofile", "--norc", "-eo", "pipefail", f"{folder}/step.sh"],
            capture_output=True, text=True, check=True,
            env={
                "PATH": os.environ["PATH"], "FAIRGATE_GITHUB_TOKEN": SECRET,
                "FAIRGATE_INTERPRETER": sys.executable, "GITHUB_ACTION_PATH": str(place),
            },
        )  # fmt: skip
    return done.stdout


ACTIONS = ["action.yml", "merge/action.yml", "comment/action.yml"]


@pytest.mark.walk(2)
@NEEDS_PROC
@pytest.mark.parametrize("action", ACTIONS)
def test_no_process_above_a_program_shows_the_token(action):
    found = found_by_a_program(last_step(action))
    assert "of" not in found
    assert "looked at" in found


@NEEDS_PROC
def test_a_shell_that_waits_would_show_it():
    """So the test above can fail."""
    assert "environment of" in found_by_a_program(last_step("action.yml").removeprefix("exec "))
