"""A merge commit that the author of a change has made is neither its merge nor says its base."""

import pytest
from action import payloads
from action.repositories import POLICY, fair, worse

LOOSE = POLICY.replace("max: 0.2, regression: {margin: 0.02}", "max: 0.9")


@pytest.fixture
def forged(history):
    """Return base and head of a red change whose author has pushed a merge on top meanwhile.

    Its first parent has the author's rules (or none), its files are what they like.
    """
    base = history.git("rev-parse", "main")
    history.branch("rules")
    history.write("policies/small.yaml", LOOSE)
    history.commit("rules of my own")
    history.branch()
    history.answers(worse)
    head = history.commit()
    history.git("checkout", "-q", "rules")
    history.git("merge", "-q", "--no-ff", "-m", "made by hand", head)
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


def test_a_merge_of_the_author_s_own_gets_no_verdict(job, history, forged):
    base, head = forged
    made = history.git("rev-parse", "HEAD")
    for name in NAMES:
        event = about(name, head, base, job.hub, merge_commit_sha="f" * 40)
        for sha in (base, ""):
            assert job.run(name, event, GITHUB_SHA=sha) == 2, name
            assert f"commit {made[:12]} is checked out" in job.err
    assert not any("no fairness regression" in comment["body"] for comment in job.hub.of(7))


def test_a_first_parent_of_the_base_branch_may_be_outdated(job, history):
    """Long ago main was milder; a merge made by hand with that commit brings it back."""
    history.write("policies/small.yaml", LOOSE)
    old = history.commit("mild rules")
    history.write("policies/small.yaml", POLICY)
    base = history.commit("strict rules")
    history.branch()
    history.answers(worse)
    head = history.commit()
    history.git("checkout", "-q", "--detach", old)
    history.git("merge", "-q", "--no-ff", "-X", "ours", "-m", "made by hand", head)
    event = payloads.on_pull_request(7, head, base)
    assert job.run("pull_request", event, GITHUB_SHA=base) == 2


def test_a_head_that_is_a_merge_itself_has_the_event_s_base(job, history, forged):
    base, _ = forged
    head = history.git("rev-parse", "HEAD")
    for name in NAMES:
        assert job.run(name, about(name, head, base, job.hub), GITHUB_SHA="e" * 40) == 1
        assert "max raised from 0.2 to 0.9" in job.summary


def test_github_s_own_merge_is_known_by_its_word(job, history):
    """The base is then the merge's first parent, which is newer than what the event names."""
    stale = history.git("rev-parse", "main")
    history.branch()
    history.answers(fair)
    history.commit()
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
