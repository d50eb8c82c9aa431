"""Whose files decide under which event: a pull request's never, however it is named."""

import pytest
from action import payloads
from action.fake_github import EVENTS, TOKEN
from action.repositories import LOOSE, fair, worse

from fairgate.domain.errors import UsageError
from fairgate.github.event import (
    PULL_REQUEST_EVENTS,
    base_commit,
    github_api,
    read_event,
    read_roots,
    refuse_untrusted,
    resolved,
)

NO_TOKEN = {"FAIRGATE_GITHUB_TOKEN": ""}


class Change:
    """A pull request that is worse and loosens its own policy, so that it would pass by itself."""

    def __init__(self, history, hub):
        self.head = history.proposes(worse, {"policies/small.yaml": LOOSE})
        self.base = history.git("rev-parse", "main")
        hub.pulls[7] = payloads.pull_request(7, self.head, self.base)


@pytest.fixture
def change(history, hub):
    return Change(history, hub)


def by_base(job):
    """Return whether the base decided, and the change's own rules would have let it pass."""
    said = ("max raised from 0.2 to 0.9", "| this change | ✅ PASS")
    return all(words in job.summary for words in said)


@pytest.mark.whole
def test_a_dispatch_that_names_a_pull_request_is_about_it(job, change):
    sent = payloads.pull_request(7, change.head, change.head)  # its sender says no base
    for named in ({"number": 7}, 7, "7", sent):
        payload = payloads.on_dispatch(pull_request=named)
        assert job.run("repository_dispatch", payload, GITHUB_SHA=change.head) == 1
        assert by_base(job)
        assert job.run("repository_dispatch", payload, GITHUB_SHA=change.head, **NO_TOKEN) == 2


OWN = ["push", "schedule", "workflow_dispatch", "repository_dispatch", "release"]


@pytest.mark.whole
def test_a_number_from_the_workflow_names_the_base(job, change):
    payload = payloads.on_dispatch()
    number = {"FAIRGATE_PR_NUMBER": "7"}
    for name in OWN:
        assert job.run(name, payload, GITHUB_SHA=change.head, **number) == 1, name
        assert by_base(job)
        assert len(job.hub.ours(7)) == 1
        assert job.run(name, payload, GITHUB_SHA=change.head, **number, **NO_TOKEN) == 2, name
        assert "GitHub could not be asked" in job.err


@pytest.mark.whole
def test_a_commit_decides_for_itself_only_where_the_run_is_on_it(job, history, change):
    payload = payloads.on_dispatch()
    for name in OWN:
        assert job.run(name, payload, GITHUB_SHA=change.base) == 2, name
        assert f"{change.head[:12]} is checked out" in job.err
        assert f"`ref: {change.base}`" in job.err
        assert job.run(name, payload, GITHUB_SHA="") == 2, name
    history.git("checkout", "-q", "main")
    for name in OWN:
        assert job.run(name, payload, GITHUB_SHA=change.base) == 0, name


def test_a_fork_s_number_meets_no_writing_token(job, change):
    job.hub.pulls[7] = payloads.pull_request(7, change.head, change.base, repo="stranger/shop")
    for name in ("workflow_dispatch", "push", "repository_dispatch"):
        number = {"FAIRGATE_PR_NUMBER": "7"}
        assert job.run(name, payloads.on_dispatch(), GITHUB_SHA=change.head, **number) == 2
        assert "refusing to run" in job.err


def anything(head, base, ref, **more):
    """Return a payload with all that any of GitHub's events says of a commit."""
    pull = payloads.pull_request(7, head, base)
    return {
        **payloads.on_dispatch(), **payloads.on_push(base, head),
        **payloads.on_workflow_run(head, branch=ref.rpartition("/")[2]),
        "check_run": {"head_sha": head}, "sha": head,
        "release": {"tag_name": "v1", "target_commitish": "topic"}, "ref": ref,
        "merge_group": payloads.on_merge_group(7, head, base)["merge_group"],
        "issue": {"number": 7, "pull_request": {"url": "x"}}, "comment": {"id": 1},
        "pull_request": pull, "number": 7, **more,
    }  # fmt: skip


