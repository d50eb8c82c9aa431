"""A metric says what it is about and what it needs; nobody guesses it from its name or column."""

from __future__ import annotations

from pathlib import Path

from fairgate.domain.ports import Runtime
from fairgate.gate.loaded_policy import load_policy
from fairgate.metrics import attribution, shift
from fairgate.metrics.catalogue import METRICS


def test_metrics_of_one_column_are_about_the_same_and_need_the_same():
    traits: dict[tuple[str, str], set[tuple[object, ...]]] = {}
    for metric in METRICS:
        by_column = traits.setdefault((metric.units.suite_kind, metric.column), set())
        by_column.add((metric.about, metric.needs.reference, metric.needs.lacking))
    assert {column: found for column, found in traits.items() if len(found) > 1} == {}


def test_metrics_beside_a_reference_need_one_and_no_others_do():
    assert {metric.id for metric in METRICS if metric.needs.reference} == {
        metric.id for metric in shift.METRICS
    }


def test_a_metric_whose_column_a_plain_suite_lacks_says_what_the_suite_needs():
    root = Path(__file__).parents[3]
    policy = root / "policies" / "rag-toxicity.yaml"
    suite = load_policy(policy, Runtime(root=root)).suites["toxicity"]
    absent = [
        metric
        for metric in METRICS
        if metric.units.suite_kind == suite.kind
        and metric.column not in (*suite.columns, *attribution.COLUMNS.values())
    ]
    said = {metric.id for metric in absent if metric.needs.lacking or metric.needs.relation}
    said |= {metric.id for metric in absent if metric.needs.reference}
    assert "drift" in said
    assert [metric.id for metric in absent if metric.id not in said] == []
