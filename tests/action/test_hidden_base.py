"""What a change cannot do: hide the base commit's rules behind a link, a submodule or a checkout."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from action import payloads
from action.repositories import IDENTITY, POLICY, POLICY_PARTS, broken, worse
from action.test_base_commit import files_of, shallow

from fairgate.domain.errors import BaselineError
from fairgate.github.base_commit import Clone

LOOSE = POLICY.replace("max: 0.2", "max: 0.99")
SERVICE = "services/rag"


def linked(history, capsys):
    """Put main's policies behind a link; the branch breaks fairness and loosens its policy."""
    history.git("mv", "policies", "conf")
    (history.root / "policies").symlink_to("conf")
    history.commit("a link")
    history.branch()
    history.answers(broken, capsys)
    history.write("conf/small.yaml", LOOSE)
    history.commit()


def git_at(folder, *arguments):
    done = subprocess.run(
        ["git", "-C", folder, "-c", "protocol.file.allow=always", *arguments],
        capture_output=True, text=True, check=True, env={**os.environ, **IDENTITY},
    )  # fmt: skip
    return done.stdout.strip()


def service(history):
    (history.root / SERVICE).mkdir(parents=True)
    for part in POLICY_PARTS:
        history.git("mv", part, f"{SERVICE}/{part}")
    history.commit("a service")
    history.branch()


def test_a_folder_of_the_base_that_is_a_link_is_no_introduction(job, history, capsys):
    linked(history, capsys)
    assert job.pull(history) == 3
    assert "'policies' in commit" in job.err
    assert "link or a submodule" in job.err


@pytest.mark.parametrize("name", ["policies", "policies/small.yaml", "baselines/small.json"])
def test_a_change_that_would_bring_such_a_link_is_refused(job, history, name):
    """Merged it would stop every later gate; behind it lies a file that no code owner watches."""
    history.branch()
    history.git("mv", name, "elsewhere")
    (history.root / name).symlink_to(os.path.relpath("elsewhere", Path(name).parent))
    history.commit()
    assert job.pull(history) == 3
    assert f"'{name}' is a link in this change" in job.err


def test_nor_one_that_is_a_submodule(job, history, tmp_path, capsys):
    other = tmp_path / "rules"
    other.mkdir()
    git_at(other, "init", "-q", "--initial-branch=main")
    shutil.copy(history.root / "policies/small.yaml", other)
    git_at(other, "add", ".")
    git_at(other, "commit", "-qm", "rules")
    history.git("rm", "-rq", "policies")
    git_at(history.root, "submodule", "add", "-q", str(other), "policies")
    history.commit("a submodule")
    history.branch()
    history.git("rm", "-qf", "policies")
    history.write("policies/small.yaml", LOOSE)
    history.answers(broken, capsys)
    history.commit()
    assert job.pull(history) == 3
    assert "link or a submodule" in job.err


@pytest.mark.parametrize("kind", ["symlink", "submodule"])
def test_nor_where_only_the_api_knows_the_base(job, history, capsys, tmp_path, kind):
    linked(history, capsys)
    base, head = history.git("rev-parse", "main"), history.merge()
    job.workspace = shallow(history, tmp_path, remote=False)
    job.hub.commits[base] = {**files_of(history, base), "policies": {"type": kind}}
    assert job.run("pull_request", payloads.on_pull_request(7, head, base)) == 3
    assert "link or a submodule" in job.err


def test_an_api_that_does_not_say_what_the_folder_is_decides_nothing(
    job, history, capsys, tmp_path
):
    history.git("rm", "-rq", "policies")
    history.commit("no gate")
    history.branch()
    history.write("policies/small.yaml", LOOSE)
    history.answers(broken, capsys)
    history.commit()
    base, head = history.git("rev-parse", "main"), history.merge()
    job.workspace = shallow(history, tmp_path, remote=False)
    job.hub.commits[base] = files_of(history, base)
    event = payloads.on_pull_request(7, head, base)
    assert job.run("pull_request", event) == 0  # a true introduction
    job.hub.fail("GET", "/contents/policies[?]", 500, times=9)
    assert job.run("pull_request", event) == 3


