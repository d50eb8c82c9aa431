"""`report-only: until-proven`: what GitHub lists of pushes decides, nothing of a pull request."""

import datetime as dt

import pytest
from action.fake_github import REPOSITORY
from action.repositories import POLICY, WORKFLOW, WORKFLOW_PATH, fair, worse

EARNED = {"FAIRGATE_REPORT_ONLY": "until-proven"}
MAIN = "refs/heads/main"
NOW = dt.datetime.now(tz=dt.UTC)


def stamp(hours):
    return f"{NOW - dt.timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"


def pushed(hub, history="g" * 10, *, moves=True, first=0):
    """Let GitHub list a run of a push to main for each letter, the oldest first: g green, r red."""
    for number, letter in enumerate(history, first + 1):
        head = f"{number:040x}"
        hours = len(history) + first - number + 1
        hub.runs[1000 + number] = {
            "event": "push", "head_branch": "main", "head_sha": head, "path": WORKFLOW_PATH,
            "conclusion": {"g": "success", "r": "failure"}[letter], "created_at": stamp(hours),
            "head_repository": {"full_name": REPOSITORY},
        }  # fmt: skip
        if moves:
            hub.moves.insert(0, {"ref": MAIN, "after": head, "timestamp": stamp(hours)})


def gated(job, history, answer=worse, **inputs):
    history.proposes(answer)
    return job.pull(history, **EARNED, **inputs)


@pytest.mark.walk(2)
@pytest.mark.parametrize(("runs", "code", "words"), [
    ("", 0, "0 of 10 pushes to `main` were judged"),
    ("gggrgg", 0, "2 of 10"),
    ("g" * 9, 0, "From the next pull request on, a red one is blocked."),
    ("g" * 10, 1, ""),
    ("g" * 10 + "rgg", 1, ""),
])  # fmt: skip
def test_a_new_gate_reports_and_a_proven_one_blocks(job, history, hub, runs, code, words):
    pushed(hub, runs)
    assert gated(job, history) == code
    assert job.outputs["exit-code"] == "1"
    assert words in job.summary
    assert ("does not block yet" in job.summary) == (code == 0)


@pytest.mark.parametrize(("runs", "comments"), [("g" * 8, 0), ("g" * 9, 1), ("g" * 10, 0)])
def test_the_pull_request_before_is_told_also_where_it_is_green(job, history, hub, runs, comments):
    pushed(hub, runs)
    assert gated(job, history, fair) == 0
    assert len(hub.ours(7)) == comments


def lacking_rights(hub):
    hub.fail("GET", "/actions/workflows/", 403, message="Resource not accessible by integration")


UNREADABLE = {
    "no rights": lacking_rights,
    "an outage": lambda hub: hub.fail("GET", "/actions/workflows/", 502, times=20),
    "no list": lambda hub: hub.fail("GET", "/actions/workflows/", 200, message="what?"),
    "a list": lambda hub: hub.fail("GET", "/actions/workflows/", 200, message=[]),
    "no moves": lambda hub: hub.fail("GET", "/activity", 403),
}


@pytest.mark.walk(2)
@pytest.mark.parametrize("broken", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_blocks_and_is_said(job, history, hub, broken):
    pushed(hub, "g")
    broken(hub)
    assert gated(job, history) == 1
    assert "cannot be read, so it does" in job.summary


@pytest.mark.walk(2)
@pytest.mark.parametrize("inputs", [
    {"FAIRGATE_GITHUB_TOKEN": ""}, {"GITHUB_WORKFLOW_REF": ""},
    {"GITHUB_WORKFLOW_REF": f"{REPOSITORY}/.github/workflows/mine.yml@refs/pull/7/merge"},
    {"GITHUB_WORKFLOW_REF": f"mallory/shop/{WORKFLOW_PATH}@refs/heads/main"},
])  # fmt: skip
def test_nor_does_a_workflow_that_only_the_change_has_report_alone(job, history, hub, inputs):
    assert gated(job, history, **inputs) == 1
    assert "cannot be read, so it does" in job.summary


@pytest.mark.parametrize("moved", ["policies/new.yaml", "gates/small.yaml", "small.gate"])
def test_nor_does_one_that_is_renamed_together_with_its_policy(job, history, hub, moved):
    pushed(hub)
    history.proposes(worse, {moved: POLICY})
    history.git("rm", "-q", "policies/small.yaml", WORKFLOW_PATH)
    history.write(".github/workflows/new.yml", WORKFLOW)
    history.commit()
    ref = f"{REPOSITORY}/.github/workflows/new.yml@refs/pull/7/merge"
    named = {"FAIRGATE_POLICY": moved, "GITHUB_WORKFLOW_REF": ref}
    assert job.pull(history, **EARNED, **named) == 1


@pytest.mark.parametrize("old", [
    lambda hub: pushed(hub, "rgg" * 34),
    lambda hub: [pushed(hub, "rg", moves=False), pushed(hub, "g", first=20)],
])  # fmt: skip
def test_a_gate_that_is_older_than_what_github_lists_is_no_new_one(job, history, hub, old):
    old(hub)
    assert gated(job, history) == 1
    assert "It is older than these" in job.summary


def test_a_gate_whose_runs_were_deleted_is_no_new_one(job, history, hub):
    """Whoever may write may delete runs; GitHub gives their numbers to no other run."""
    pushed(hub, "ggg")
    hub.deleted_runs = 1
    assert gated(job, history) == 1
    assert "or runs were deleted" in job.summary


def test_the_change_that_introduces_the_gate_is_not_blocked(job, history, hub):
    history.answers(worse)
    history.git("rm", "-q", "-r", "policies", "baselines", ".github")
    history.commit()
    strict = POLICY.replace("0.2,", "0.001,")
    history.proposes(files={"policies/small.yaml": strict, WORKFLOW_PATH: WORKFLOW})
    assert job.pull(history, **EARNED) == 0
    assert job.outputs["exit-code"] == "1"


def test_a_push_to_the_default_branch_ends_with_its_verdict(job, history, hub):
    """It blocks nobody, and is what later runs read."""
    history.answers(worse)
    history.commit()
    assert job.push(history, **EARNED) == 1
