"""Bounds judge the estimate on this fixed suite, or its likely range where the rule says so."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from fairgate.domain import wording
from fairgate.domain.measurements import Better, Measurement
from fairgate.domain.outcomes import Outcome
from fairgate.gate.measure import DECIMALS
from fairgate.metrics.metric import Metric
from fairgate.policy.schema import GatePolicy
from fairgate.stats.interval import Interval, NoInterval, wilson
from fairgate.stats.likely_range import LikelyRange, likely_range
from fairgate.stats.observations import Observations, cluster_totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check of a rule."""

    outcome: Outcome
    reason: str


class BoundKind(StrEnum):
    """How a value is compared with a bound."""

    AT_MOST = "at-most"
    AT_LEAST = "at-least"
    IN_SIZE_AT_MOST = "in-size-at-most"


_INSIDE = {
    BoundKind.AT_MOST: "is within the limit of",
    BoundKind.AT_LEAST: "is within the limit of at least",
    BoundKind.IN_SIZE_AT_MOST: "is in size within the limit of",
}
_OUTSIDE = {
    BoundKind.AT_MOST: "is above the limit of",
    BoundKind.AT_LEAST: "is below the limit of",
    BoundKind.IN_SIZE_AT_MOST: "is in size above the limit of",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attainable:
    """The possible range of a rate whose violations are too few for an interval of its own.

    A rate is at most the share of sources with a violation, and that share has Wilson's interval.
    """

    lowest: float
    highest: float


def attainable_values(
    metric: Metric, observed: Observations, *, confidence: float
) -> Attainable | None:
    """Return a rate's possible range; None where it is no plain rate or nothing is decided."""
    if not metric.is_rate or len(metric.arms) != 1 or metric.better is Better.TOWARD_ZERO:
        return None
    totals = cluster_totals(observed)
    filled = totals.counts[:, 0] > 0
    sums, counts = totals.sums[filled, 0], totals.counts[filled, 0]
    some = wilson(int(np.count_nonzero(sums > 0)), len(sums), confidence=confidence)
    others = wilson(int(np.count_nonzero(sums < counts)), len(sums), confidence=confidence)
    if not isinstance(some, Interval) or not isinstance(others, Interval):
        return None
    return Attainable(lowest=1 - others.high, highest=some.high)


def is_share(metric: Metric) -> bool:
    """Return whether a metric is made of shares of cases: their range follows from the sources."""
    rows = metric.is_rate and metric.row_limits == (0.0, 1.0)
    return rows and metric.better is not Better.TOWARD_ZERO


def range_of(metric: Metric, observed: Observations, *, confidence: float) -> LikelyRange | None:
    """Return what chance leaves open of a value, as it is printed; None where nothing tells it."""
    found = likely_range(observed, confidence=confidence, is_share=is_share(metric))
    if isinstance(found, NoInterval):
        return None
    low, high = (round(end, DECIMALS) + 0.0 for end in (found.low, found.high))
    return replace(found, low=low, high=high)


def check_bounds(
    gate: GatePolicy,
    measured: Measurement,
    metric: Metric,
    possible: Attainable | None = None,
    chance: LikelyRange | None = None,
) -> list[Check]:
    """Return a check for each bound of the gate; one `not-evaluated` where there is no value.

    `possible` stands in for a missing interval where the rule asks for one (`evidence: interval`),
    `chance` is what a rule with `evidence: significant` judges by, and prints.
    """
    if measured.value is None:
        return [Check(outcome=Outcome.NOT_EVALUATED, reason=measured.note or "nothing was decided")]
    asked = []
    if gate.max is not None:
        # What is better the nearer it is to 0 is bounded on both sides of it (SPEC 4).
        is_signed = metric.better is Better.TOWARD_ZERO
        kind = BoundKind.IN_SIZE_AT_MOST if is_signed else BoundKind.AT_MOST
        asked.append((kind, gate.max))
    if gate.min is not None:
        asked.append((BoundKind.AT_LEAST, gate.min))
    if gate.max_abs is not None:
        asked.append((BoundKind.IN_SIZE_AT_MOST, gate.max_abs))
    if gate.evidence == "significant":
        return [_significance_check(*each, measured, metric, chance) for each in asked]
    return [_check(*each, measured, gate, metric, possible) for each in asked]


def _place(
    kind: BoundKind, bound: float, value: float, ends: tuple[float, float]
) -> tuple[bool, bool, bool]:
    """Return whether a value is within its bound, and whether all or nothing of its range is."""
    low, high = ends
    if kind is BoundKind.IN_SIZE_AT_MOST:
        never = min(abs(low), abs(high)) > bound and low * high > 0
        return abs(value) <= bound, max(abs(low), abs(high)) <= bound, never
    if kind is BoundKind.AT_MOST:
        return value <= bound, high <= bound, low > bound
    return value >= bound, low >= bound, high < bound


def _check(
    kind: BoundKind,
    bound: float,
    measured: Measurement,
    gate: GatePolicy,
    metric: Metric,
    possible: Attainable | None,
) -> Check:
    value = measured.value or 0.0
    inside, surely, never = _place(kind, bound, value, measured.interval or (value, value))
    shown = _shown(kind, bound, value, metric, inside=inside)
    if gate.evidence == "interval":
        if not inside:
            whole = ", and so is its whole likely range" if never and measured.interval else ""
            return Check(outcome=Outcome.FAIL, reason=f"{shown}{whole}")
        if measured.interval is None:
            return _attainable_check(kind, bound, shown, measured, metric, possible)
        return _interval_check(shown, surely=surely)
    note = "" if surely or never else "; the limit lies inside its likely range"
    return Check(outcome=Outcome.PASS if inside else Outcome.FAIL, reason=shown + note)


def _significance_check(
    kind: BoundKind,
    bound: float,
    measured: Measurement,
    metric: Metric,
    chance: LikelyRange | None,
) -> Check:
    """Fail where the whole likely range is beyond the bound, and nowhere else."""
    value = measured.value or 0.0
    ends = (-math.inf, math.inf) if chance is None else (chance.low, chance.high)
    inside, surely, never = _place(kind, bound, value, ends)
    shown = _shown(kind, bound, value, metric, inside=inside)
    if inside:
        note = "" if surely else "; the limit lies inside its likely range"
        return Check(outcome=Outcome.PASS, reason=f"{shown}{note}")
    if never:
        return Check(outcome=Outcome.FAIL, reason=f"{shown}, and so is its whole likely range")
    if chance is None:
        why = measured.note or "no variation"
        return Check(
            outcome=Outcome.INCONCLUSIVE, reason=f"{shown}, but it has no likely range: {why}"
        )
    side = math.copysign(bound, value) if kind is BoundKind.IN_SIZE_AT_MOST else bound
    needed = chance.sources_to_tell(side)
    more = f"; {needed:,} sources would tell" if needed else ""
    return Check(
        outcome=Outcome.INCONCLUSIVE,
        reason=f"{shown}, but with {chance.sources:,} sources chance alone can explain it{more}",
    )


def _interval_check(shown: str, *, surely: bool) -> Check:
    if surely:
        return Check(outcome=Outcome.PASS, reason=f"{shown}, and so is its whole likely range")
    return Check(
        outcome=Outcome.INCONCLUSIVE, reason=f"{shown}, but its likely range reaches past the limit"
    )


def _attainable_check(
    kind: BoundKind,
    bound: float,
    shown: str,
    measured: Measurement,
    metric: Metric,
    possible: Attainable | None,
) -> Check:
    """Judge by the range that the share of sources with a violation leaves possible."""
    why = measured.note or "no variation"
    if possible is None or kind is BoundKind.IN_SIZE_AT_MOST:
        return Check(
            outcome=Outcome.INCONCLUSIVE, reason=f"{shown}, but it has no likely range: {why}"
        )
    limit = possible.highest if kind is BoundKind.AT_MOST else possible.lowest
    most = wording.value(limit, is_rate=metric.is_rate)
    most += f" is possible by the number of sources ({why})"
    no_more = "no more than " if kind is BoundKind.AT_MOST else ""
    surely = limit <= bound if kind is BoundKind.AT_MOST else limit >= bound
    return Check(
        outcome=Outcome.PASS if surely else Outcome.INCONCLUSIVE,
        reason=f"{shown}, and {no_more if surely else ''}{most}",
    )


def _shown(kind: BoundKind, bound: float, value: float, metric: Metric, *, inside: bool) -> str:
    words = (_INSIDE if inside else _OUTSIDE)[kind]
    shown, limit = (wording.value(each, is_rate=metric.is_rate) for each in (value, bound))
    return f"{shown} {words} {limit}"
