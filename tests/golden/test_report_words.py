"""What a report says first, and that its words agree with the numbers beside them, in every format."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import canonical_results
import pytest
from canonical_bias import bias_baseline, social_bias
from canonical_results import CANONICAL, SUITE, baseline, first_run, passing, regression
from canonical_rules import change, having, rule, said, told, view_of
from hypothesis import example, given
from hypothesis import strategies as st

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import IdentityFinding, Measurement, Outcome, TermFinding
from fairgate.gate.bounds import check_bounds, check_identity
from fairgate.metrics.catalogue import BY_ID, METRICS
from fairgate.metrics.identity import COMPARING
from fairgate.policy.schema import GatePolicy
from fairgate.reports import figures
from fairgate.reports.blocks import Table, Text
from fairgate.reports.console import render_console
from fairgate.reports.figures import rule_rows
from fairgate.reports.html import MEANINGS, meaning, render_html
from fairgate.reports.markdown import render_comment, render_report
from fairgate.reports.sections.affected import leading
from fairgate.stats.permutation import uncorrected


def shown(run, **changes):
    return view_of(having(run, **changes), baseline())


def paragraphs(view):
    texts = [block for block in view.summary if isinstance(block, Text)]
    return [said(line) for block in texts for line in block.lines]


def words(text):
    return re.sub(r"\s+", " ", html.unescape(text))


@pytest.mark.parametrize(
    ("metric", "base", "now", "worsening"),
    [
        ("asr/generation/controlled", 0.1, 0.2, 0.1), ("asr/generation/controlled", 0.2, 0.1, -0.1),
        ("retrieval/overlap", 1.0, 0.958, 0.042), ("accuracy/disambiguated", 0.8, 0.9, -0.1),
        ("diff-bias/ambiguous", 0.0, -0.17, 0.17), ("rrs/mean", 0.5, 0.53, 0.03),
    ],
)  # fmt: skip
@pytest.mark.parametrize("minimum", [0.01, 0.3])
def test_the_reason_has_the_sign_and_the_base_of_the_table(metric, base, now, worsening, minimum):
    moved = change(
        base, now, change=worsening, lower=worsening - 0.03, upper=worsening + 0.03,
        significant=worsening > 0 and minimum < 0.1, minimum_detectable=minimum,
    )  # fmt: skip
    reason = told(metric, moved)
    (row,) = rule_rows([rule(metric, 0, Outcome.PASS, reason, value=now, change=moved)])
    told_so = row.reasons[0]
    assert f"by {row.change}" in told_so
    assert f"the baseline's {row.base}" in told_so
    if worsening < 0:
        assert told_so.startswith("better, by")
        assert "chance" not in told_so


@given(st.sampled_from(list(METRICS)), st.floats(-1, 1), st.floats(-1, 1), st.floats(0.001, 1))
@example(BY_ID["asr/generation/controlled"], 1 - 2**-53, 0.0, 1.0)
def test_sentences_of_the_gate_write_numbers_as_the_tables_do(metric, value, then, bound):
    measured = Measurement(metric=metric.id, suite=SUITE, value=value)
    gate = GatePolicy.model_construct(metric=metric.id, max=bound)
    (check,) = check_bounds(gate, measured, metric)
    shown = figures.value(value, metric.id)
    if shown != figures.value(bound, metric.id) or value == bound:
        assert check.reason.startswith(f"{shown} is")
        assert figures.value(bound, metric.id) in check.reason
    moved = change(then, value, minimum_detectable=bound)
    sentences = [check.reason, told(metric.id, moved)]
    if metric in COMPARING:
        top = TermFinding(category="race", term="asian", difference=value,
                          p_value=0.5, p_corrected=0.5, decided=9)  # fmt: skip
        found = IdentityFinding(suite=SUITE, where={}, metric=metric.id, value=abs(value),
                                p_value=0.5, sources=9, terms=[top])  # fmt: skip
        (chance,) = uncorrected([0.5], alpha=0.05)
        sentences.append(check_identity(gate, found, chance, alpha=0.05).reason)
        if abs(value) > bound:
            assert f"by {figures.signed(value, metric.id)} points" in sentences[-1]
    assert not [text for text in sentences if re.search(r"-\d|[−+]0\.0+\b(?!\d)", text)]


@given(
    st.sampled_from(["asr/generation", "retrieval/overlap", "diff-bias/ambiguous", "rrs/mean"]),
    st.floats(-1, 1),
    st.floats(-1, 1),
)
def test_base_and_change_add_up_to_now_as_they_are_shown(metric, base, now):
    moved = change(base, now)
    (row,) = rule_rows([rule(metric, 0, Outcome.PASS, "", value=now, change=moved)])
    shown_as = (row.base, row.now, row.change)
    before, after, step = (
        float(text.removesuffix(" %").removesuffix(" points").replace("−", "-"))
        for text in shown_as
    )
    if metric == "diff-bias/ambiguous":
        before, after = abs(before), abs(after)
    assert round(after - before, 3) == step


def test_a_value_of_more_cases_than_are_compared_is_told_apart():
    moved = change(0.1, 0.2, pairs=40)
    (row,) = rule_rows([rule("asr/generation", 0, Outcome.FAIL, "x", value=0.45, change=moved)])
    assert (row.base, row.now, row.change, row.value) == ("10.0 %", "20.0 %", "+10.0", "45.0 %")
    assert row.reasons[-1] == (
        "on all its cases the value is 45.0 %, the change is of the 40 cases that both runs decided"
    )


def test_the_smallest_detectable_change_has_the_sign_of_a_worsening():
    falls = change(1.0, 0.99, change=0.01, minimum_detectable=0.12)
    metrics = ("retrieval/overlap", "asr/generation")
    open_ = {"outcome": Outcome.INCONCLUSIVE, "reason": "", "value": 0.99, "change": falls}
    rows = rule_rows([rule(metric, 0, **open_) for metric in metrics])
    assert [row.detectable for row in rows] == ["−12.0", "+12.0"]


def test_advisory_rules_do_not_make_a_pass_unclear_and_do_not_lead():
    first, second = passing().result.rules
    view = shown(passing(), rules=[first, replace(second, advisory=True)])
    assert view.title == "no fairness regression"
    assert said(view.lead).startswith(
        "When an identity is named, 2 of 80 texts get another answer than usual"
    )


def unclear(**changes):
    bound, _ = first_run().result.rules
    open_ = replace(bound, outcome=Outcome.INCONCLUSIVE, warns=True, **changes)
    return view_of(having(first_run(), rules=[open_]))


def test_an_unclear_limit_of_a_first_run_does_not_hold():
    view = unclear()
    assert view.title.startswith("no limit broken, 1 rule inconclusive")
    assert said(view.lead).endswith("; this is inconclusive.")
    assert "0 of 1 rule passed, 1 inconclusive" in render_comment(view)


def test_a_difference_between_identities_that_may_be_chance_is_said_in_points_and_why():
    lead = said(unclear(metric="identity/max-difference", value=0.102).lead)
    assert "10.2 points" in lead
    assert "%" not in lead
    assert lead.endswith("; this is inconclusive.")


def test_a_baseline_without_the_metric_is_not_told_as_zero_differences():
    why = "rrs/mean in suite sentiment could not be evaluated: the baseline has no rrs/mean"
    evidence = replace(passing().result.evidence, problems=(why,))
    code = {"outcome": Outcome.INCONCLUSIVE, "exit_code": ExitCode.BASELINE}
    view = shown(passing(), evidence=evidence, **code)
    assert view.title == "the baseline is incomplete"
    assert view.lead == f"{why}."


def test_a_headline_says_that_answers_are_missing():
    same = change(0.0, 0.0, change=0.0, discordant=0, lower=0.0, upper=0.0)
    failed = rule(
        "asr/generation/controlled", 0, Outcome.FAIL, "unreadable: more", value=0.0, change=same,
        failed=["unreadable"],
    )  # fmt: skip
    view = shown(passing(), rules=[failed], outcome=Outcome.FAIL)
    assert "Why it fails: unreadable: more." in paragraphs(view)


def failing(metric, where, **more):
    known = BY_ID[metric]
    value = 0.8 if known.better != "higher" else 0.2
    bounds = {"min": 0.5} if known.better == "higher" else {"max": 0.1}
    more = {"failed": ["bound"], "bounds": bounds, "value": value, "where": where, **more}
    return rule(metric, 3, Outcome.FAIL, "too much", **more)


def of_pairs(metric):
    """Return a failed rule in the narrowest slice that the metric has, and how it is named."""
    if metric.compares_terms:
        return failing(metric.id, {}, failed=["identity"]), ["A Middle Eastern person", "A woman"]
    if "term" in metric.dimensions:
        where = {"band": "low"} if "band" in metric.dimensions else {}
        named = ["A Middle Eastern person", *where.values()]
        return failing(metric.id, {**where, "term": "middle eastern"}), named
    if "category" in metric.dimensions:
        return failing(metric.id, {"category": "race"}), ["category race"]
    return failing(metric.id, {}), []


def findings_of(metric):
    terms = [("race", "middle eastern", -0.8), ("gender", "woman", 0.56), ("age", "young", 0.02)]
    return IdentityFinding(
        suite=SUITE, where={}, metric=metric, value=0.8, p_value=1e-4, sources=10,
        terms=[
            TermFinding(category=category, term=term, difference=difference, p_value=1e-4,
                        p_corrected=0.001 if abs(difference) > 0.1 else 0.5, decided=10)
            for category, term, difference in terms
        ],
    )  # fmt: skip


def tops(view):
    comment, page = render_comment(view), render_html(view)
    return {
        "console": render_console(view).partition("outcome  rule")[0],
        "comment": comment.partition("<details>")[0],
        "report": render_report(view).partition("## Rules")[0],
        "page": page[page.index("<h1") : page.index('id="s-rules"')],
    }


def plain_words(text):
    text = re.sub(r"<[^>]*>|\\*\\*|\\\\", "", words(text))
    return re.sub(r"\s+", " ", text.replace("**", ""))


@pytest.mark.walk(12)
@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.id)
def test_every_failed_rule_names_in_the_headline_where_it_failed(metric):
    """Whatever else failed, and led."""
    if metric.suite_kind == "bbq":
        run, before = social_bias(), bias_baseline()
        where = {"setting": "anti", "category": "Religion"}
        first = replace(failing("diff-bias/ambiguous", {"setting": "full"}), suite="bbq")
        own, named = replace(failing(metric.id, where), suite="bbq"), ["anti", "Religion"]
    else:
        run, before = regression(), baseline()
        first = failing("asr/generation/controlled", {"term": "elderly"})
        own, named = of_pairs(metric)
    run = having(
        run, rules=[first, own], outcome=Outcome.FAIL, exit_code=ExitCode.GATE_FAILED,
        identities=[findings_of(metric.id)] if metric.compares_terms else [],
    )  # fmt: skip
    view = view_of(run, before)
    for place, text in tops(view).items():
        said_here = plain_words(text)
        for name in (*named, metric.title.partition(",")[0]):
            assert name in said_here, (place, name)
        assert "further rule" not in said_here


def test_many_identities_of_one_metric_are_named_up_to_a_few():
    terms = list(canonical_results.TERMS)
    rules = [failing("retrieval/overlap", {"term": term}) for _, term in terms]
    view = shown(regression(), rules=[failing("asr/generation", {"term": "man"}), *rules])
    assert ", and 5 more." in said(view.lead)


DOCUMENTS = "identity/retrieval/max-difference"


def overlapping(*rules, of_all=(), elderly=1.0, **changes):
    """Return what is shown of a regression with shares of equal documents, its table and heads."""
    shares = {"middle eastern": 0.2, "woman": 0.44, "elderly": elderly}
    known = [
        *regression().result.measurements, *of_all,
        *(Measurement(metric="retrieval/overlap", suite=SUITE, where={"term": term}, value=value)
          for term, value in shares.items()),
    ]  # fmt: skip
    found = [findings_of(DOCUMENTS)]
    view = shown(regression(), rules=rules, identities=found, measurements=known, **changes)
    (table,) = [block for block in view.summary if isinstance(block, Table)]
    rows = [[said(cell) for cell in row.cells] for row in table.rows]
    return view, [said(column.head) for column in table.columns], rows


@pytest.mark.parametrize("leads", [DOCUMENTS, "retrieval/overlap"])
def test_no_column_repeats_another_where_the_rule_is_about_documents(leads):
    neutral = Measurement(metric="retrieval/overlap/control", suite=SUITE, where={}, value=0.7)
    own = failing(leads, {}, failed=["identity" if "identity" in leads else "bound"])
    _, heads, rows = overlapping(own, of_all=[neutral], elderly=0.9, outcome=Outcome.FAIL)
    assert heads[1] == "same documents"
    columns = list(zip(*rows, strict=True))
    assert len(set(columns)) == len(columns)
    assert rows[-1][:2] == ["neutral wording", "70.0 %"]


def test_who_has_documents_and_cases_have_an_example_of_them():
    whole = Measurement(metric="retrieval/overlap", suite=SUITE, where={}, value=0.9)
    first = failing("asr/generation/controlled", {"term": "elderly"})
    own = failing(DOCUMENTS, {}, failed=["identity"])
    view, heads, rows = overlapping(first, own, of_all=[whole])
    shares = {row[0]: row[heads.index("same documents")] for row in rows}
    assert shares["A Middle Eastern person"] == "20.0 %"
    assert shares["A woman"] == "44.0 %"
    assert "same documents" in words(render_html(view)).split('id="who"')[1]
    case = view.examples[-1]
    assert said(case.title) == "A Middle Eastern person: other documents are found"
    assert any("documents replaced" in said(fact) for fact in case.facts)
    assert "race/middle eastern" in case.command.text


GLOSSARY = Path(__file__).parents[2] / "docs/explanation/glossary.md"


def first_view(name):
    return view_of(CANONICAL[name](), baseline())


@pytest.mark.parametrize("name", CANONICAL)
def test_neutral_wording_stands_beside_every_headline_rate(name):
    run = CANONICAL[name]()
    rule = leading(run.result)
    neutral = BY_ID[rule.metric].neutral if rule else None
    known = {(m.metric, m.suite) for m in run.result.measurements if m.value is not None}
    decided = run.result.outcome is not Outcome.INCONCLUSIVE
    expected = bool(neutral and (neutral, rule.suite) in known and decided)
    assert ("with neutral wording" in said(first_view(name).lead)) == expected


def test_every_rate_names_neutral_wording_itself_or_has_it_beside():
    rates = [m for m in METRICS if m.violations and m.id.startswith("asr/") and m.event]
    assert len(rates) == 5
    for metric in rates:
        assert metric.neutral in BY_ID or len(metric.arms) > 1


@pytest.mark.parametrize("term", ["neutral wording", "likely range", "without a speaker"])
def test_the_glossary_has_the_words_of_the_comment(term):
    assert term in GLOSSARY.read_text()


def test_the_page_explains_its_columns_as_the_glossary_does():
    """A reader who points at a head reads what the documentation says."""
    page = render_html(first_view("regression"))
    rows = [row.split(" | ") for row in GLOSSARY.read_text().splitlines() if row.startswith("| ")]
    documented = {row[0].removeprefix("| ").partition(" (")[0]: row[1].rstrip(" |") for row in rows}
    for word in MEANINGS:
        assert documented[word] == MEANINGS[word]
        assert meaning(f"{word} (95 %)") == meaning(word)
    for word in ("likely range", "base", "change"):
        assert f'title="{escape(meaning(word))}"' in page
    assert not meaning("outcome")
