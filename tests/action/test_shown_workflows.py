"""What we tell users to write is held to the rules that our own workflows are held to."""

import subprocess
import sys
from pathlib import Path

import pytest
from action.shown_workflows import shown_workflows

COMMANDS = {
    "zizmor": ["--offline", "--strict-collection", "--quiet", "."],
    "check-jsonschema": ["--builtin-schema", "vendor.github-workflows"],
}


@pytest.fixture
def folder(tmp_path):
    """Return the folder of the workflows, our action pinned as the pages ask users to do."""
    found = tmp_path / ".github" / "workflows"
    found.mkdir(parents=True)
    for name, text in shown_workflows():
        (found / name).write_text(text.replace("@v1", f"@{'a' * 40}"), encoding="utf-8")
    return found


def _accepted(program, folder: Path):
    files = sorted(folder.iterdir()) if program == "check-jsonschema" else []
    command = [Path(sys.executable).with_name(program), *COMMANDS[program], *files]
    done = subprocess.run(
        command, cwd=folder.parents[1], capture_output=True, text=True, check=False
    )
    return done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("program", COMMANDS)
def test_shown_workflows_are_accepted(program, folder):
    accepted, said = _accepted(program, folder)
    assert accepted, said


@pytest.mark.parametrize(
    ("program", "old", "new"),
    [
        ("zizmor", "persist-credentials: false", "fetch-tags: false"),
        ("check-jsonschema", "permissions: {}", "permissions: 7"),
    ],
)
def test_a_bad_workflow_is_seen(program, old, new, folder):
    path = folder / "init.yml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    accepted, said = _accepted(program, folder)
    assert not accepted
    assert "init.yml" in said
