"""`fairgate init` writes a start that works and overwrites nothing; the hooks of pre-commit."""

import pytest
from ruamel.yaml import YAML

FILES = [
    ".github/workflows/rag-fairness.yml",
    "baselines/README.md",
    "policies/CODEOWNERS.example",
    "policies/rag-fairness.yaml",
]


def written(root):
    return sorted(
        str(path.relative_to(root))
        for folder in (".github", "baselines", "policies")
        for path in (root / folder).rglob("*")
        if path.is_file()
    )


def test_init_writes_a_policy_that_is_valid(workspace):
    assert workspace.run("init", "--yes") == 0
    assert written(workspace.root) == FILES
    assert workspace.run("check", "policies/rag-fairness.yaml") == 0
    workflow = YAML(typ="safe").load((workspace.root / FILES[0]).read_text())
    assert workflow["permissions"] == {}
    assert "${{ github.ref" not in str(workflow["jobs"])


def test_init_again_changes_nothing(workspace):
    workspace.run("init", "--yes")
    (workspace.root / FILES[3]).write_text("mine")
    before = {name: (workspace.root / name).read_bytes() for name in FILES}
    assert workspace.run("init", "--yes") == 0
    assert {name: (workspace.root / name).read_bytes() for name in FILES} == before
    assert "wrote" not in workspace.out


@pytest.mark.parametrize("task", ["sentiment", "toxicity"])
def test_init_for_recorded_answers(workspace, task):
    assert (
        workspace.run("init", "--yes", "--name", "own", "--task", task, "--system", "recorded") == 0
    )
    (workspace.root / "data").mkdir()
    (workspace.root / "data" / "answers.jsonl").touch()
    assert workspace.run("check", "policies/own.yaml") == 0


@pytest.mark.parametrize("name", ["../up", "a b", "", "ä", "a/b", "x" * 61])
def test_init_refuses_names_that_are_no_file_names(workspace, name):
    assert workspace.run("init", "--yes", "--name", name) == 2
    assert not (workspace.root / "policies").exists()


def test_init_writes_through_no_link(workspace, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (workspace.root / "policies").symlink_to(outside)
    assert workspace.run("init", "--yes") == 2
    assert list(outside.iterdir()) == []


def test_the_check_hook_names_every_broken_file(workspace):
    workspace.answers(lambda key: "positive")
    (workspace.root / "bad.json").write_text("{")
    (workspace.root / "bad.yaml").write_text("version: 2\n")
    assert workspace.run("hook", "check", "policy.yaml") == 0
    assert workspace.run("hook", "check", "policy.yaml", "bad.json", "bad.yaml") == 3
    assert "bad.json" in workspace.err
    assert "bad.yaml:1" in workspace.err


def test_the_smoke_hook_says_that_it_is_no_gate(workspace):
    workspace.answers(lambda key: "negative" if "#race" in key else "positive")
    assert workspace.run("run", "policy.yaml", "--out", "out") == 1
    assert workspace.run("hook", "smoke", "policy.yaml") == 0
    assert "smoke only, not the gate" in workspace.out
    assert "5 sources" in workspace.out


def test_the_smoke_hook_fails_where_nothing_runs(workspace):
    (workspace.root / "answers.jsonl").write_text("{")
    assert workspace.run("hook", "smoke", "policy.yaml") == 4
