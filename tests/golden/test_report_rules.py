"""What reports promise beyond single texts: limits, loud failures, honest headlines."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from functools import cache

import pytest
from canonical_results import CANONICAL, baseline, regression
from canonical_rules import having, said, view_of

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Outcome, Overlap
from fairgate.features.exports import render_junit, render_sarif
from fairgate.reports import figures
from fairgate.reports.console import render_console
from fairgate.reports.html import render_html
from fairgate.reports.markdown import length, render_comment, render_report


@cache
def _view(name="regression", **options):
    return view_of(CANONICAL[name](), baseline(), **options)


def _changed(**changes):
    return view_of(having(regression(), **changes), baseline())


BOUNDS = [rule for rule in regression().result.rules if rule.parity is None]


def test_report_only_still_says_fail_loudly():
    view = _view(report_only=True)
    for text in (render_report(view), render_comment(view), render_console(view)):
        assert "FAIL" in text.upper().split("RULE")[0]
        assert "report-only" in text
        assert "exit code" in text
    comment = render_comment(view)
    assert comment.index("`report-only`") < comment.index("<details>")


def test_a_tight_limit_drops_whole_sections_and_says_so():
    view = _changed(rules=[*regression().result.rules, *BOUNDS * 4])
    whole = render_comment(view)
    previous = len(whole)
    for limit in (4500, 2500):
        text = render_comment(view, limit=limit)
        assert length(text) <= limit
        assert text.startswith("### ❌ FairGate: answers became worse for an elderly person")
        assert "Left out because this text has a limit" in text
        assert text.count("<details>") == text.count("</details>")
        assert len(text) < previous
        previous = len(text)


def test_length_counts_bytes():
    assert length("a😀") == 5
    assert length("\ud800") == 1


def test_a_thousand_rules_fit():
    text = render_comment(_changed(rules=BOUNDS * 400))
    assert length(text) <= 60_000
    assert "388 further rows" in text


@pytest.mark.parametrize(("times", "has_table"), [(3, False), (4, True)])
def test_a_broken_bound_stands_once_in_the_comment(times, has_table):
    """In a sentence; in a table where there are more of them than sentences name."""
    text = render_comment(_changed(rules=BOUNDS * times))
    assert ("#### Rules" in text) is has_table
    assert text.count("10.9 % is above the limit of 5.0 %") == (7 if has_table else times)


def test_short_tables_keep_what_did_not_pass():
    view = _changed(rules=[r for r in BOUNDS for _ in range(13)])
    lines = [line for line in render_comment(view).splitlines() if re.match(r"\| . \*\*", line)]
    assert len(lines) == 12
    assert all("FAIL" in line for line in lines)


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({}, "changed answers is beyond its limit,"),
        ({"failed": ("regression",)}, "changed answers is worse than the baseline,"),
    ],
)
def test_titles_of_failed_bounds(changes, title):
    rules = [replace(rule, **changes) for rule in BOUNDS[:1]]
    assert said(_changed(rules=rules).title) == title


def test_an_incompatible_baseline_is_shown_field_by_field():
    difference = "suite sentiment, top_k: baseline 4, run 6"
    overlap = Overlap(compared=0, new=(), removed=(), incompatible=(difference,))
    code = {"outcome": Outcome.INCONCLUSIVE, "exit_code": ExitCode.BASELINE}
    view = _changed(overlap=overlap, **code)
    assert view.title == "baseline and run do not fit together"
    for text in (render_report(view), render_comment(view), render_console(view)):
        assert "suite sentiment" in text
        assert "baseline 4, run 6" in text


def test_explain_is_offered_only_where_it_exists():
    assert "fairgate explain" not in render_report(_view())
    offered = render_report(_view(has_explain=True, run_path="runs/my run"))
    assert "fairgate explain 'runs/my run' 's00003#age/elderly'" in offered


def test_an_advisory_rule_never_fails_a_build_anywhere():
    rules = [replace(rule, advisory=True) for rule in regression().result.rules]
    view = _changed(rules=rules)
    levels = {r["level"] for r in json.loads(render_sarif(view, {}, ""))["runs"][0]["results"]}
    assert levels == {"warning"}
    assert "<failure" not in render_junit(view)
    assert render_junit(view).count("<skipped") == 2


@pytest.mark.parametrize("name", CANONICAL)
def test_html_asks_for_nothing_from_outside(name):
    page = render_html(_view(name))
    assert not re.search(r"\b(?:src|srcset|action)\s*=|url\(|@import|\bon\w+=", page)
    assert not re.search(r"\bhref\s*=\s*(?!\"#)", page)
    assert "default-src 'none'" in html.unescape(page)
    assert ' style="' not in page


def test_a_number_and_its_unit_stand_on_one_line():
    said = "45.3 % is above 3.0 points, 100 % of 12 %x and 5 pointsman"
    assert figures.unbroken(said) == (
        "45.3\u00a0% is above 3.0\u00a0points, 100\u00a0% of 12\u00a0%x and 5 pointsman"
    )


def test_a_reason_for_which_several_rules_have_no_value_is_said_once():
    """In the table of rules of every report, also where other reasons stand between them."""
    run = CANONICAL["no-verdict"]()
    first = next(r for r in run.result.rules if r.metric == "asr/retrieval")
    why = "a retrieved document has no label"
    others = [
        replace(first, metric="rrs/mean", position=2, reasons=["nobody answered"]),
        replace(first, metric="rrs/low", position=3),
        replace(first, where={"category": "age"}, position=4),
    ]
    view = view_of(having(run, rules=[*run.result.rules, *others]), None)
    wrong = {
        render.__name__: text
        for render in (render_report, render_comment, render_console, render_html)
        if (text := " ".join(render(view).split())).count(why) != 1
        or text.count("for the same reason") != 2
        or text.count("nobody answered") != 1
    }
    assert not wrong
