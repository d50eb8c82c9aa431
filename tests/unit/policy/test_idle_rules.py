"""Bounds at the limits of a metric: no run could break them, or none could keep them."""

import pytest
from fakes.policies import parse_policy

from fairgate.domain.errors import PolicyError
from fairgate.metrics.catalogue import METRICS

POLICY = """\
version: 1
name: p
system: {{recorded: a.jsonl}}
suites:
  - {{id: s, task: sentiment, sources: demo-reviews}}
gates:
  - {{metric: {metric}, {rule}}}
"""
NEAR = 1e-6
IDS = {metric.id: metric for metric in METRICS}


def problems(metric, rule):
    try:
        parse_policy(POLICY.format(metric=metric, rule=rule), "p.yaml")
    except PolicyError as error:
        return str(error)
    return ""


def size(metric):
    return max(abs(metric.least), abs(metric.greatest))


@pytest.mark.walk(15)
@pytest.mark.parametrize("metric", METRICS, ids=IDS)
def test_a_bound_that_every_run_keeps_or_none_is_refused(metric):
    is_signed = metric.better == "toward-zero"
    most = size(metric) if is_signed else metric.greatest
    least = 0.0 if is_signed else metric.least
    for key, bound in (("max", most), ("max_abs", size(metric)), ("min", least)):
        for value in (bound, bound + (5 if key != "min" else -5)):
            said = problems(metric.id, f"{key}: {value}")
            assert f"p.yaml:7:{len(metric.id) + 16}" in said
            assert "cannot fail" in said or "greater than or equal to 0" in said
        inside = bound - NEAR if key != "min" else bound + NEAR
        assert problems(metric.id, f"{key}: {inside}") == ""
    assert "no run reaches" in problems(metric.id, f"min: {most + NEAR * 10}")
    assert "no run keeps" in problems(metric.id, f"max: {least - NEAR * 10}")


@pytest.mark.walk(15)
@pytest.mark.parametrize("metric", METRICS, ids=IDS)
def test_a_regression_of_the_whole_range_is_refused(metric):
    widest = size(metric) if metric.better == "toward-zero" else metric.greatest - metric.least
    said = problems(metric.id, f"regression: {widest}")
    assert "cannot fail" in said or widest > 3
    less = min(widest, 3) - 0.01
    assert problems(metric.id, f"regression: {less:g}") == ""


@pytest.mark.walk(4)
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("max: 1.0", "30: asr/generation never exceeds 1, so a bound of 1 cannot fail; lower it, or to print the value without judging it set `report: true` instead"),
        ("max_abs: 100", "30: asr/generation never exceeds 1, so a bound of 100 cannot fail; rates are fractions, so 100 % is 1"),
        ("min: 15", "30: asr/generation never exceeds 1, so no run reaches a `min` of 15; rates are fractions, so 15 % is 0.15"),
        ("max: 0.2, regression: 2", "40: asr/generation never changes by more than 1, so a regression of 2 cannot fail; lower it, or remove it"),
        ("report: true, max: 0.2", "5: gates[0]: `report: true` sets no limit for the value; remove it, or `max`"),
        ("report: true, advisory: true", "5: gates[0]: `report: true` sets no limit for the value; remove it, or `advisory`"),
    ],
)  # fmt: skip
def test_the_sentence_names_the_place_and_the_way_out(rule, expected):
    assert problems("asr/generation", rule) == f"p.yaml:7:{expected}"


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    "bound", ["1e400", "-1e400", "9" * 400, ".inf", ".nan", "true", "'1'", "[1]"]
)
def test_a_bound_that_is_no_number_is_the_schemas_to_refuse(bound):
    assert "p.yaml:7:" in problems("asr/generation", f"max: {bound}")
