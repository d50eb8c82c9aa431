"""What stands first in every report: a rate beside neutral wording, then what has changed."""

from __future__ import annotations

from html import escape
from pathlib import Path

import pytest
from canonical_results import CANONICAL, baseline

from fairgate.metrics.catalogue import BY_ID, METRICS
from fairgate.reports.affected import leading
from fairgate.reports.console import render_console
from fairgate.reports.html import meaning, render_html, words
from fairgate.reports.markdown import render_comment, render_report
from fairgate.reports.present import present
from fairgate.reports.spans import spans
from fairgate.reports.view import ReportOptions

GLOSSARY = Path(__file__).parents[2] / "docs/explanation/glossary.md"
RENDERERS = (render_comment, render_report, render_console, render_html)


def view(name):
    return present(CANONICAL[name](), ReportOptions(), baseline())


@pytest.mark.parametrize("name", CANONICAL)
def test_neutral_wording_stands_beside_every_headline_rate(name):
    run = CANONICAL[name]()
    rule = leading(run.result)
    metric = BY_ID[rule.metric] if rule else None
    known = {(m.metric, m.suite) for m in run.result.measurements if m.value is not None}
    expected = bool(
        metric
        and metric.neutral
        and (metric.neutral, rule.suite) in known
        and run.result.outcome.value != "inconclusive"
    )
    assert ("neutral wording:" in "".join(one.text for one in spans(view(name).lead))) == expected


def test_every_rate_names_neutral_wording_itself_or_has_it_beside():
    rates = [m for m in METRICS if m.violations and m.id.startswith("asr/") and m.claim]
    assert len(rates) == 5
    for metric in rates:
        assert metric.neutral in BY_ID or metric.claim.startswith(
            "Beyond what neutral wording does"
        )


@pytest.mark.parametrize("render", RENDERERS, ids=lambda one: one.__name__)
def test_what_has_changed_is_told_before_why_and_what_to_do(render):
    text = " ".join(render(view("regression")).split())
    places = [
        text.index(words)
        for words in ("neutral wording", "Changed since the baseline", "Why it fails", "Next")
    ]
    assert places == sorted(places)


@pytest.mark.parametrize("term", ["neutral wording", "likely range", "without a speaker"])
def test_the_glossary_has_the_words_of_the_comment(term):
    assert term in GLOSSARY.read_text()


def test_the_page_explains_its_columns_as_the_glossary_does():
    """A reader who points at a head reads what the documentation says."""
    page = render_html(view("regression"))
    rows = [row.split(" | ") for row in GLOSSARY.read_text().splitlines() if row.startswith("| ")]
    documented = {row[0].removeprefix("| ").partition(" (")[0]: row[1].rstrip(" |") for row in rows}
    for word in words():
        assert documented[word] == meaning(word)
        assert meaning(f"{word} (95 %)") == meaning(word)
    for word in ("likely range", "base", "smallest detectable change"):
        assert f'title="{escape(meaning(word))}"' in page
    assert not meaning("outcome")
