"""`fairgate init` writes a start that works and overwrites nothing; the hooks of pre-commit."""

import json
import re
import socket
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

FILES = [
    ".github/workflows/rag-fairness.yml", "baselines/README.md", "policies/CODEOWNERS.example",
    "policies/rag-fairness.yaml",
]  # fmt: skip
ROOT = Path(__file__).resolve().parents[2]


def written(root):
    return sorted(
        str(path.relative_to(root))
        for folder in (".github", "baselines", "policies")
        for path in (root / folder).rglob("*")
        if path.is_file()
    )


def test_init_writes_a_policy_that_is_valid(workspace):
    assert workspace.run("init") == 0
    assert written(workspace.root) == FILES
    assert workspace.run("init", "--yes") == 0, "scripts that answer questions beforehand still run"
    assert workspace.run("check", "policies/rag-fairness.yaml") == 0
    workflow = YAML(typ="safe").load((workspace.root / FILES[0]).read_text())
    assert workflow["permissions"] == {}
    assert "${{ github.ref" not in str(workflow["jobs"])
    comments = ROOT / "docs/examples/workflows/.github/workflows/fairness-comment.yml"
    (named,) = re.findall(r"^ +workflows: \[(.+)\]", comments.read_text("utf-8"), re.MULTILINE)
    assert named == workflow["name"], "the workflow of comments waits for it"


def test_init_again_changes_nothing(workspace):
    workspace.run("init")
    (workspace.root / FILES[3]).write_text("mine")
    before = {name: (workspace.root / name).read_bytes() for name in FILES}
    assert workspace.run("init") == 0
    assert {name: (workspace.root / name).read_bytes() for name in FILES} == before
    assert "wrote" not in workspace.out


@pytest.mark.whole
@pytest.mark.parametrize("task", ["sentiment", "toxicity"])
def test_init_for_recorded_answers(workspace, task):
    """The starter can be planned before there are answers; only `run` needs them."""
    command = ("init", "--name", "own", "--task", task, "--system", "recorded")
    assert workspace.run(*command) == 0
    assert "fairgate plan policies/own.yaml" in workspace.out
    assert workspace.run("check", "policies/own.yaml") == 0
    assert workspace.run("plan", "policies/own.yaml") == 0
    keys = [json.loads(line)["key"] for line in workspace.out.splitlines()]
    assert workspace.run("run", "policies/own.yaml") == 4
    assert "fairgate plan" in workspace.err
    labels = ["positive", "negative"] if task == "sentiment" else ["toxic", "non-toxic"]
    answers = workspace.root / "data" / "answers.jsonl"
    for differing in (1, 2):
        said = {key: labels[int(key[5:7]) % differing] for key in keys}
        rows = [json.dumps({"key": key, "response": text}) for key, text in said.items()]
        answers.write_text("\n".join(rows))
        # The starter's gate has no verdict on a system that always says the same.
        code = workspace.run("run", "policies/own.yaml")
        assert code == (5 if differing == 1 else 0), workspace.out + workspace.err
    (workspace.root / "data" / "answers.jsonl").unlink()
    assert workspace.run("run", "policies/own.yaml") == 2
    assert "data/answers.jsonl" in workspace.err


@pytest.mark.walk(1)
@pytest.mark.parametrize("task", ["sentiment", "toxicity"])
@pytest.mark.parametrize("system", ["http", "command", "python"])
def test_init_for_a_system_of_your_own_has_a_verdict_at_once(workspace, system, task, monkeypatch):
    assert workspace.run("init", "--task", task, "--system", system) == 0
    options = ["--allow-python"] if system == "python" else []
    assert f".fairgate/first{' --allow-python' if options else ''}\n" in workspace.out
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    for name in (FILES[3], "rag_app.py"):
        path = workspace.root / name
        text = path.read_text().replace("8000", port).replace("[python,", f"[{sys.executable},")
        if system != "python":  # where each question is a call of another process
            text = text.replace("    perturbations:", "    limit: 20\n    perturbations:")
        path.write_text(text)
    monkeypatch.delitem(sys.modules, "rag_app", raising=False)
    assert workspace.run("check", FILES[3]) == 0, workspace.err
    assert workspace.run("run", FILES[3], "--out", "first", "--quiet", *options) == 0, workspace.err
    record = json.loads((workspace.root / "first" / "run.json").read_text())
    assert record["attribution"] is not None
    measured = {m["metric"] for m in record["measurements"] if m["value"] is not None}
    assert {"asr/retrieval", "rrs/mean"} <= measured
    assert {"answers", "documents"} <= {scan["outcome"] for scan in record["parity"]}


def test_workflows_of_two_policies_do_not_stop_each_other(workspace):
    """Groups span the whole repository, and required checks are known by their name alone."""
    found = []
    for name in ("alpha", "beta"):
        workspace.run("init", "--name", name)
        text = (workspace.root / ".github" / "workflows" / f"{name}.yml").read_text()
        found.append(YAML(typ="safe").load(text))
    assert found[0]["name"] != found[1]["name"]
    assert found[0]["concurrency"]["group"] != found[1]["concurrency"]["group"]
    assert found[0]["jobs"]["gate"]["name"] != found[1]["jobs"]["gate"]["name"]


@pytest.mark.parametrize("name", ["../up", "a b", "", "ä", "a/b", "x" * 61])
def test_init_refuses_names_that_are_no_file_names(workspace, name):
    assert workspace.run("init", "--name", name) == 2
    assert not (workspace.root / "policies").exists()


def test_init_writes_through_no_link(workspace, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (workspace.root / "policies").symlink_to(outside)
    assert workspace.run("init") == 2
    assert list(outside.iterdir()) == []


def test_the_page_about_hooks_names_those_that_there_are():
    page = (ROOT / "docs" / "how-to" / "pull-requests.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(# \.pre-commit-config\.yaml\n.*?)```", page, re.DOTALL)
    shown = YAML(typ="safe").load(block)
    hooks = YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert shown["repos"][0]["hooks"] == [{"id": hook["id"]} for hook in hooks]
