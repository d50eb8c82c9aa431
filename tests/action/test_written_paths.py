"""What the action writes stays in the workspace or the runner's folder, whatever a change commits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from action.repositories import POLICY

ROOT = Path(__file__).parents[2]
ACTIONS = ("action.yml", "merge/action.yml", "comment/action.yml")
WRITTEN = {"report-dir"}
"""Folders in the workspace that the action writes to; each way out of them is tried below."""
OUTSIDE = {"cache-dir", "package-cache", "shards", "python"}
"""Refused where they lie in the checkout: test_believed_folders, test_action_environment and
test_merge_action show it."""
READ = {"policy", "root"}
"""Read by their own name in the checkout: test_action."""
NO_PATH = {
    "device", "comment", "comment-key", "comment-digest", "baseline-change", "report-only", "shard",
    "answers-artifact", "artifact", "attribution", "pr-number", "github-token",
}  # fmt: skip


def test_every_input_is_known_to_name_a_path_or_none():
    named = set()
    for action in ACTIONS:
        inputs = (ROOT / action).read_text().split("inputs:", 1)[1].split("outputs:", 1)[0]
        named |= set(re.findall(r"^  ([a-z-]+):", inputs, re.MULTILINE))
    assert named == WRITTEN | OUTSIDE | READ | NO_PATH


def linking(name, target):
    """Return what puts a link below the checkout that leads to somewhere, by the folder outside."""

    def make(root, outside):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).symlink_to(target(outside), target_is_directory=True)

    return make


def inside(root, outside):
    (root / "docs").mkdir()
    (root / "docs" / "x").write_text("x")
    (root / "rep").symlink_to("docs", target_is_directory=True)


def file_out(name):
    def make(root, outside):
        for folder in (root / "rep", root / "rep" / "small", root / "rep" / "other"):
            folder.mkdir()
            (folder / name).symlink_to(outside / "kept.txt")

    return make


WAYS = {
    "folder": linking("rep", lambda outside: outside),
    "parent": linking("rep", lambda outside: outside.parent),
    "policy": linking("rep/small", lambda outside: outside),
    "other policy": linking("rep/other", lambda outside: outside),
    "dangling": linking("rep", lambda outside: outside / "new"),
    "inside": inside,
    "own": linking("rep", lambda outside: "rep"),
    **{name: file_out(name)
       for name in ("run.json", "report.html", "parts.json", ".gitignore")},
}  # fmt: skip


def snapshot(folder):
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.mark.walk(3)
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_no_committed_link_leads_out(history, steps, tmp_path, way, several):
    outside = tmp_path / "elsewhere" / "reports"
    outside.mkdir(parents=True)
    (outside / "kept.txt").write_text("kept")
    if several:
        history.write("policies/other.yaml", POLICY.replace("name: small", "name: other"))
        history.commit("a second policy")
    history.branch()
    WAYS[way](history.root, outside)
    history.commit()
    before = snapshot(outside.parent)
    named = "rep/more" if way == "parent" else "rep"
    policies = "policies/small.yaml\npolicies/other.yaml" if several else "policies/small.yaml"
    done = steps.pull(inputs={"report-dir": named, "policy": policies})
    assert snapshot(outside.parent) == before
    assert done.code == 2, done.log
    assert done.outputs["outcome"] == "error"
    refused = ("a link in the checkout", "inside the checkout", "git tracks")
    assert any(words in done.log for words in refused), done.log


def test_several_policies_are_reported_below_the_folder(history, steps):
    history.write("policies/other.yaml", POLICY.replace("name: small", "name: other"))
    history.commit("a second policy")
    history.proposes()
    policies = "policies/small.yaml\npolicies/other.yaml"
    done = steps.pull(inputs={"report-dir": "a/b", "policy": policies})
    assert set(json.loads(done.outputs["results"])) == {"small", "other"}
    for name in ("small", "other"):
        assert (history.root / "a" / "b" / name / "run.json").is_file()
