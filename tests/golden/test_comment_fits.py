"""Whatever a pull request's report holds, the comment fits, and loosenings are left out last."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_hostile_texts import _view

from fairgate.github import report
from fairgate.reports.blocks import Style, Text
from fairgate.reports.markdown import COMMENT_LIMIT, length

URL = "https://github.com/octo/shop/actions/runs/1"
VIEW = _view("word")
WORST = "asr/generation: max raised from 0.2 to 0.99"


def notes_of(loosened, files, differences, remarks, size, letter="x"):
    """Parts with so many entries, each of so many characters."""
    entry = letter * size
    edits = report.Edits(
        files={"sources": [f"{number}/{entry}" for number in range(files)], "judge": ["j"]},
        edits_policy=True, decided_by="base", base="❌ FAIL", proposed="✅ PASS",
        loosened=[WORST, *(f"{number}: {entry}" for number in range(1, loosened))][:loosened],
        differences=[f"{number}: {entry}" for number in range(differences)],
    )  # fmt: skip
    return report.Notes(remarks=[f"{number} {entry}" for number in range(remarks)], edits=edits)


def plain(text):
    """Return text without escapes: what a reader sees."""
    return re.sub(r"&#(\d+);", lambda found: chr(int(found[1])), text).replace("\\", "")


many = st.sampled_from([0, 1, 5, 21, 480])
SIZES = st.sampled_from([1, 40, 200, 4000])
LIMITS = st.sampled_from([60_000, 9_000, 4_000])


@given(st.tuples(many, many, many, many, SIZES, st.sampled_from("x<`_@漢")), LIMITS)
@example((1, 480, 0, 0, 200, "x"), 60_000)
@example((21, 0, 0, 0, 40, "x"), 60_000)
@example((1, 0, 1, 1, 200, "`"), 4_000)
@example((5, 0, 21, 21, 200, "`"), 60_000)
def test_the_comment_fits_and_tells_the_worst(sizes, most):
    loosened, *_, letter = sizes
    notes = notes_of(*sizes)
    text = report.pull_request_comment(VIEW, notes, report_url=URL, most=most)
    assert length(text) <= most
    assert "This change edits" in text.splitlines()[0]
    assert "FairGate" in text
    if loosened:
        assert f"Less strict than before ({loosened:,}, the worst first):" in text
        assert "max raised from 0.2 to 0.99" in plain(text)
    if loosened > 1:
        assert f"and {loosened - 1:,} more, in report.md of this run" in plain(text)
        assert f"\n- 1: {letter}" not in plain(text)


@given(st.integers(0, 60), st.integers(0, 4000), st.integers(0, 60))
@settings(max_examples=25)
def test_a_report_of_any_size_leaves_the_worst(warnings, size, problems):
    lines = [f"{number} {'w' * size}" for number in range(warnings)]
    view = replace(
        VIEW,
        warnings=[Text(lines=[line], style=Style.WARNING) for line in lines],
        notices=[Text(lines=["r" * size] * problems, style=Style.NOTE)],
    )
    text = report.pull_request_comment(view, notes_of(3, 1, 1, 1, 50), report_url=URL)
    assert length(text) <= COMMENT_LIMIT
    assert "max raised from 0.2 to 0.99" in plain(text)


def test_every_loosening_stands_in_summary_and_report():
    for count, size, limit in ((25, 400, 10**6), (300, 400, 10**6), (1200, 400, 10**5)):
        notes = notes_of(count, 3, 3, 3, size)
        whole = plain(report.render_notes(notes))
        summary = report.job_summary(VIEW, notes, limit=limit)
        assert len(summary.encode()) <= limit
        for text, entry in ((whole, "x" * size), (plain(summary), "x" * min(size, 40))):
            assert all(f"\n- {number}: {entry}" in text for number in range(1, count)), count
        assert "more, in report.md" not in whole


def test_a_summary_that_cannot_hold_every_loosening_says_how_many_are_left():
    summary = plain(report.job_summary(VIEW, notes_of(3000, 3, 3, 3, 400), limit=10**5))
    assert "and 2,800 more, in report.md of this run" in summary
    assert WORST in summary


@pytest.mark.whole
@given(st.integers(2, 90), st.sampled_from([0, 1, 21, 480]), SIZES)
@settings(max_examples=8)
def test_the_comment_of_several_policies_fits(policies, entries, size):
    notes = notes_of(entries, entries, 0, 0, size)
    reports = [
        report.ChangeReport(
            view=replace(VIEW, policy=f"p{number}"), brief=[], outcome=VIEW.outcome, exit_code=1,
            outputs={}, annotations=[], notes=notes, edits_rules=True,
        )
        for number in range(policies)
    ]  # fmt: skip
    text = report.SeveralReports(reports).comment(URL)
    assert length(text) <= COMMENT_LIMIT
    assert json.dumps(text)