def test_a_file_that_cannot_be_read_is_no_missing_file(history):
    history.commit()
    blob = history.git("rev-parse", "HEAD:policies/small.yaml")
    clone, commit = Clone(history.root), history.git("rev-parse", "HEAD")
    assert clone.file(commit, "policies/small.yaml") == POLICY.encode()
    assert clone.file(commit, "policies/other.yaml") is None
    assert clone.file(commit, "no/such/folder.yaml") is None
    path = history.root / ".git/objects" / blob[:2] / blob[2:]
    path.chmod(0o600)
    path.write_bytes(b"damaged")
    with pytest.raises(BaselineError, match="cannot be read"):
        clone.file(commit, "policies/small.yaml")


def test_a_root_turned_into_a_submodule_is_refused(job, history, capsys, tmp_path):
    """Its own history would have no such policy, and the change would introduce itself."""
    service(history)
    other = tmp_path / "attacker"
    git_at(tmp_path, "clone", "-q", str(history.root), str(other))  # has the base commit
    git_at(other, "checkout", "-q", "--orphan", "mine")
    git_at(other, "rm", "-rfq", ".")
    for part in POLICY_PARTS[2:]:
        shutil.copy(history.root / SERVICE / part, other)
    (other / "policies").mkdir()
    (other / "policies/small.yaml").write_text(LOOSE)
    git_at(other, "add", ".")
    git_at(other, "commit", "-qm", "rules of my own")
    history.git("rm", "-rq", SERVICE)
    git_at(history.root, "submodule", "add", "-q", "-b", "mine", str(other), SERVICE)
    history.commit("a submodule")
    history.git("submodule", "deinit", "-f", SERVICE)
    base, head = history.git("rev-parse", "main"), history.merge()
    git_at(history.root, "submodule", "update", "-q", "--init")
    event = payloads.on_pull_request(7, head, base)
    assert job.run("pull_request", event, FAIRGATE_ROOT=SERVICE) == 3
    assert "is a submodule" in job.err


def another_checkout(history, capsys):
    """Return base and head of a red pull request while main is checked out."""
    base = history.git("rev-parse", "main")
    history.branch()
    history.answers(worse, capsys)
    head = history.commit()
    history.git("checkout", "-q", "main")
    return base, head


def on(name, head, base, hub):
    hub.pulls[7] = payloads.pull_request(7, head, base)
    return {
        "pull_request": payloads.on_pull_request(7, head, base),
        "pull_request_target": payloads.on_pull_request(7, head, base),
        "merge_group": payloads.on_merge_group(7, head, base),
        "issue_comment": payloads.on_issue_comment(7),
        "workflow_run": payloads.on_workflow_run(head),
    }[name]


NAMES = ["pull_request", "pull_request_target", "merge_group", "issue_comment", "workflow_run"]


@pytest.mark.parametrize("name", NAMES)
def test_another_commit_than_the_event_s_gets_no_verdict(job, history, capsys, name):
    base, head = another_checkout(history, capsys)
    assert job.run(name, on(name, head, base, job.hub)) == 2
    assert f"commit {base[:12]} is checked out" in job.err
    assert head[:12] in job.err
    assert "actions/checkout" in job.err
    assert not any("no fairness regression" in comment["body"] for comment in job.hub.of(7))


@pytest.mark.parametrize("name", NAMES)
def test_the_head_itself_is_judged(job, history, capsys, name):
    base, head = another_checkout(history, capsys)
    history.git("checkout", "-q", head)
    assert job.run(name, on(name, head, base, job.hub)) == 1


def test_a_commit_on_top_of_the_head_is_not_its_merge(job, history, capsys):
    base, head = another_checkout(history, capsys)
    history.git("checkout", "-q", head)
    history.commit("made by a step before")
    assert job.run("pull_request", payloads.on_pull_request(7, head, base)) == 2


def test_a_shallow_merge_is_known_by_its_parents_names(job, history, capsys, tmp_path):
    base, head = another_checkout(history, capsys)
    history.git("checkout", "-q", "topic")
    history.merge()
    job.workspace = shallow(history, tmp_path, remote=True)
    gone = subprocess.run(
        ["git", "-C", job.workspace, "rev-parse", "HEAD^2"], capture_output=True, check=False
    )
    assert gone.returncode != 0
    assert job.run("pull_request", payloads.on_pull_request(7, head, base)) == 1
    assert job.run("pull_request", payloads.on_pull_request(7, "c" * 40, base)) == 2
