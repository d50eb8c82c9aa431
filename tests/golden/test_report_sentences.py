"""Every sentence that a report can print: no empty slot, no raw backtick, the right unit and people."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from canonical_bias import bias_baseline, social_bias
from canonical_results import SUITE, baseline, first_run, passing, regression
from canonical_rules import having, rule, said, view_of

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import IdentityFinding, Measurement, Outcome, TermFinding
from fairgate.domain.wording import within_sentence
from fairgate.metrics.catalogue import BY_ID, METRICS
from fairgate.metrics.identity import COMPARING
from fairgate.reports.blocks import Text, spans
from fairgate.reports.console import render_console
from fairgate.reports.html import render_html
from fairgate.reports.markdown import render_comment, render_report
from fairgate.reports.present import present

FAULTS = {
    "an empty slot": r"\bfor[,.;]| [,;.](?: |$)|\(\)|: [;,.]|\bat :|\bis [,.;]|\bnone named\b|  |,,|\{who|\{val",
    "a raw backtick": r"`",
    "a capital inside": r"(?<=[a-z,] )(?:A|An) (?=[A-Za-z])",
    "a wrong article": r"\b[Aa] (?=[aeiouAEIO])(?!one|uni|use|eu|“)|\b[Aa]n (?=[bcdfgjklmnpqrstvwxyz])",
    "a difference in per cent": r"(?:by|is) [+−]?[\d.]+ %(?! of)(?: more| fewer| less| than|, beyond)|[+−][\d.]+ %",
    "braces taken apart": r"\{\w+`",
}
SLICES = (
    {}, {"category": "race"}, {"term": "woman"}, {"term": "middle eastern"},
    {"relation": "set-equivalence"}, {"relation": "set-equivalence", "term": "woman"},
)  # fmt: skip
OUTCOMES = (Outcome.FAIL, Outcome.PASS, Outcome.INCONCLUSIVE)


def failed_rule(metric, where, value, outcome, suite=SUITE):
    failed = (
        ()
        if outcome is not Outcome.FAIL
        else ("identity",)
        if metric.compares_terms
        else ("bound",)
    )
    return rule(
        metric.id, 0, outcome, "too much", value=value, where=where, suite=suite, failed=failed,
        bounds={"max": 0.01}, warns=outcome is Outcome.INCONCLUSIVE,
    )  # fmt: skip


def finding(metric, *terms, where=()):
    return IdentityFinding(
        suite=SUITE, where=dict(where), metric=metric, value=abs(terms[0][2]), p_value=1e-4,
        sources=10, phrases=20, by_chance=0.02,
        terms=[
            TermFinding(category=category, term=term, difference=difference, p_value=1e-4,
                        p_corrected=1e-3, decided=10)
            for category, term, difference in terms
        ],
    )  # fmt: skip


def runs(step=1):
    """Yield what is tried and a view: every metric, slice, sign and outcome; of all, every `step`th."""
    number = 0
    for metric in METRICS:
        is_bias = metric.suite_kind == "bbq"
        run, before = (social_bias(), bias_baseline()) if is_bias else (regression(), baseline())
        slices = ({}, {"setting": "stereo"}, {"setting": "anti", "category": "Age"})
        for where in slices if is_bias else SLICES:
            for value in (0.345, max(metric.least, -0.022)):
                for outcome in OUTCOMES:
                    own = failed_rule(metric, where, value, outcome, "bbq" if is_bias else SUITE)
                    terms = [("gender", "woman", value), ("race", "middle eastern", -value / 2)]
                    found = (
                        [finding(metric.id, *terms, where=where.items())]
                        if metric.compares_terms
                        else []
                    )
                    further = [own, replace(run.result.rules[0], outcome=Outcome.PASS, failed=())]
                    exits = {Outcome.FAIL: ExitCode.GATE_FAILED}.get(outcome, ExitCode.PASS)
                    done = Outcome.FAIL if outcome is Outcome.FAIL else Outcome.PASS
                    for rules in (further, further[::-1])[: 1 + (outcome is Outcome.FAIL)]:
                        number += 1
                        if number % step:
                            continue
                        shown = having(
                            run, rules=rules, identities=found, outcome=done, exit_code=exits
                        )
                        yield (metric.id, where, value, outcome.value), view_of(shown, before)


def sentences(view):
    """Yield what is said first in words, as the page has it."""
    yield from (
        said(spans(words)) for words in (view.title, view.lead, view.next_step, view.standing)
    )
    for block in (*view.warnings, *view.summary, *view.remarks):
        if isinstance(block, Text):
            yield from (said(spans(words)) for words in block.lines)


def in_page(view):
    page = render_html(view)
    page = page[page.index("<body>") : page.rindex("<script>")]
    page = re.sub(r"(?s)<script.*?</script>", "", page)
    return html.unescape(re.sub(r"<[^>]*>", "", page))


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.whole)])
def test_every_first_sentence_is_whole(step):
    wrong, walked = {}, set()
    for tried, view in runs(step):
        walked |= {tried[0], str(tried[1]), tried[2] > 0, tried[3]}
        for text in sentences(view):
            for fault, pattern in FAULTS.items():
                if found := re.search(pattern, text):
                    wrong.setdefault((fault, tried[0]), (tried, found[0], text))
    assert not wrong, "\n".join(map(str, wrong.items()))
    assert walked >= {*(metric.id for metric in METRICS), *map(str, SLICES), True, False, *OUTCOMES}


NOTICES = (
    "the waiver of Ann for `asr/generation {category: age, suite: x}` is no longer needed",
    "add the gate `{metric: identity/retrieval/max-difference, max: 0.35}`",
    "set {category: age} in `policy.yaml`, or (`--limit`).",
)


@pytest.mark.parametrize("made", [passing, regression, first_run])
def test_no_rendering_shows_a_backtick_or_takes_braces_apart(made):
    run = made()
    reasons = [replace(one, reasons=[*one.reasons, *NOTICES]) for one in run.result.rules]
    view = view_of(having(run, notices=NOTICES, rules=reasons), baseline())
    assert "`" not in in_page(view)
    assert "`" not in render_console(view)
    assert "at :" not in render_report(view)
    for text in (render_report(view), render_comment(view)):
        assert not re.search(FAULTS["braces taken apart"], text)
        assert "{category: age" in text or "NOTE" not in text


HARM = {one.id: -1 if "retrieval" in one.id or "log-odds" in one.id else 1 for one in COMPARING}


@pytest.mark.parametrize("metric", HARM)
def test_a_failed_title_names_whom_a_limit_is_broken_for(metric):
    """Whoever else stands on the far side of the difference, and however many there are."""
    run, wrong = regression(), []
    for side in (1, -1):
        for others in (["middle eastern"], ["middle eastern", "young"], ["man", "gay", "white"]):
            for share in (1, 0.4):
                top = [("gender", "woman", 0.5 * side)]
                rest = [("race", term, -0.5 * share * side) for term in others]
                own = failed_rule(BY_ID[metric], {}, 0.5, Outcome.FAIL)
                shown = having(
                    run, rules=[own], identities=[finding(metric, *top, *rest)],
                    outcome=Outcome.FAIL, exit_code=ExitCode.GATE_FAILED,
                )  # fmt: skip
                title = said(view_of(shown, baseline()).title)
                worse = {term for _, term, amount in (*top, *rest) if amount * HARM[metric] > 0}
                named = {
                    term
                    for _, term, _ in (*top, *rest)
                    if re.search(rf"\b{term}\b", title, re.IGNORECASE)
                }
                if named != worse:
                    wrong.append((side, others, share, title))
    assert not wrong


def test_a_limit_broken_for_one_by_a_signed_value_names_the_side():
    run = regression()
    for metric, worse in (("exposure/net", -1), ("direction/net", 1), ("asr/generation/net", 1)):
        for side in (1, -1):
            own = failed_rule(BY_ID[metric], {"term": "man"}, 0.371 * side, Outcome.FAIL)
            shown = having(
                run,
                rules=[own],
                identities=[],
                outcome=Outcome.FAIL,
                exit_code=ExitCode.GATE_FAILED,
            )
            title = said(view_of(shown, baseline()).title)
            how = "for a man" if side == worse else "in favour of a man"
            assert (
                title
                == f"a fairness limit is broken {how}"
                + " (documents)" * (metric == "exposure/net")
                + ","
            )


def test_the_example_is_about_whom_the_title_names():
    """Whatever is new elsewhere, and wherever most answers changed."""
    run, wrong = regression(), []
    for term in ("elderly", "gay", "woman", "middle eastern", "man"):
        own = failed_rule(BY_ID["asr/generation/controlled"], {"term": term}, 0.3, Outcome.FAIL)
        shown = having(run, rules=[own], outcome=Outcome.FAIL, exit_code=ExitCode.GATE_FAILED)
        view = view_of(shown, baseline(), has_explain=True, run_path="r")
        examples = [text for text in sentences(view) if text.startswith("For example")]
        title = said(view.title)
        named = title.partition(" for ")[2].rstrip(",")
        if any(named not in text for text in examples) or (term != "man" and not examples):
            wrong.append((title, examples))
        if term != "man" and term not in said(view.next_step):
            wrong.append((title, said(view.next_step)))
    assert not wrong


def test_a_signed_value_is_said_in_points_with_its_direction():
    cases = {
        ("exposure/net", -0.371): "A document that names a woman is less likely to be seen than with "
        "neutral wording, by 37.1 points.",
        ("direction/net", -0.12): "Naming a woman makes answers better by 12.0 points, beyond what "
        "neutral wording does.",
        ("exposure/ratio", 0.07): "A document that names a woman is seen 0.070 times as often as with "
        "neutral wording.",
    }  # fmt: skip
    for (metric, value), expected in cases.items():
        own = failed_rule(BY_ID[metric], {"term": "woman"}, value, Outcome.PASS)
        view = view_of(having(passing(), rules=[own]))
        assert said(view.lead) == expected


def test_a_net_of_counts_is_what_a_product_manager_reads():
    """Counts of both arms, then the difference; never a share of a difference."""
    run = regression()
    own = failed_rule(BY_ID["asr/generation/net"], {"term": "elderly"}, 0.333, Outcome.FAIL)
    shown = having(run, rules=[own], outcome=Outcome.FAIL, exit_code=ExitCode.GATE_FAILED)
    assert said(view_of(shown).lead) == (
        "When an elderly person speaks, 4 of 10 texts get another answer; with neutral wording, "
        "2 of 30 do (33.3 points more)."
    )
    fewer = having(shown, rules=[replace(own, where={"term": "man"}, value=-0.067)])
    assert said(view_of(fewer).lead).endswith("2 of 30 do (6.7 points fewer).")


def test_names_stay_as_they_are_and_noun_phrases_become_small():
    same = ("An Nguyen Thi", "Emily Brown", "Muslims", "Asian people", "Einer", "")
    assert within_sentence("An Asian person") == "an Asian person"
    assert within_sentence("Elderly people") == "elderly people"
    assert within_sentence("ELDERLY") == "ELDERLY"
    assert [within_sentence(one) for one in same[1:]] == list(same[1:])


def test_measurements_without_a_name_leave_no_slot():
    run = regression()
    odd = Measurement(
        metric="asr/generation/controlled", suite=SUITE, where={"term": ""}, value=0.9, decided=9
    )
    view = view_of(having(run, measurements=[*run.result.measurements, odd]), baseline())
    for text in sentences(view):
        assert not re.search(FAULTS["an empty slot"], text), text


def documents_run(*terms):
    """Return a run of which only a rule about documents failed, for these identities."""
    run = regression()
    shares = {"woman": 0.3, "man": 0.4, "gay": 0.8, "elderly": 0.9}
    known = [
        *run.result.measurements,
        *(Measurement(metric="retrieval/overlap", suite=SUITE, where={"term": term}, value=value)
          for term, value in shares.items()),
    ]  # fmt: skip
    rules = [
        failed_rule(BY_ID["retrieval/overlap"], {"term": term}, shares[term], Outcome.FAIL)
        for term in terms
    ]
    return having(
        run, rules=rules, measurements=known, outcome=Outcome.FAIL, exit_code=ExitCode.GATE_FAILED
    )


def test_a_failure_in_documents_is_shown_by_documents():
    """Title, picture, table, examples and Cases; no heading about answers, wherever some changed."""
    for terms in (("woman",), ("woman", "man"), ("gay",)):
        view = view_of(documents_run(*terms), baseline(), has_explain=True, run_path="r")
        title, page = said(view.title), render_html(view)
        assert all(term in title for term in terms)
        top = page[page.index("<h1") : page.index('id="s-rules"')]
        plain = html.unescape(re.sub(r"<[^>]*>", "", top))
        assert "clearest changed answers" not in page
        assert "Which documents are found instead" in plain
        assert re.search(
            rf"Said by an? {terms[0]}.*finds other documents: doc-5\d\d \(“Text", plain
        )
        (picture,) = view.overview
        failed = [said(row.name) for row in picture.rows if row.is_failed]
        assert [name.split()[1] for name in failed] == list(terms)
        assert [panel.head for panel in picture.panels] == ["same documents", "changed answers"]
        assert {row.bars[0].now.shown for row in picture.rows} > {"30.0 %", "40.0 %", "80.0 %"}
        assert all(
            row.bars[0].is_failed and not row.bars[1].is_failed
            for row in picture.rows[: len(terms)]
        )
        assert "Text of doc-5" in plain, "what came in"
        assert re.search(r"Text of doc-\d\d?\.", plain), "what went out"
        for text in (render_report(view), render_comment(view)):
            assert re.search(r"In: `doc-5\d\d` `Text of doc-5", text)
            assert re.search(r"Out: `doc-\d+` `Text of doc-\d+", text)
        (listed,) = [s for s in view.sections if s.id == "all-cases"]
        tags = [row[0] for row in listed.blocks[0].data["rows"]]
        assert tags[0] == 4, "other documents stand first"
        assert not re.search(r"`", in_page(view))


def test_the_picture_holds_everybody_the_failed_first_with_band_and_ticks():
    for made in (passing, regression, first_run):
        view = view_of(made(), None if made is first_run else baseline())
        (picture,) = view.overview
        shown = [said(row.name) for row in picture.rows]
        assert len(shown) == len(set(shown)) == 8
        assert picture.panels[0].low == 0.0
        assert picture.panels[0].high == (0.2 if made is regression else 0.0)
        assert picture.has_base is (made is not first_run)
        marks = [row.is_failed for row in picture.rows]
        assert marks == sorted(marks, reverse=True)
        assert any(marks) is (made is regression)
        page = render_html(view)
        assert page.index('class="overview"') < page.index('id="s-rules"')


def test_both_answers_stand_side_by_side_with_what_differs_marked():
    for redact in ("none", "excerpt", "hash"):
        view = view_of(regression(), baseline(), redact=redact)
        for case in view.examples:
            before, after = case.sides
            assert said(before.answer) != said(after.answer)
            changed = [span for span in spans(after.answer) if span.tone == "changed"]
            assert changed
            marked = [span for span in spans(after.text) if span.tone == "changed"]
            assert bool(marked) is (redact != "hash")


@pytest.mark.parametrize("now", [0.5, 0.54, 0.6, -0.5])
@pytest.mark.parametrize("then", [None, "same", "other", "chance"])
def test_a_difference_that_the_baseline_had_is_known_and_a_new_one_warns(now, then):
    """Known: the same identity, side and test, and not larger by more than 5 points."""
    metric = "identity/max-difference"
    who = {"same": "woman", "chance": "woman", "other": "young"}
    was = None
    if then is not None:
        was = finding(metric, ("gender", who[then], 0.5))
        if then == "chance":
            was = replace(was, p_value=0.4)
    found = finding(metric, ("gender", "woman", now))
    run = having(passing(), identities=[found])
    run.gate_input._differed[metric, SUITE, frozenset()] = was
    view = view_of(run, baseline())
    view_given = view.result.gate_input
    view_given._differed[metric, SUITE, frozenset()] = was
    view = present(replace(run, result=view.result), view.options)
    is_known = then == "same" and now in (0.5, 0.54)
    assert (not view.alerts) is is_known
    assert (view.word == "PASS") is is_known
    notes = " ".join(said(spans(line)) for block in view.remarks for line in block.lines)
    assert ("Known from the baseline: for a woman" in notes) is is_known
    assert ("accepted because: first reviewed run" in notes) is is_known
    assert ("but a woman is not treated like the others" in said(view.title)) is not is_known
