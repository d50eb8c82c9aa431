"""What the README says of installing, of targets and of the policy; its commands: `test_pages_commands.py`."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "git+https://github.com/org/fairgate@COMMIT"


def block(kind, beginning):
    (found,) = [
        text
        for text in re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL)
        if text.startswith(beginning)
    ]
    return found


COMMANDS = block("bash", "python3 -m venv")


def shell(script, folder, **environment):
    """Run a script as a user does who stops at the first error."""
    return subprocess.run(
        ["bash", "-ec", script], cwd=folder, env={**os.environ, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """An empty repository."""
    empty = tmp_path / "shop"
    empty.mkdir()
    assert shell("git init -q", empty).returncode == 0
    return empty


@pytest.mark.slow
def test_the_commands_install_what_they_run(folder):
    """The whole block; the checkout stands for the address."""
    script = COMMANDS.replace(ADDRESS, ROOT.as_uri())
    assert script != COMMANDS
    done = shell(script, folder, PYTHONPATH="")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_installation_names_an_extra_that_there_is():
    (name, extra, address) = re.search(r"pip install '(\w+)\[(\w+)\] @ (\S+)'", COMMANDS).groups()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert name == project["name"]
    assert extra in project["optional-dependencies"]
    assert address == ADDRESS


def test_the_first_commands_are_targets():
    targets = re.findall(r"^make (\S+)", block("bash", "make"), re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_the_policy_is_one_of_nine_lines(workspace):
    policy = block("yaml", "version")
    assert policy.count("\n") == 9
    (workspace.root / "policy.yaml").write_text(policy)
    assert workspace.run("check", "policy.yaml") == 0, workspace.err


def test_a_reader_is_sent_to_ten_pages_at_most():
    assert len(re.findall(r"\]\((?!#)", TEXT)) <= 10
