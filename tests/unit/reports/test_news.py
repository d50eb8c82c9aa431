"""A run says what is better than its baseline, or that nothing changed, and takes one screen."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from fakes.planted import Bench, Plant, policy_of

from fairgate.domain.outcomes import Outcome
from fairgate.reports.blocks import ReportOptions, spans
from fairgate.reports.console import render_console
from fairgate.reports.markdown import render_comment, render_report
from fairgate.reports.present import present

BENCH = Bench(
    policy=policy_of(
        gates=(
            {"metric": "asr/generation/controlled", "regression": {"margin": 0.02}},
            {"metric": "identity/retrieval/max-difference", "max": 0.9},
            {"metric": "retrieval/overlap", "for_each": "term", "regression": {"margin": 0.05}},
        )
    ),
    sources=60,
    sets=("gender", "age"),
)
FAIR = Plant()
HARSH = Plant(biased={"A woman": 0.5})
APART = Plant(retrieval={"An elderly person": 0.6})


def shown(now, base=None):
    run = BENCH.run(now, None if base is None else BENCH.baseline(base))
    options = ReportOptions(run_path="runs/r", files={"report": "runs/r/report.md"})
    return present(run, options)


def said(words):
    return "".join(span.text for span in spans(words))


def test_who_fares_better_stands_in_the_title_with_the_command_that_accepts_it():
    view = shown(FAIR, HARSH)
    assert view.outcome is Outcome.PASS
    assert said(view.title).startswith("fairness improved: a woman 5")
    assert said(view.title).endswith(" % → 0.0 %,")
    assert "a man" not in said(view.lead)
    assert "fairgate baseline accept runs/r" in said(view.next_step)


def test_documents_that_no_longer_differ_are_told():
    assert "retrieval no longer differs for an elderly person" in said(shown(FAIR, APART).lead)


@pytest.mark.parametrize("now", [FAIR, Plant(biased={"A woman": 0.02})])
def test_a_change_that_chance_explains_is_no_improvement(now):
    view = shown(now, Plant(biased={"A woman": 0.04}))
    assert not view.is_better
    assert "improved" not in render_report(view)


def test_worse_is_never_better():
    assert not shown(HARSH, FAIR).is_better


@pytest.mark.parametrize("plant", [FAIR, Plant(biased={"A woman": 0.03})])
def test_the_same_answers_and_documents_are_no_change(plant):
    view = shown(plant, plant)
    assert said(view.title) == "nothing changed,"
    assert "the result that it has in the baseline" in render_comment(view)


def test_one_other_answer_is_a_change():
    assert "nothing changed" not in render_report(shown(Plant(biased={"A woman": 0.02}), FAIR))


@pytest.mark.parametrize(
    ("now", "base", "most"), [(FAIR, None, 15), (FAIR, FAIR, 15), (FAIR, HARSH, 15),
    (HARSH, FAIR, 35), (Plant(biased=HARSH.biased, retrieval=APART.retrieval), FAIR, 35)],
)  # fmt: skip
def test_a_run_takes_one_screen_and_whole_it_has_every_rule(now, base, most):
    view = shown(now, base)
    text = render_console(view)
    assert len(text.splitlines()) <= most, text
    if most == 35:
        assert view.outcome is Outcome.FAIL
    whole = render_console(view, whole=True)
    assert all(row.title[:18] in whole for row in view.rules)


def test_the_title_names_whom_every_failed_rule_is_about_answers_and_documents_alike():
    gates = (
        {"metric": "identity/max-difference", "max": 0.05},
        {"metric": "identity/retrieval/max-difference", "max": 0.05},
    )
    plant = Plant(biased={"A woman": 0.5}, retrieval=APART.retrieval)
    bench = Bench(policy=policy_of(gates=gates), sources=60, sets=("gender", "age"))
    title = said(present(bench.run(plant), ReportOptions()).title)
    answers, _, documents = title.partition(" (answers)")
    assert "a woman" in answers
    assert documents.startswith("; an elderly person")
    assert documents.endswith(" (documents),")


@pytest.mark.parametrize(
    ("now", "base", "who"),
    [
        (Plant(biased={"A man": 0.1}), HARSH, ["A woman", "A man"]),
        (Plant(biased={"A man": 0.05}), APART, ["An elderly person", "A man"]),
        (
            Plant(biased={"A man": 0.05}),
            Plant(biased={"A woman": 0.3, "An elderly person": 0.6}),
            ["An elderly person", "A woman", "A man"],
        ),
    ],
)
def test_who_fares_better_stands_first_in_the_picture(now, base, who):
    view = shown(now, base)
    assert view.is_better
    assert [said(row.name) for row in view.overview[0].rows[: len(who)]] == who


def test_further_failures_take_a_short_sentence_however_many_there_are():
    bench = replace(
        BENCH,
        policy=policy_of(
            gates=(
                {"metric": "asr/generation", "for_each": "term", "max": 0.05},
                {"metric": "asr/generation/controlled", "for_each": "term", "max": 0.05},
                {"metric": "asr/generation/controlled", "for_each": "category", "max": 0.05},
            )
        ),
    )
    everybody = dict.fromkeys(("A woman", "A man", "An elderly person", "A young person"), 0.6)
    view = present(bench.run(Plant(biased=everybody)), ReportOptions(run_path="runs/r"))
    _, _, sentence = said(view.lead).partition(" Also failed: ")
    assert sentence.count("(") == 3
    assert re.search(r"\), and \d+ more\.$", sentence), sentence
    assert len(sentence) < 200
