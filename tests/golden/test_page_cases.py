"""What the page's list of cases holds is what was assessed, the clearest first."""

from __future__ import annotations

import html
import re
import shlex
from dataclasses import replace

import pytest
from canonical_bias import bias_baseline, social_bias
from canonical_results import baseline, regression
from canonical_rules import having, view_of

from fairgate.reports.html import render_html
from fairgate.reports.material import in_words
from fairgate.reports.sections import cases

CASE = re.compile(r'<p class="reproduce"><code>(.*?)</code></p>')


def listed(run, base=None, **options):
    """Return what the chapter of cases says to run, case by case."""
    page = render_html(view_of(run, base, **options))
    return [html.unescape(command) for command in CASE.findall(page.partition('id="cases"')[2])]


def test_every_changed_pair_is_listed_once_and_what_is_new_first():
    run = regression()
    changed = {
        item.unit.key
        for item in run.result.assessed
        if not item.unit.is_control and item.claims["controlled"] == 1.0
    }
    keys = listed(run, baseline())
    assert len(keys) == len(changed)
    assert set(keys) == changed
    elderly = [key for key in keys if key.endswith("/elderly")]
    assert keys[: len(elderly)] == elderly
    assert elderly[-1] == "s00005#age/elderly"  # changed at the baseline, too


def test_where_nothing_changed_there_is_no_list():
    none = {"controlled": 0.0, "generation": 0.0}
    assessed = regression().result.assessed
    quiet = [replace(item, claims={**item.claims, **none}) for item in assessed]
    assert listed(having(regression(), assessed=quiet), baseline()) == []


def test_a_page_that_cannot_hold_all_cases_shows_the_first_and_says_so(monkeypatch):
    whole = listed(regression(), baseline())
    monkeypatch.setattr(cases, "MOST_ON_PAGE", 5)
    assert listed(regression(), baseline()) == whole[:5]
    page = render_html(view_of(regression(), baseline()))
    assert "Further cases stand in rows.jsonl" in page


def test_wrong_and_undecided_answers_to_questions_are_listed():
    text = render_html(view_of(social_bias(), bias_baseline()))
    wrong = {row.unit.key for row in social_bias().result.assessed if row.claims["correct"] != 1.0}
    assert {key for key in wrong if f"<code>{key}</code>" in text} == wrong
    assert f"{len(wrong)} of {len(wrong)} stand here" in text


def test_the_command_of_a_case_is_quoted_for_a_shell():
    first = listed(regression(), baseline(), run_path="my runs/1", has_explain=True)[0]
    assert shlex.split(first) == ["fairgate", "explain", "my runs/1", "s00003#age/elderly"]


@pytest.mark.parametrize(
    ("value", "shown"), [("mixed", "mixed"), (3.0, "3"), (("a", "b"), "a, b"), (2.5, "2.5")]
)
def test_answers_of_every_oracle_are_put_into_words(value, shown):
    assert in_words(value) == shown