REFS = ["refs/heads/topic", "refs/tags/v1", "refs/tags/main", "refs/heads/Main", "main", ""]
NAMELESS = {**payloads.repository(), "default_branch": None}


def deciding(job, name, payload, ref, sha, *, token=TOKEN, number=None):
    """Name the commit that decides under an event: None, where the one that is checked out does."""
    environment = job.environment(name, payload, GITHUB_SHA=sha, GITHUB_REF=ref)
    api = github_api(read_roots(environment), token)
    event = resolved(read_event(environment, number), api)
    refuse_untrusted(event)
    base = base_commit(event, job.workspace, job.workspace, api)
    return base and base.commit


@pytest.mark.walk(2)
@pytest.mark.parametrize("sees", ["open", "closed", "fails", "no token", "no default branch"])
def test_whatever_event_carries_a_commit_the_base_decides_or_nothing(job, change, sees):
    """Every event of GitHub's, on every kind of ref but the default branch."""
    wrong = []
    if sees == "closed":  # a pull request may be opened for the commit once its check is green
        job.hub.pulls[7]["state"] = "closed"
    more = {"repository": NAMELESS} if sees == "no default branch" else {}
    token = "" if sees == "no token" else TOKEN
    for name in sorted({str(event) for event in EVENTS} | PULL_REQUEST_EVENTS):
        for ref in REFS:
            for cause in ("pull_request", "push", "release") if name == "workflow_run" else ("",):
                payload = anything(change.head, change.base, ref, **more)
                payload["workflow_run"]["event"] = cause
                job.hub.faults.clear()
                if sees == "fails":
                    job.hub.fail("GET", "/pulls", 404, times=9)
                try:
                    commit = deciding(job, name, payload, ref, change.head, token=token)
                except UsageError:
                    continue
                if commit != change.base:
                    wrong.append((name, ref, cause, commit))
    assert wrong == []


@pytest.mark.walk(1)
@pytest.mark.parametrize("name", ["push", "workflow_dispatch", "release", "schedule"])
def test_a_branch_with_a_pull_request_is_judged_by_its_base(job, change, name):
    payload = anything(change.head, change.base, "refs/heads/topic")
    assert job.run(name, payload, GITHUB_REF="refs/heads/topic") == 1
    assert by_base(job)
    assert len(job.hub.ours(7)) == 1
    job.hub.pulls[7]["state"] = "closed"
    assert job.run(name, payload, GITHUB_REF="refs/heads/topic") == 1
    assert by_base(job)
    assert "judged against the default branch" in job.summary
    assert job.run(name, payload, GITHUB_REF="refs/heads/topic", **NO_TOKEN) == 2
    assert "unknown which base decides" in job.err


def test_what_is_merged_decides_for_itself_on_any_ref(job, history, change):
    """A release is of a commit that the default branch has, perhaps of some days ago."""
    history.git("checkout", "-q", "main")
    merged = history.commit("merged")
    newest = history.commit("newest")
    history.git("checkout", "-q", merged)
    job.hub.histories[newest] = [change.base, merged, newest]
    payload = anything(merged, change.base, "refs/tags/v1")
    for name in ("release", "push", "workflow_dispatch"):
        assert deciding(job, name, payload, "refs/tags/v1", merged) is None
    # A merge has brought it along beside that line: it may have loosened what a later commit restored.
    for line, sides in (([newest], []), ([change.base, newest], [merged])):
        job.hub.histories[newest], job.hub.sides[newest] = line, sides
        for name in ("release", "push", "workflow_dispatch"):
            assert deciding(job, name, payload, "refs/tags/v1", merged) == newest
    job.hub.fail("GET", "/compare/", 404)
    with pytest.raises(UsageError, match="unknown which base decides"):
        deciding(job, "release", payload, "refs/tags/v1", merged)


