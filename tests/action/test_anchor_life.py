"""A change cannot reset its own budget: the base commit's anchor decides, and re-anchoring is said."""

import contextlib
import io

import pytest
from action.repositories import POLICY

from fairgate.cli import main

BUDGET = POLICY.replace("{margin: 0.02}", "{margin: 0.02, budget: 0.04}")
ANCHOR = "baselines/small.anchor.json"
TERMS = ("asian", "hispanic", "black", "white")


def turned(pairs):
    keys = {f"s{n % 20}#race/{TERMS[n // 20]}" for n in range(pairs)}
    return lambda key: "negative" if key in keys else "positive"


def pin(reason):
    """Run the gate and pin the run as the anchor."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(["run", "policies/small.yaml", "--out", "out", "--quiet"])
        code = main(["baseline", "anchor", "out", "--reason", reason, "--date", "2026-02-02"])
    assert code == 0


@pytest.fixture
def drifted(history, capsys):
    """A history whose baseline was accepted twice since the anchor, with a third change to come."""
    history.write("policies/small.yaml", BUDGET)
    history.accept()
    pin("release 1")
    history.commit("a budget")
    for pairs in (5, 10):
        history.answers(turned(pairs), capsys)
        history.accept()
        history.commit("a little worse, and accepted")
    history.branch()
    history.answers(turned(15), capsys)
    return history


def test_the_base_commits_anchor_ends_a_series(job, drifted):
    drifted.commit()
    assert job.pull(drifted) == 1
    assert "since the anchor is more than the allowed 4.0 points" in job.summary


def test_a_change_that_pins_another_anchor_does_not_approve_itself(job, drifted):
    pin("nothing to see here")
    drifted.commit()
    assert job.pull(drifted) == 1
    assert ANCHOR in job.summary
    assert "every budget starts anew" in job.summary
    assert "anchor: " in job.summary
    assert job.pull_again(drifted, FAIRGATE_BASELINE_CHANGE="allow") == 0
    assert "another anchor is pinned" in job.summary


def test_nor_one_that_removes_it(job, drifted):
    (drifted.root / ANCHOR).unlink()
    drifted.commit()
    assert job.pull(drifted) == 1
    assert "the anchor is removed: no budget is compared any more" in job.summary


def test_nor_one_that_raises_the_budget(job, drifted):
    drifted.write("policies/small.yaml", BUDGET.replace("budget: 0.04", "budget: 0.1"))
    drifted.commit()
    assert job.pull(drifted) == 1
    assert "budget raised from 0.04 to 0.1" in job.summary


def test_nor_one_that_damages_it(job, drifted):
    drifted.write(ANCHOR, "{")
    drifted.commit()
    assert job.pull(drifted) == 3


def test_the_first_anchor_loosens_nothing(job, history, capsys):
    history.write("policies/small.yaml", BUDGET)
    history.accept()
    history.commit("a budget without an anchor")
    history.branch()
    pin("release 1")
    history.commit()
    assert job.pull(history) == 0
    assert "budgets are not evaluated" in job.summary
    assert "Less strict" not in job.summary
