"""What a change cannot do: hide the base commit's rules behind a link, a submodule, a checkout, or a
merge commit of its author's own, which is neither its merge nor says its base.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from action import payloads
from action.repositories import IDENTITY, LOOSE, POLICY, POLICY_PARTS, broken, fair, worse
from action.test_base_commit import only_merged, shallow

from fairgate.domain.errors import BaselineError
from fairgate.github.base_commit import BaseCommit, Clone

SERVICE = "services/rag"


def linked(history):
    history.git("mv", "policies", "conf")
    (history.root / "policies").symlink_to("conf")
    history.commit("a link")
    history.proposes(broken, {"conf/small.yaml": LOOSE})


def git_at(folder, *arguments):
    done = subprocess.run(
        ["git", "-C", folder, "-c", "protocol.file.allow=always", *arguments],
        capture_output=True, text=True, check=True, env={**os.environ, **IDENTITY},
    )  # fmt: skip
    return done.stdout.strip()


def test_a_folder_of_the_base_that_is_a_link_is_no_introduction(job, history):
    linked(history)
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


def test_nor_one_that_is_a_submodule(job, history, tmp_path):
    other = tmp_path / "rules"
    git_at(tmp_path, "init", "-q", "--initial-branch=main", str(other))
    shutil.copy(history.root / "policies/small.yaml", other)
    git_at(other, "add", ".")
    git_at(other, "commit", "-qm", "rules")
    history.git("rm", "-rq", "policies")
    git_at(history.root, "submodule", "add", "-q", str(other), "policies")
    history.commit("a submodule")
    history.branch()
    history.git("rm", "-qf", "policies")
    history.write("policies/small.yaml", LOOSE)
    history.answers(broken)
    history.commit()
    assert job.pull(history) == 3
    assert "link or a submodule" in job.err


@pytest.mark.parametrize("kind", ["symlink", "submodule"])
def test_nor_where_only_the_api_knows_the_base(job, history, tmp_path, kind):
    linked(history)
    base, event = only_merged(job, history, tmp_path)
    job.hub.commits[base]["policies"] = {"type": kind}
    assert job.run("pull_request", event) == 3
    assert "link or a submodule" in job.err


def test_an_api_that_does_not_say_what_the_folder_is_decides_nothing(job, history, tmp_path):
    history.git("rm", "-rq", "policies")
    history.commit("no gate")
    history.branch()
    history.write("policies/small.yaml", LOOSE)
    history.answers(broken)
    history.commit()
    _, event = only_merged(job, history, tmp_path)
    assert job.run("pull_request", event) == 0  # a true introduction
    job.hub.fail("GET", "/git/trees/", 500, times=9)
    assert job.run("pull_request", event) == 3


def test_a_file_that_cannot_be_read_is_no_missing_file(history):
    history.commit()
    blob = history.git("rev-parse", "HEAD:policies/small.yaml")
    head = history.git("rev-parse", "HEAD")
    commit = BaseCommit(Clone(history.root), head, api=None, repository="")
    assert commit.read("policies/small.yaml") == POLICY.encode()
    assert commit.read("policies/other.yaml") is None
    assert commit.read("no/such/folder.yaml") is None
    path = history.root / ".git/objects" / blob[:2] / blob[2:]
    path.chmod(0o600)
    path.write_bytes(b"damaged")
    with pytest.raises(BaselineError, match="cannot be read"):
        commit.read("policies/small.yaml")


def test_a_root_turned_into_a_submodule_is_refused(job, history, tmp_path):
    """Its own history would have no such policy, and the change would introduce itself."""
    history.move(SERVICE)
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


def another_checkout(history):
    base = history.git("rev-parse", "main")
    head = history.proposes(worse)
    history.git("checkout", "-q", "main")
    return base, head


def about(name, head, base, hub, **more):
    pull = {**payloads.pull_request(7, head, base), **more}
    hub.pulls[7] = pull
    return {
        "issue_comment": payloads.on_issue_comment(7),
        "workflow_run": payloads.on_workflow_run(head),
        "merge_group": payloads.on_merge_group(7, head, base),
    }.get(name, {**payloads.on_pull_request(7, head, base), "pull_request": pull})


NAMES = [
    "pull_request", "pull_request_target", "pull_request_review", "issue_comment", "workflow_run",
    "merge_group",
]  # fmt: skip


@pytest.mark.walk(2)
@pytest.mark.parametrize("name", NAMES)
def test_the_head_itself_is_judged_and_no_other_commit(job, history, name):
    base, head = another_checkout(history)
    for commit, code in (("main", 2), (head, 1)):
        history.git("checkout", "-q", commit)
        assert job.run(name, about(name, head, base, job.hub)) == code
    history.commit("made by a step before")
    assert job.run("pull_request", payloads.on_pull_request(7, head, base)) == 2


def test_a_shallow_merge_is_known_by_its_parents_names(job, history, tmp_path):
    base, head = another_checkout(history)
    history.git("checkout", "-q", "topic")
    history.merge()
    job.workspace = shallow(history, tmp_path, remote=True)
    with pytest.raises(subprocess.CalledProcessError):
        git_at(job.workspace, "rev-parse", "HEAD^2")
    assert job.run("pull_request", payloads.on_pull_request(7, head, base)) == 1
    assert job.run("pull_request", payloads.on_pull_request(7, "c" * 40, base)) == 2


@pytest.fixture
def forged(history):
    """Return base and head of a red change whose author has pushed a merge on top meanwhile.

    Its first parent has the author's rules (or none), its files are what they like.
    """
    base = history.git("rev-parse", "main")
    history.branch("rules")
    history.write("policies/small.yaml", LOOSE)
    history.commit("rules of my own")
    head = history.proposes(worse)
    history.git("checkout", "-q", "rules")
    history.git("merge", "-q", "--no-ff", "-m", "made by hand", head)
    return base, head


def test_a_merge_of_the_author_s_own_gets_no_verdict(job, history, forged):
    base, head = forged
    made = history.git("rev-parse", "HEAD")
    for name in NAMES:
        event = about(name, head, base, job.hub, merge_commit_sha="f" * 40)
        for sha in (base, ""):
            assert job.run(name, event, GITHUB_SHA=sha) == 2, name
            assert f"commit {made[:12]} is checked out" in job.err
    assert not any("nobody is treated differently" in comment["body"] for comment in job.hub.of(7))


@pytest.mark.whole
def test_a_head_that_is_a_merge_itself_has_the_event_s_base(job, history, forged):
    base, _ = forged
    head = history.git("rev-parse", "HEAD")
    for name in NAMES:
        assert job.run(name, about(name, head, base, job.hub), GITHUB_SHA="e" * 40) == 1
        assert "max raised from 0.2 to 0.9" in job.summary


@pytest.mark.whole
def test_github_s_own_merge_is_known_by_its_word(job, history):
    """The base is then the merge's first parent, which is newer than what the event names."""
    stale = history.git("rev-parse", "main")
    history.proposes(fair)
    history.git("checkout", "-q", "main")
    history.write("policies/small.yaml", POLICY.replace("max: 0.02", "max: 0.03"))
    fresh = history.commit()
    history.git("checkout", "-q", "topic")
    head = history.merge()
    merge = history.git("rev-parse", "HEAD")
    for name in ("pull_request_target", "issue_comment", "workflow_run"):
        event = about(name, head, stale, job.hub, merge_commit_sha=merge)
        assert job.run(name, event, GITHUB_SHA=fresh) == 0, job.err
        assert fresh[:12] in job.summary
        event = about(name, head, stale, job.hub, merge_commit_sha=None)
        assert job.run(name, event, GITHUB_SHA=fresh) == 2, name
