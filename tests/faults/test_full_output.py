"""Output that cannot be written: said where it can be, with an exit code that is no verdict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
START = (sys.executable, "-m", "fairgate")


def started(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
    return subprocess.run(
        [*START, *arguments], stdout=stdout, stderr=stderr, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["metrics", "list"]])
def test_a_full_stdout_is_told(arguments):
    with FULL.open("w") as full:
        done = started(*arguments, stdout=full)
    assert done.returncode == 4
    assert "the output cannot be written (No space left on device)" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("arguments", "code"), [(["check", "none.yaml"], 2), (["--version"], 4)])
def test_where_nothing_can_be_said_the_exit_code_still_tells(arguments, code):
    with FULL.open("w") as full:
        assert started(*arguments, stdout=full, stderr=full).returncode == code


def test_a_reader_that_leaves_is_no_failed_gate():
    with subprocess.Popen(
        [*START, "metrics", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(timeout=120) == 4
    assert "Traceback" not in said
    assert "bug" not in said
