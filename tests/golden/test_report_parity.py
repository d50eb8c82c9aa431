"""What a person reads of the two questions: who, how much, beside what; nobody without evidence."""

from __future__ import annotations

import re
from itertools import chain

import pytest
from canonical_results import CANONICAL, TERMS, passing, regression
from canonical_rules import having, node, parity_rule, said, view_of
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import Outcome
from fairgate.domain.parity import Against, Level
from fairgate.domain.wording import within_sentence
from fairgate.metrics.parity import OUTCOMES
from fairgate.reports.console import render_console
from fairgate.reports.html import render_html
from fairgate.reports.markdown import render_comment, render_report

NAMES = {who: within_sentence(phrase) for who, phrase in TERMS.items()}
ELDERLY, GAY = ("age", "elderly"), ("orientation", "gay")
EVERYBODY = tuple(TERMS)
ORIENTATION = tuple(who for who in TERMS if who[0] == "orientation")
RENDERED = (render_console, render_comment, render_report, render_html)


def failed(*rules):
    return having(
        regression(), rules=list(rules), outcome=Outcome.FAIL, exit_code=ExitCode.GATE_FAILED
    )


def about(outcome, *named, against=Against.CONTROL):
    return parity_rule(outcome, 0, *named, against=against, failing=named)


@pytest.mark.parametrize(
    ("level", "who", "title"),
    [
        (Level.IDENTITY, [ELDERLY], "answers change for an elderly person"),
        (Level.CATEGORY, ORIENTATION, "answers change for orientation (5)"),
        (Level.EVERYBODY, EVERYBODY, "answers change whenever an identity is named"),
    ],
)
def test_the_title_says_the_level(level, who, title):
    view = view_of(failed(about("answers", node(level, who, estimate=0.3))))
    assert said(view.title).removesuffix(",") == title
    for render in RENDERED[:3]:
        assert title in render(view).partition("\n")[0]


@pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.NOT_EVALUATED])
def test_only_what_was_judged_has_a_tick(outcome):
    """Somebody may be named within the limit where another's answers decide too little."""
    named = node(Level.IDENTITY, [ELDERLY], estimate=0.04)
    rule = parity_rule(
        "answers", 0, named, against=Against.CONTROL, failing=[], outcome=outcome, reasons=["few"]
    )
    view = view_of(having(passing(), rules=[rule]))
    [row] = [line for line in render_console(view).splitlines() if "+4.0" in line]
    assert row.split()[0].startswith("ok") == (outcome is Outcome.PASS)


def test_the_title_names_only_whom_the_rule_fails():
    worse = node(Level.IDENTITY, [ELDERLY], estimate=0.3)
    rule = parity_rule(
        "answers", 0, node(Level.IDENTITY, [GAY], estimate=0.04), worse,
        against=Against.CONTROL, failing=[worse],
    )  # fmt: skip
    assert "gay" not in said(view_of(failed(rule)).title)


def test_two_outcomes_stand_in_one_title_by_how_far_they_are_beyond_their_limits():
    first = about("answers", node(Level.IDENTITY, [ELDERLY], estimate=0.3))
    second = about(
        "documents",
        node(Level.IDENTITY, [GAY], estimate=0.4, column="overlap"),
        against=Against.BASELINE,
    )
    title = said(view_of(failed(first, second)).title)
    assert "documents became worse for a gay person; answers change for an elderly person" in title


def test_favour_is_said_as_favour():
    view = view_of(failed(about("answers", node(Level.IDENTITY, [GAY], estimate=-0.3))))
    assert "in favour of a gay person" in said(view.title)
    assert "less often" in said(view.lead)


nodes = st.builds(
    lambda who, estimate, column: node(Level.IDENTITY, [who], estimate=estimate, column=column),
    st.sampled_from(EVERYBODY), st.sampled_from([-0.2, 0.04, 0.3]),
    st.sampled_from(["controlled", "direction"]),
)  # fmt: skip


@given(named=st.lists(nodes, max_size=3), failing=st.booleans(), against=st.sampled_from(Against))
def test_nobody_is_named_without_a_scan_that_names_them(named, failing, against):
    """Figure and cases list everybody; title, first sentence, table and warnings do not."""
    rule = parity_rule("answers", 0, *named, against=against, failing=named if failing else ())
    outcome = Outcome.FAIL if failing and named else Outcome.PASS
    code = ExitCode.GATE_FAILED if outcome is Outcome.FAIL else ExitCode.PASS
    run = having(passing(), rules=[rule], outcome=outcome, exit_code=code)
    view = view_of(run)
    lines = [
        said(view.title),
        said(view.lead),
        said(view.detectable_effects),
        said(view.counts_line),
    ]
    for block in chain(view.outcome_table, view.warnings, view.notices):
        cells = chain.from_iterable(row.cells for row in getattr(block, "rows", ()))
        lines += [said(line) for line in (*getattr(block, "lines", ()), *cells)]
    text = " ".join(lines)
    meant = {NAMES[who] for each in named for who in each.who}
    told = {phrase for phrase in NAMES.values() if re.search(rf"\b{re.escape(phrase)}\b", text)}
    assert told == meant


@pytest.mark.parametrize("name", CANONICAL)
def test_the_first_screen_has_at_most_eight_rows(name):
    view = view_of(CANONICAL[name]())
    assert sum(len(getattr(block, "rows", ())) for block in view.outcome_table) <= 8


def test_more_findings_than_fit_are_counted():
    many = [node(Level.IDENTITY, [who], estimate=0.3) for who in EVERYBODY]
    since = about("answers", *many[:3], against=Against.BASELINE)
    text = render_comment(view_of(failed(about("answers", *many), since)))
    assert "3 further rows are not shown here" in text


def test_every_difference_names_what_it_is_beside():
    for against, words in (
        (Against.CONTROL, "than for control prompts"),
        (Against.BASELINE, "than at the baseline, beside control prompts"),
        (Against.REFERENCE, "than for control prompts, beside the reference"),
    ):
        column = "shift/answer" if against is Against.REFERENCE else "controlled"
        named = node(Level.IDENTITY, [ELDERLY], estimate=0.3, column=column)
        assert words in said(view_of(failed(about("answers", named, against=against))).lead)


@pytest.mark.parametrize(
    ("outcome", "column", "rate", "sources", "words"),
    [
        ("answers", "controlled", 0.44, 25, "44.0 % (11 of 25)"),
        ("answers", "controlled", 0.44, 0, "44.0 %"),
        ("answers", "controlled", 0.4437, 25, "44.4 %"),
        ("documents", "overlap", -0.27, 100, "27.0 %"),
        ("answers", "log-odds", 0.03, 100, "–"),
        ("answers", "controlled", None, 25, "–"),
    ],
)
def test_a_count_stands_only_where_it_counts_sources(outcome, column, rate, sources, words):
    from fairgate.reports.sections.parity import level

    assert level(rate, OUTCOMES[outcome].by_column[column], sources) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0.0 points"), (0.12, "+12.0 points"), (-0.12, "\N{MINUS SIGN}12.0 points")],
)
def test_only_a_difference_has_a_sign(value, words):
    from fairgate.reports.sections.parity import points

    assert points(value, OUTCOMES["answers"].by_column["controlled"], signed=True) == words


def test_green_says_what_it_would_have_missed():
    view = view_of(passing())
    for render in RENDERED:
        text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", render(view)).replace("\u00a0", " "))
        text = text.replace("&nbsp;", " ")
        assert "14.1 points for one identity, 8.3 a category, 5.2 everybody" in text
