"""The workflow that `fairgate init` writes, run word for word on the repository that it wrote."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from action import payloads
from action.step_runner import by_shell
from ruamel.yaml import YAML

from fairgate.cli import main

WHEEL = "own_words-1.0-py3-none-any.whl"


def write_wheel(path):
    """Write a package that the service cannot do without, as a wheel that pip can install offline."""
    info = "own_words-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("own_words.py", "def said(word):\n    return word\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: own-words\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


@pytest.mark.whole
def test_it_installs_the_services_packages_for_the_python_that_the_policy_starts(
    history, real_steps, monkeypatch, tmp_path, capsys
):
    write_wheel(history.root / WHEEL)
    (history.root / "requirements.txt").write_text(f"./{WHEEL}\n")
    command = [
        "init",
        "--name",
        "own",
        "--system",
        "command",
        "--limit",
        "2",
        "--owner",
        "org",
    ]
    assert main([*command, "--terms", "gender"]) == 0, capsys.readouterr()
    service = history.root / "rag_app.py"
    service.write_text(f"import own_words\n{service.read_text()}")
    history.commit()
    workflow = history.root / ".github" / "workflows" / "own.yml"
    job = YAML(typ="safe").load(workflow.read_text())["jobs"]["gate"]
    done = None
    for number, step in enumerate(job["steps"]):
        uses = step.get("uses", "").partition("@")[0]
        if uses == "actions/setup-python":
            made = [sys.executable, "-m", "venv", "--system-site-packages", "--without-pip"]
            subprocess.run([*made, str(tmp_path / "setup")], check=True)
            monkeypatch.setenv("PATH", f"{tmp_path / 'setup' / 'bin'}:{os.environ['PATH']}")
        elif "run" in step:
            script = tmp_path / f"{number}.sh"
            script.write_text(step["run"])
            code, log = by_shell(script, history.root, dict(os.environ))
            assert code == 0, log
        elif uses == "org/fairgate":
            event = payloads.on_push("0" * 40, history.git("rev-parse", "HEAD"))
            given = {**step["with"], "report-only": "true"}
            done = real_steps.on("push", event, inputs=given, code=0)
    asked = Path(done.outputs["run-folder"], "executions.jsonl").read_text().splitlines()
    assert {json.loads(line)["response"] for line in asked} <= {"positive", "negative"}
    assert len(asked) >= 20
