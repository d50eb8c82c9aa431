"""Ctrl-C at any moment: never a traceback, and exit code 130, or the command's own once it is done."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

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
    root = tmp_path_factory.mktemp("signals")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("FAIRGATE_CACHE", str(root / "cache"))
        workspace = Workspace(root)
        workspace.sources(12)
        workspace.policy()
        assert workspace.gate(lambda _: "positive", out="done") == 0
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


@pytest.mark.whole
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


TURNED = """
    try:
        interrupted()
    except KeyboardInterrupt as error:
        raise ImportError('initialization failed') from error
"""
DELETED = """
    type("Deleted", (), {"__del__": interrupted})()
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (TURNED, "fairgate: interrupted; what is stored is kept: run again to go on\n"),
        (DELETED, ""),
    ],
    ids=["a library turns it into another error", "while an object is deleted"],
)
def test_an_interrupt_in_code_that_swallows_it_ends_the_command(body, said):
    code = f"""
import os, signal, sys, time
import fairgate.cli
def interrupted(_=None):
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()
def command(**_):{body}
fairgate.cli.cli.main = command
from fairgate.__main__ import main
sys.exit(main([]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (130, said)


SLOW = """\
import os, signal, time
os.write(2, b'asked')
def ask(query):
    time.sleep({seconds})
    return "positive"
"""


def slow(folder, seconds):
    """Write a policy whose system takes its time; return the command that runs it."""
    (folder / "slow.py").write_text(SLOW.format(seconds=seconds))
    text = (folder / "policy.yaml").read_text()
    (folder / "slow.yaml").write_text(
        text.replace("{recorded: answers.jsonl}", "{python: 'slow:ask'}")
    )
    return [
        "run", "slow.yaml", "--allow-python", "--quiet", "--baseline", "none", "--out", "slow",
    ]  # fmt: skip


def children(process):
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_nothing_goes_on_where_the_process_is_ended_that_was_started(folder, sent):
    process = started(folder, slow(folder, 60))
    said = b""
    while not said.endswith(b"asked"):
        said += process.stderr.read(1)
    (child,) = children(process)
    process.send_signal(sent)
    assert process.communicate(timeout=60)[1] == b""  # to its end: nobody else holds it
    assert process.returncode == -sent
    assert not Path(f"/proc/{child}/fd/0").exists()


def test_a_terminal_s_interrupt_comes_once(folder):
    """A terminal sends it to both processes; forwarded again it would be the one that never waits."""
    command = slow(folder, 60)
    pid, terminal = os.forkpty()
    if pid == 0:
        os.chdir(folder)
        os.environ["FAIRGATE_CACHE"] = str(folder / "cache")
        os.execv(sys.executable, [sys.executable, "-c", START, *command])  # noqa: S606
    said = b""
    while b"asked" not in said:
        said += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    try:
        while more := os.read(terminal, 1000):
            said += more
    except OSError:  # the terminal's other end is closed
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    assert b"interrupted; what is stored is kept" in said, said
