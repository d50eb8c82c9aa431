"""`fairgate init` where it is called, and what it says to do next; the cache stays out of git."""

import subprocess

import pytest
from ruamel.yaml import YAML

from fairgate.cli import cli

EVERYTHING = "*"


@pytest.fixture
def repository(workspace):
    subprocess.run(["git", "init", "--quiet", str(workspace.root)], check=True)
    return workspace


def loaded(path):
    return YAML(typ="safe").load(path.read_text())


def test_in_a_folder_of_a_repository_the_workflow_stands_at_its_top(repository, monkeypatch):
    service = repository.root / "services" / "shop"
    service.mkdir(parents=True)
    monkeypatch.chdir(service)
    assert repository.run("init") == 0
    assert "wrote  ../../.github/workflows/services-shop-rag-fairness.yml" in repository.out
    workflow = loaded(repository.root / ".github/workflows/services-shop-rag-fairness.yml")
    step = next(s for s in workflow["jobs"]["gate"]["steps"] if s.get("id") == "fairgate")
    assert step["with"]["root"] == "services/shop"
    assert step["with"]["policy"] == "policies/rag-fairness.yaml"
    assert "services/shop" in workflow["name"]
    assert not (service / ".github").exists()
    assert "/services/shop/policies/" in (service / "policies/CODEOWNERS.example").read_text()
    assert (service / "policies/rag-fairness.yaml").is_file()


def test_at_the_top_nothing_names_a_root_and_the_workflow_cancels_what_is_superseded(repository):
    assert repository.run("init") == 0
    assert "no git repository" not in repository.out
    path = repository.root / ".github/workflows/rag-fairness.yml"
    assert "root:" not in path.read_text()
    workflow = loaded(path)
    assert set(workflow["on"]) == {"pull_request", "merge_group", "push"}
    assert "pull_request" in workflow["concurrency"]["cancel-in-progress"]
    upload = workflow["jobs"]["gate"]["steps"][-1]
    assert upload["with"]["path"] == "${{ steps.fairgate.outputs.run-folder }}"


def test_a_folder_that_no_workflow_can_name_is_refused(repository, monkeypatch):
    odd = repository.root / "ser vices"
    odd.mkdir()
    monkeypatch.chdir(odd)
    assert repository.run("init") == 2
    assert "'ser vices'" in repository.err
    assert list(odd.iterdir()) == []


def test_without_a_repository_it_is_said(workspace):
    assert workspace.run("init") == 0
    assert "in no git repository" in workspace.out


@pytest.mark.parametrize(
    ("system", "first"),
    [("demo", "fairgate check"), ("models", "fairgate export"), ("recorded", "fairgate check")],
)
def test_the_next_step_works(workspace, system, first):
    workspace.run("init", "--system", system)
    step = workspace.out.split("Next: ")[1].splitlines()[0]
    assert step.startswith(first)
    assert step.split()[1] in cli.list_commands(None)
    if first == "fairgate check":
        assert workspace.run(*step.split()[1:]) == 0


def test_the_cache_has_a_gitignore_of_everything(repository):
    repository.sources(4)
    repository.policy()
    cache = repository.root / ".fairgate"
    assert repository.run("plan", "policy.yaml", "--output", ".fairgate/plan.jsonl") == 0
    assert EVERYTHING in (cache / ".gitignore").read_text().splitlines()
    shown = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"],
        cwd=repository.root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ".fairgate" not in shown.stdout
    (cache / ".gitignore").write_text("mine\n")
    repository.answers("positive")
    repository.run("run", "policy.yaml", "--out", ".fairgate/first")
    assert (cache / ".gitignore").read_text() == "mine\n"


def test_no_gitignore_is_written_through_a_link_or_beside_other_files(workspace):
    outside = workspace.root / "outside.txt"
    (workspace.root / ".fairgate").mkdir()
    (workspace.root / ".fairgate" / ".gitignore").symlink_to(outside)
    (workspace.root / "out").mkdir()
    workspace.gate("positive")
    assert not outside.exists()
    assert not (workspace.root / "out" / ".gitignore").exists()
