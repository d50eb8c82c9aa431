"""What a baseline keeps of those before it, so that a trend has more than two points."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from fairgate.domain.measurements import Measurement, Measurements, slice_of
from fairgate.gate.baseline import AcceptedRun, Baseline
from fairgate.gate.rules import Rule
from fairgate.metrics.catalogue import METRICS

MOST_RUNS = 20
"""Older ones are left out."""
MOST_BYTES = 200
"""Of the entry of one rule; a longer one, of very long names, is left out."""
_COMMIT = 12


def history_with(
    before: Baseline | None, new: Baseline, rules: Sequence[Rule]
) -> list[AcceptedRun]:
    """Return the history of `new`, which takes the place of `before`.

    A run that is accepted once more, with the same figures, date and commit, is one run.
    """
    if before is None:
        return []
    then, now = accepted_run(before, rules), accepted_run(new, rules)
    added = [] if then == now else [then]
    return [*before.history, *added][-MOST_RUNS:]


def accepted_run(baseline: Baseline, rules: Sequence[Rule]) -> AcceptedRun:
    """Return what is kept of a baseline: what rules compare, and what every trend shows."""
    known = Measurements(baseline.measurements)
    kept: dict[object, Measurement] = {}
    for found in _shown(known, rules):
        entry = Measurement(
            metric=found.metric,
            suite=found.suite,
            where=found.where,
            value=found.value,
            interval=found.interval,
        )
        if found.value is not None and len(entry_text(entry).encode()) <= MOST_BYTES:
            kept.setdefault(slice_of(found.metric, found.suite, found.where), entry)
    return AcceptedRun(
        date=baseline.date,
        commit=baseline.provenance.commit[:_COMMIT],
        measurements=list(kept.values()),
    )


def entry_text(item: Measurement) -> str:
    """Return the entry of one rule as a baseline's file holds it."""
    return json.dumps(entry_of(item), ensure_ascii=False, allow_nan=False)


def entry_of(item: Measurement) -> list[object]:
    """Return metric, suite, slice and value, and the interval's two ends where there is one."""
    ends = list(item.interval or ())
    return [item.metric, item.suite, dict(sorted(item.where.items())), item.value, *ends]


def _shown(known: Measurements, rules: Sequence[Rule]) -> Iterator[Measurement]:
    for rule in rules:
        if rule.gate.regression is not None:
            found = known.get(rule.metric.id, rule.suite, rule.where)
            if found is not None:
                yield found
    for metric in METRICS:
        if metric.trend is not None:
            for found in known:
                if found.metric == metric.id and set(found.where) == set(metric.trend):
                    yield found
