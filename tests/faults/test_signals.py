"""Ctrl-C at any moment: never a traceback, and exit code 130, or the command's own once it is done."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time

import pytest
from functional.conftest import Workspace

START = (
    "import os, sys; from fairgate.__main__ import main; os.write(2, b'started\\n'); "
    "sys.exit(main())"
)
MOMENTS = int(os.environ.get("FAIRGATE_TEST_MOMENTS", "6"))
BEFORE_US = 'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\nKeyboardInterrupt\n'
"""An interrupt that came before `main` was called: Python's, of the program above."""
AFTER = (0.0, 0.005, 0.02, 0.06)
COMMANDS = {
    "help": ["--help"],
    "check": ["check", "policy.yaml"],
    "run": ["run", "policy.yaml", "--out", "out", "--quiet", "--baseline", "none"],
    "rescore": ["rescore", "done", "--out", "again", "--baseline", "none"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a policy, its answers and a run."""
    root = tmp_path_factory.mktemp("signals")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("FAIRGATE_CACHE", str(root / "cache"))
        workspace = Workspace(root)
        workspace.sources(12)
        workspace.policy()
        (root / "answers.jsonl").touch()
        plan = subprocess.run(
            [sys.executable, "-m", "fairgate", "plan", "policy.yaml"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        (root / "plan.jsonl").write_text(plan)
        workspace.plan = lambda: [json.loads(line) for line in plan.splitlines()]
        workspace.answers(lambda _: "positive")
        done = ["run", "policy.yaml", "--out", "done", "--quiet", "--baseline", "none"]
        assert workspace.run(*done) == 0
    return root


def started(folder, arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", START, *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "FAIRGATE_CACHE": str(folder / "cache")},
    )  # fmt: skip
    assert process.stderr.readline() == b"started\n"
    return process


def problem(process):
    """Return what is wrong with how an interrupted process ended; empty where nothing is."""
    said = process.communicate(timeout=120)[1].decode()
    if said == BEFORE_US:
        return ""
    if process.returncode not in (0, 130):
        return f"exit code {process.returncode}: {said[-300:]}"
    return said[-300:] if "Traceback" in said or "Exception ignored" in said else ""


@pytest.mark.walk(1)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupt_from_the_first_import_to_the_end(folder, command):
    began = time.monotonic()  # any moment
    assert started(folder, COMMANDS[command]).communicate()[1] == b""
    life = time.monotonic() - began  # any moment
    wrong = []
    for moment in range(MOMENTS):
        process = started(folder, COMMANDS[command])
        time.sleep(0.001 + 1.05 * life * moment / MOMENTS)  # any moment
        process.send_signal(signal.SIGINT)
        if found := problem(process):
            wrong.append((moment, found))
    assert wrong == [], f"{len(wrong)} of {MOMENTS}"


@pytest.mark.walk(1)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupt_after_the_last_line(folder, command):
    wrong = []
    for delay in AFTER:
        process = started(folder, COMMANDS[command])
        select.select([process.stdout], [], [], 120)
        time.sleep(delay)  # any moment
        process.send_signal(signal.SIGINT)
        if found := problem(process):
            wrong.append((delay, found))
    assert wrong == [], f"{len(wrong)} of {len(AFTER)}"


def test_a_second_interrupt_does_not_wait(folder):
    process = started(folder, COMMANDS["run"])
    for _ in range(50):
        time.sleep(0.01)  # any moment
        process.send_signal(signal.SIGINT)
    assert problem(process) == ""
    assert process.returncode == 130


def test_an_interrupt_that_a_library_turns_into_another_error_is_one(tmp_path):
    code = (
        "import os, signal, sys\n"
        "import fairgate.cli\n"
        "def broken(**_):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        signal.pause()\n"
        "    except KeyboardInterrupt as error:\n"
        "        raise ImportError('initialization failed') from error\n"
        "fairgate.cli.cli.main = broken\n"
        "from fairgate.__main__ import main\n"
        "sys.exit(main([]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (
        130, "fairgate: interrupted; what is stored is kept: run again to go on\n"
    )  # fmt: skip


def test_an_interrupt_while_an_object_is_deleted_ends_the_command():
    code = (
        "import os, signal, sys, time\n"
        "import fairgate.cli\n"
        "class Deleted:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        signal.pause()\n"
        "def goes_on(**_):\n"
        "    Deleted()\n"
        "    time.sleep(60)\n"
        "fairgate.cli.cli.main = goes_on\n"
        "from fairgate.__main__ import main\n"
        "sys.exit(main([]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (130, "")
