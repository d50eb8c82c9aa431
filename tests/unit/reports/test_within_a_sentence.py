"""Names, slices and YAML within a sentence: no capital article, no empty place, one code span."""

import itertools
from dataclasses import replace

import pytest

from fairgate.domain.outcomes import Outcome, RuleResult
from fairgate.domain.wording import within_sentence
from fairgate.gate.decide import _not_evaluated
from fairgate.reports.blocks import Kind, Span, name, spans
from fairgate.reports.escaping import markdown_prose

PHRASES = ("A nurse", "An elderly person", "A Black person", "The night shift", "An Indian person")
NAMES = ("An Nguyen", "A", "Anna", "A B", "elderly", "Ärztin", "")
BEFORE = ("For ", "said by ", ", most for ", ": ", "… ", "(")
AFTER_AN_END = ("", "It fails. ", "Who? ", "Stop! ")


def test_an_identity_within_a_sentence_has_no_capital_article():
    wrong = []
    for phrase, before in itertools.product(PHRASES, BEFORE):
        shown = spans([before, name(phrase)])[1].text
        if shown != phrase[0].lower() + phrase[1:]:
            wrong.append((before, shown))
    for phrase, before in itertools.product(PHRASES, AFTER_AN_END):
        shown = spans([before, name(phrase)])[-1].text
        if shown != phrase:
            wrong.append((before, shown))
    wrong += [(one, within_sentence(one)) for one in NAMES if within_sentence(one) != one]
    first = spans([Span("fail", Kind.MARK), name("A nurse")])[1].text
    assert not wrong
    assert first == "A nurse"
    assert spans(["x ", Span("A nurse", Kind.CODE)])[1].text == "A nurse", "verbatim stays"


def rule(**where):
    return RuleResult(
        metric="asr/generation/net", suite="s", where=where, position=0,
        outcome=Outcome.NOT_EVALUATED, reasons=["nobody answered"],
    )  # fmt: skip


@pytest.mark.parametrize("number", range(5))
def test_slices_that_have_no_value_are_listed_without_an_empty_place(number):
    places = [
        {},
        {"category": "race"},
        {"category": "age"},
        {"term": "woman"},
        {"category": "x", "term": "y"},
    ]
    for some in itertools.permutations(places, number + 1):
        (sentence,) = _not_evaluated([rule(**where) for where in some])
        assert "for ," not in sentence
        assert ", ," not in sentence
        assert ", :" not in sentence
        assert all(value in sentence for where in some for value in where.values())
        assert ("nor for" in sentence) == ({} in some and len(some) > 1)


def test_metrics_that_have_no_value_for_one_reason_are_listed_in_one_sentence():
    """Of each suite; a slice that only one of them lacks is no part of it."""
    metrics = ("asr/retrieval", "rrs/mean", "rrs/low")
    rules = [replace(rule(), metric=metric) for metric in metrics]
    sentence = "asr/retrieval, rrs/mean, rrs/low in suite s could not be evaluated: nobody answered"
    assert _not_evaluated(rules) == [sentence]
    others = [replace(rules[0], suite="t"), replace(rules[0], reasons=["no labels"])]
    of_slice = replace(rules[0], where={"term": "woman"})
    assert len(_not_evaluated([*rules, *others, of_slice])) == 4


def test_yaml_in_a_sentence_is_one_code_span():
    rules = (
        "{category: age}",
        "{metric: a/b, where: {category: age}, max: 0.05}",
        "{a: {b: c}, d: {e: f}}",
    )
    for yaml, (before, after) in itertools.product(
        rules, (("add ", "."), ("", " is wrong"), ("set (", ")"))
    ):
        shown = markdown_prose(f"{before}{yaml}{after}")
        assert f"`{yaml}`" in shown, shown
        assert shown.count("`") == 2, shown
    for open_one in ("{a: b", "a} b", "{{{{", "{`x`}"):
        assert markdown_prose(open_one).count("`") % 2 == 0
