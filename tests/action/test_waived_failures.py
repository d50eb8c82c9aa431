"""A waiver on a pull request: the base's counts, one that the change adds is listed and does not."""

import datetime as dt
import json
import re
from pathlib import Path

import pytest
from action.repositories import POLICY, worse

from fairgate.github.comments import read_foreign_record, render_foreign_record

OWNER = "@octo ::error::x <img src=x>"


def waiving(days):
    """The policy with a waiver of its rule, whose last day is so many days ahead."""
    expires = dt.datetime.now(tz=dt.UTC).date() + dt.timedelta(days=days)
    entry = {
        "rule": "parity/answers/baseline", "who": "race", "reason": "ticket 12", "owner": OWNER, "up_to": 1,
        "expires": str(expires),
    }  # fmt: skip
    return f"{POLICY}waivers:\n  - {json.dumps(entry)}\n"


def merged(history, days):
    """Put a waiver into the base, and worse answers onto a branch."""
    history.git("checkout", "-q", "main")
    history.write("policies/small.yaml", waiving(days))
    history.commit()
    history.proposes(worse)


def test_a_waiver_of_the_base_lets_the_failure_through_and_says_so(job, history):
    merged(history, 30)
    assert job.pull(history) == 0
    names = ("outcome", "violations", "regressions", "waived")
    assert [job.outputs[name] for name in names] == ["pass", "0", "0", "1"]
    (comment,) = job.hub.ours(7)
    assert "passes with 1 waived failure" in comment["body"]
    assert "answers, since baseline for race (10): +20.0 points, waived until" in comment["body"]
    assert "title=FairGate%3A rule failed for race, waived::" in job.out.replace("%2C", ",")
    assert "\n::warning " in f"\n{job.out}"
    assert "::error" not in job.out
    for text in (comment["body"], job.summary):
        plain = re.sub("`[^`]*`", "", text)
        assert "<img" not in plain
        assert "@octo" not in plain


def test_one_that_has_ended_lets_nothing_through(job, history):
    merged(history, -1)
    assert job.pull(history) == 1
    assert "ended on" in job.hub.ours(7)[0]["body"]


@pytest.mark.walk(2)
@pytest.mark.parametrize("before", [None, 10, -3])
def test_one_that_the_change_adds_or_extends_is_less_strict_and_does_not_decide(
    job, history, before
):
    if before is not None:
        merged(history, before)
    history.git("checkout", "-q", "main")
    history.proposes(worse, {"policies/small.yaml": waiving(30)})
    assert job.pull(history) == (0 if before == 10 else 1)
    said = job.summary.replace("`", "")
    assert "Less strict than before (1, the worst first)" in said
    how = "waived until" if before is not None else "waived: up_to 1.0, expires"
    assert f"parity/answers/baseline (suite=sentiment) for race: {how}" in said
    assert ("before until" in said) is (before is not None)


def test_a_forks_record_with_a_waived_failure_is_no_plain_pass(job, history):
    merged(history, 30)
    assert job.pull(history) == 0
    record = json.loads(Path(job.outputs["report-json"]).read_text())
    text = render_foreign_record(
        read_foreign_record(json.dumps(record).encode()), head="a" * 40, report_url="u"
    )
    assert "the gate passed with 1 waived failure\n" in text
    assert "octo" not in text
