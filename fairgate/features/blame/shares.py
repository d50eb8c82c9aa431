"""The change of a rule's value divided among factors, with clustered intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fairgate.domain.measurements import Measurements
from fairgate.domain.outcomes import RuleResult
from fairgate.features.blame.result import ExplainedRule, Factor, Move
from fairgate.features.blame.shapley import Weights, residual_weights, shapley_weights
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import observe
from fairgate.metrics.table import Table
from fairgate.stats.bootstrap import BootstrapSettings, bootstrap_many
from fairgate.stats.interval import Interval, IntervalOrReason, NoInterval
from fairgate.stats.observations import (
    ClusterTotals,
    Observations,
    cluster_totals,
    estimate,
    select,
)

_DECIMALS = 6
_NO_MOVE = "it moved no source"
_MAXIMUM = "the largest of several differences: it has no interval"
Combination = frozenset[Factor]


def divided(
    rule: RuleResult,
    factors: Sequence[Factor],
    tables: Mapping[Combination, Mapping[str, Table]],
    values: Mapping[Combination, Measurements],
    *,
    confidence: float,
    seed: int,
) -> ExplainedRule:
    """Return what each factor moved the rule's value by, on the cases decided in all combinations.

    The moves add up to the whole change. Intervals resample whole sources.
    """
    metric = BY_ID[rule.metric]
    weights = shapley_weights(factors)
    everything = frozenset(factors)
    asked = len(observe(metric, tables[everything][rule.suite], rule.where).keys)
    if metric.compares_terms:
        found = {
            new: measured.value(rule.metric, rule.suite, rule.where) or 0.0
            for new, measured in values.items()
        }
        intervals: list[IntervalOrReason] = [NoInterval(reason=_MAXIMUM)] * len(factors)
        cases = asked
    else:
        observed = _decided_in_all(
            {new: observe(metric, suites[rule.suite], rule.where) for new, suites in tables.items()}
        )
        found = {new: estimate(seen) for new, seen in observed.items()}
        totals = {new: cluster_totals(seen) for new, seen in observed.items()}
        slices = [_combined(weights[factor], totals) for factor in factors]
        settings = BootstrapSettings(confidence=confidence)
        intervals = [
            found if one.informative else NoInterval(reason=_NO_MOVE)
            for one, found in zip(slices, bootstrap_many(slices, settings, seed=seed), strict=True)
        ]
        cases = len(observed[everything].keys)
    is_known = all(math.isfinite(value) for value in found.values())
    whole = found[everything] - found[frozenset()]
    return ExplainedRule(
        metric=rule.metric,
        suite=rule.suite,
        where=dict(rule.where),
        base=_rounded(found[frozenset()]) if is_known else None,
        head=_rounded(found[everything]) if is_known else None,
        cases=cases,
        left_out=asked - cases,
        moves=[
            _move(factor, _weighed(weights[factor], found), whole, interval)
            for factor, interval in zip(factors, intervals, strict=True)
            if is_known
        ],
        residual=_rounded(_weighed(residual_weights(factors), found)) if is_known else 0.0,
    )


def _move(factor: Factor, change: float, whole: float, interval: IntervalOrReason) -> Move:
    if isinstance(interval, Interval):
        ends, note = (_rounded(interval.low), _rounded(interval.high)), ""
    else:
        ends, note = None, interval.reason
    return Move(
        factor=factor,
        change=_rounded(change),
        share=_rounded(change / whole) if abs(whole) > 10**-_DECIMALS else None,
        interval=ends,
        note=note,
    )


def _decided_in_all(
    observed: Mapping[Combination, Observations],
) -> dict[Combination, Observations]:
    """Return the cases that have a value in every combination."""
    decided = np.logical_and.reduce([seen.decided for seen in observed.values()])
    return {new: select(seen, decided) for new, seen in observed.items()}


def _weighed(weights: Weights[Factor], values: Mapping[Combination, float]) -> float:
    return sum(weight * values[new] for new, weight in weights.items())


def _combined(
    weights: Weights[Factor], totals: Mapping[Combination, ClusterTotals]
) -> ClusterTotals:
    """Return a weighted sum of contrasts as one contrast, each combination's arms its own."""
    parts = [totals[new] for new, weight in weights.items() if weight]
    kept = [weight for weight in weights.values() if weight]
    scaled = [part.weights * weight for part, weight in zip(parts, kept, strict=True)]
    joined = ClusterTotals(
        sums=np.concatenate([part.sums for part in parts], axis=1),
        counts=np.concatenate([part.counts for part in parts], axis=1),
        weights=np.concatenate(scaled),
        informative=0,
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = joined.weights / joined.counts.sum(axis=0)
        moved = np.abs((joined.sums * scale).sum(axis=1)) > 1e-12
    return replace(joined, informative=int(np.count_nonzero(moved)))


def _rounded(value: float) -> float:
    return round(float(value), _DECIMALS) + 0.0
