"""Policy and baseline of the base commit: full clones, shallow ones, none at all."""

import shutil
import subprocess

import pytest
from action import payloads
from action.fake_github import REPOSITORY, TOKEN
from action.repositories import LOOSE, POLICY, worse

from fairgate.github.api import GitHubApi
from fairgate.github.base_commit import BaseCommit, Clone


def shallow(history, tmp_path, *, remote):
    """Clone the merge commit alone, as `actions/checkout` does by default."""
    history.git("branch", "--force", "pull", "HEAD")
    target = tmp_path / "shallow"
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", "--branch", "pull", f"file://{history.root}", target],
        check=True, capture_output=True,
    )  # fmt: skip
    if not remote:
        subprocess.run(
            ["git", "-C", target, "remote", "set-url", "origin", "file:///nowhere"], check=True
        )
    return target


def files_of(history, commit):
    names = history.git("ls-tree", "-r", "--name-only", commit).splitlines()
    return {
        name: subprocess.run(
            ["git", "-C", history.root, "cat-file", "blob", f"{commit}:{name}"],
            check=True, capture_output=True,
        ).stdout
        for name in names
    }  # fmt: skip


def only_merged(job, history, tmp_path, *, remote=False):
    """Give the job the merge of pull request 7 alone, and the API its base; return base and event."""
    base, head = history.git("rev-parse", "main"), history.merge()
    job.workspace = shallow(history, tmp_path, remote=remote)
    job.hub.commits[base] = files_of(history, base)
    return base, payloads.on_pull_request(7, head, base)


SELF_APPROVING = (worse, {"policies/small.yaml": LOOSE})
"""A pull request that loosens its own policy and breaks fairness."""


def test_a_pull_request_cannot_loosen_its_own_policy(job, history):
    history.proposes(*SELF_APPROVING)
    assert job.pull(history) == 1
    body = job.hub.ours(7)[0]["body"]
    for said in ("This change edits", "regression raised from 0.02 to 0.9", "**decides**"):
        assert said in body
    assert "max raised" in job.summary


@pytest.mark.parametrize("remote", [True, False])
def test_nor_in_a_shallow_clone_that_can_fetch_or_where_only_the_api_knows_the_base(
    job, history, tmp_path, remote
):
    history.proposes(*SELF_APPROVING)
    _, event = only_merged(job, history, tmp_path, remote=remote)
    assert job.run("pull_request", event) == 1
    assert "raised" in job.summary
    assert bool(job.hub.made("GET", "/git/blobs/")) != remote


def test_a_named_folder_is_read_by_the_api_too(history, hub, tmp_path):
    history.write("data/deep/s.jsonl", "x")
    commit = history.commit()
    hub.commits[commit] = files_of(history, commit)
    api = GitHubApi(hub.url, TOKEN)
    base = BaseCommit(Clone(tmp_path), commit, api=api, repository=REPOSITORY)
    found = {path: file.content() for path, file in base.below("data")}
    assert found == {"data/deep/s.jsonl": b"x"}


@pytest.mark.parametrize("token", ["", "ghs_unknown"])
def test_a_base_that_cannot_be_had_is_exit_3_and_says_how(job, history, tmp_path, token):
    history.proposes(*SELF_APPROVING)
    base, event = only_merged(job, history, tmp_path)
    del job.hub.commits[base]
    assert job.run("pull_request", event, FAIRGATE_GITHUB_TOKEN=token) == 3
    assert "fetch-depth: 2" in job.err
    assert job.outputs["exit-code"] == "3"


def test_the_merge_commit_s_own_parent_is_newer_than_the_event(job, history):
    history.proposes()
    stale = history.git("rev-list", "--max-parents=0", "main")
    history.git("checkout", "-q", "main")
    history.write("policies/small.yaml", POLICY.replace("max: 0.02", "max: 0.03"))
    fresh = history.commit()
    history.git("checkout", "-q", "topic")
    head = history.merge()
    assert job.run("pull_request", payloads.on_pull_request(7, head, stale)) == 0
    assert fresh[:12] in job.summary


def test_a_reformatted_policy_is_no_change_of_it(job, history):
    history.proposes(files={"policies/small.yaml": "# a comment\n" + POLICY})
    assert job.pull(history) == 0
    assert "This change edits" not in job.summary


@pytest.mark.parametrize("place", ["/etc/hostname", "../outside.jsonl", "link.jsonl"])
def test_no_answers_from_outside_of_the_checkout(job, history, tmp_path, place):
    outside = history.root.parent / "outside.jsonl"
    outside.write_text(history.read("answers.jsonl"))
    (history.root / "link.jsonl").symlink_to(outside)
    history.write("policies/small.yaml", POLICY.replace("answers.jsonl", place))
    history.commit()
    assert job.push(history) == 2
    assert "leads out of" in job.err


def test_a_folder_that_is_no_checkout_has_no_base(job, history):
    shutil.rmtree(history.root / ".git")
    event = payloads.on_pull_request(7, "a" * 40, "b" * 40)
    assert job.run("pull_request", event) == 3
    assert "no git checkout" in job.err
