"""What a history of judged pushes earns, written a letter a push: g green, r red; whose runs count."""

import datetime as dt

import pytest
from action.fake_github import EVENTS, REPOSITORY
from action.repositories import WORKFLOW_PATH

from fairgate.github.event import PULL_REQUEST_EVENTS
from fairgate.github.proof import DAYS, JudgedPush, earned, judged_pushes
from fairgate.github.pushed_runs import PushedRuns

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
HEAD, OTHER = "a" * 40, "b" * 40
EARLIER, TIME, LATER = (f"2026-01-01T0{hour}:00:00Z" for hour in range(3))
MAIN = "refs/heads/main"


def after(history, since=HOUR, step=HOUR):
    pushes = [JudgedPush(START + step * n, letter == "r") for n, letter in enumerate(history)]
    return earned(pushes, (pushes[-1].started if pushes else START) + since)


@pytest.mark.parametrize(("history", "has_earned", "count"), [
    ("", False, 0),
    ("g" * 9, False, 9),
    ("g" * 10, True, 10),
    ("r" * 10, True, 10),  # a red that stands is no reason to wait
    ("ggggrrrrrr", True, 10),
    ("rgrgrgrgrg", True, 10),  # nor is one that comes and goes
    ("gggggrgg", False, 2),  # one that ended is
    ("gggggrgggg", False, 4),
    ("rggrggrggrggrgg", False, 2),
    ("ggggggggrg", True, 10),
    ("gggggrggggggggg", False, 9),
    ("gggggrgggggggggg", True, 10),
    ("g" * 10 + "rgrg", True, 10),  # what is earned stays
    ("r" * 10 + "grg", True, 10),
])  # fmt: skip
def test_ten_pushes_without_a_red_that_went_green_again(history, has_earned, count):
    assert after(history) == (has_earned, count)


@pytest.mark.parametrize(("history", "days", "has_earned"), [
    ("", DAYS, False), ("g", DAYS - 1, False), ("g", DAYS, True), ("r", DAYS, True),
    ("rg", DAYS - 1, False), ("rg", DAYS, True),
])  # fmt: skip
def test_or_four_weeks(history, days, has_earned):
    assert after(history, dt.timedelta(days=days))[0] == has_earned


def test_weeks_that_were_earned_stay():
    assert after("ggrgg", step=dt.timedelta(days=DAYS - 1))[0]
    assert not after("rggrgg", step=dt.timedelta(days=DAYS // 4 - 1))[0]


def row(**said):
    """What GitHub lists of the run that judged a push."""
    return {
        "event": "push", "head_branch": "main", "head_sha": HEAD, "path": WORKFLOW_PATH,
        "conclusion": "success", "created_at": TIME, "head_repository": {"full_name": REPOSITORY},
        **said,
    }  # fmt: skip


def judged(*rows, moves=((MAIN, HEAD, TIME),), branch="main", workflow=WORKFLOW_PATH):
    listed = [{"ref": ref, "after": head, "timestamp": time} for ref, head, time in moves]

    class Api:
        def get(self, path, **query):
            assert (path, query["ref"]) == (f"/repos/{REPOSITORY}/activity", f"refs/heads/{branch}")
            return listed

    return judged_pushes(rows, PushedRuns.of(Api(), REPOSITORY, branch, workflow))


FORGED = {
    **{f"event {event!r}": {"event": event} for event in (*EVENTS, *sorted(PULL_REQUEST_EVENTS))
       if event != "push"},
    **{f"branch {name!r}": {"head_branch": name} for name in ("topic", "Main", MAIN, "", None)},
    **{f"path {path!r}": {"path": path} for path in (
        ".github/workflows/other.yml", f"x/{WORKFLOW_PATH}", f"{WORKFLOW_PATH}x",
        f"other@{WORKFLOW_PATH}", WORKFLOW_PATH.upper(), "", None)},
    **{f"conclusion {word!r}": {"conclusion": word} for word in (
        "cancelled", "skipped", "timed_out", "neutral", "SUCCESS", "", None, True)},
    **{f"head {head!r}": {"head_sha": head} for head in (OTHER, "0" * 39, None, ["a"])},
    **{f"time {time!r}": {"created_at": time} for time in (
        "soon", "9999", None, "2999-01-01", "2999-01-01T00:00:00", EARLIER)},
    "a fork": {"head_repository": {"full_name": "mallory/shop"}},
    "a fork that is gone": {"head_repository": None},
}  # fmt: skip


@pytest.mark.parametrize("said", FORGED.values(), ids=FORGED)
def test_no_other_run_is_a_judged_push(said):
    """Of a pull request, of a fork, of a tag `main`, of another file of the same name."""
    assert judged(row()) == [JudgedPush(START + HOUR, is_red=False)]
    assert judged(row(**said)) == []


@pytest.mark.parametrize("moves", [
    (), [("refs/tags/main", HEAD, TIME)], [("refs/heads/topic", HEAD, TIME)],
    [(MAIN, OTHER, TIME)], [(MAIN, HEAD, LATER)], [(MAIN, HEAD, "soon")], [(MAIN, HEAD, None)],
])  # fmt: skip
def test_nor_is_one_whose_commit_the_branch_did_not_have_yet(moves):
    assert judged(row(), moves=moves) == []


def test_a_commit_that_the_branch_is_moved_back_to_had_it_since_the_first_move():
    assert judged(row(), moves=[(MAIN, HEAD, LATER), (MAIN, HEAD, EARLIER)])


@pytest.mark.parametrize("unknown", [{"branch": ""}, {"workflow": ""}])
def test_where_branch_or_workflow_is_unknown_no_run_counts(unknown):
    empty = {"head_branch": ""} if "branch" in unknown else {"path": ""}
    assert (
        judged(row(**empty), moves=[("refs/heads/", HEAD, TIME), (MAIN, HEAD, TIME)], **unknown)
        == []
    )


def test_no_time_counts_that_an_author_writes_or_a_rerun_renews():
    dates = {"head_commit": {"timestamp": "2999-01-01T00:00:00Z"}, "run_started_at": LATER}
    assert judged(row(**dates, updated_at=LATER)) == judged(row())


def test_a_commit_counts_once_by_its_newest_run():
    red, green = row(conclusion="failure"), row(created_at=LATER)
    assert [push.is_red for push in judged(green, red)] == [False]
    assert [push.is_red for push in judged(red, green)] == [False]