def test_the_verdict_on_one_pull_request_does_not_stand_at_the_head_of_another(job, change):
    """The number is an input of the dispatch, perhaps; the check stands where the run started."""
    job.hub.pulls[8] = payloads.pull_request(8, "d" * 40, change.base)
    payload = anything(change.head, change.base, "refs/heads/other")
    for name in OWN:
        with pytest.raises(UsageError, match="where its check appears"):
            deciding(job, name, payload, "refs/heads/other", "d" * 40, number=7)
        at_main = deciding(job, name, payload, "refs/heads/main", change.base, number=7)
        assert at_main == change.base


def test_an_event_that_is_not_known_is_refused(job, history):
    payload = payloads.on_push("0" * 40, history.git("rev-parse", "HEAD"))
    for name in ("issues", "discussion", "check_run", "status", "deployment", "Push", "x" * 99):
        assert job.run(name, payload) == 2, name
        assert "it is not known which commit's policy would decide" in job.err
        assert "`pull_request`" in job.err
        assert job.outputs["outcome"] == "error"


def test_a_merge_group_without_its_base_is_no_push(job, change):
    payload = payloads.on_merge_group(7, change.head, change.base)
    payload["merge_group"].update(base_sha=None, head_ref="refs/heads/other")
    assert job.run("merge_group", payload) == 2


def test_a_workflow_run_of_a_push_is_judged_by_that_push(job, history, hub):
    history.answers(fair)
    commit = history.commit()
    payload = payloads.on_workflow_run(commit, branch="main")
    payload["workflow_run"]["event"] = "push"
    assert job.run("workflow_run", payload, GITHUB_SHA="e" * 40) == 0
    history.commit("a newer one")
    assert job.run("workflow_run", payload, GITHUB_SHA="e" * 40) == 2
    payload["workflow_run"]["event"] = "workflow_run"
    assert job.run("workflow_run", payload, GITHUB_SHA="e" * 40) == 2


@pytest.mark.whole
def test_one_head_of_pull_requests_with_different_bases(job, history, change):
    """A second pull request, to a branch of the change's author, is no base to choose."""
    history.git("branch", "--force", "mine", "topic")
    job.hub.pulls = {
        6: payloads.pull_request(6, change.head, change.head),
        7: payloads.pull_request(7, change.head, change.base),
    }
    job.hub.pulls[6]["base"]["ref"] = "mine"
    both = payloads.listed_pulls((6, change.head, change.head), (7, change.head, change.base))
    payload = payloads.on_workflow_run(change.head, pulls=both)
    for cause in ("pull_request", "push"):
        payload["workflow_run"]["event"] = cause
        assert job.run("workflow_run", payload, **NO_TOKEN) == 2
        assert job.run("workflow_run", payload) == 2
        assert "different bases" in job.err
        assert job.run("workflow_run", payload, FAIRGATE_PR_NUMBER="7") == 1
        assert by_base(job)


def test_a_pull_request_of_another_repository_is_no_base(job, change):
    """A branch of ours can be the head of a pull request to somebody's fork."""
    elsewhere = payloads.listed_pulls((1, change.head, change.head), repo=99)
    assert job.run("workflow_run", payloads.on_workflow_run(change.head, pulls=elsewhere)) == 1
    assert by_base(job)
    assert job.hub.of(1) == []


def test_a_base_branch_without_the_policy_is_no_introduction(job, history, change):
    """Its author could move the pull request to the main branch afterwards, with a green check."""
    history.git("checkout", "-q", "--orphan", "old")
    history.git("rm", "-rfq", ".")
    bare = history.commit("long ago")
    history.git("checkout", "-q", "topic")
    for name, code in (("old", 2), ("main", 0)):
        payload = payloads.on_pull_request(7, change.head, bare)
        payload["pull_request"]["base"]["ref"] = name
        assert job.run("pull_request", payload) == code
    payload["repository"]["default_branch"] = None
    assert job.run("pull_request", payload) == 2
    assert "not the default branch" in job.err


def test_a_number_of_another_head_than_the_run_s_is_refused(job, change):
    job.hub.pulls[8] = payloads.pull_request(8, "d" * 40, change.head)
    job.hub.pulls.pop(7)
    run = payloads.on_workflow_run(change.head)
    assert job.run("workflow_run", run, FAIRGATE_PR_NUMBER="8") == 2
