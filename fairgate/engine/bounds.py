"""Bounds judge the estimate on this fixed suite, or the whole interval where the rule says so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from fairgate.domain.measurements import Better, Measurement
from fairgate.domain.outcomes import Outcome
from fairgate.metrics.metric import Metric
from fairgate.policy.gates import GatePolicy
from fairgate.stats.interval import Interval
from fairgate.stats.observations import Observations, cluster_totals
from fairgate.stats.wilson import wilson


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


def check_bounds(
    gate: GatePolicy, measured: Measurement, metric: Metric, possible: Attainable | None = None
) -> list[Check]:
    """Return a check for each bound of the gate; one `not-evaluated` where there is no value.

    `possible` stands in for a missing interval where the rule asks for one.
    """
    if measured.value is None:
        return [Check(outcome=Outcome.NOT_EVALUATED, reason=measured.note or "nothing was decided")]
    checks = []
    if gate.max is not None:
        # What is better the nearer it is to 0 is bounded on both sides of it (SPEC 4).
        is_signed = metric.better is Better.TOWARD_ZERO
        kind = BoundKind.IN_SIZE_AT_MOST if is_signed else BoundKind.AT_MOST
        checks.append(_check(kind, gate.max, measured, gate, metric, possible))
    if gate.min is not None:
        checks.append(_check(BoundKind.AT_LEAST, gate.min, measured, gate, metric, possible))
    if gate.max_abs is not None:
        checks.append(
            _check(BoundKind.IN_SIZE_AT_MOST, gate.max_abs, measured, gate, metric, possible)
        )
    return checks


def _check(
    kind: BoundKind,
    bound: float,
    measured: Measurement,
    gate: GatePolicy,
    metric: Metric,
    possible: Attainable | None,
) -> Check:
    value = measured.value or 0.0
    low, high = measured.interval or (value, value)
    if kind is BoundKind.IN_SIZE_AT_MOST:
        inside = abs(value) <= bound
        surely = max(abs(low), abs(high)) <= bound
        never = min(abs(low), abs(high)) > bound and low * high > 0
    elif kind is BoundKind.AT_MOST:
        inside, surely, never = value <= bound, high <= bound, low > bound
    else:
        inside, surely, never = value >= bound, low >= bound, high < bound
    words = (_INSIDE if inside else _OUTSIDE)[kind]
    shown = f"{_show(value, metric)} {words} {_show(bound, metric)}"
    if gate.evidence == "interval":
        if not inside:
            whole = ", and so is its whole likely range" if never and measured.interval else ""
            return Check(outcome=Outcome.FAIL, reason=f"{shown}{whole}")
        if measured.interval is None:
            return _attainable_check(kind, bound, shown, measured, metric, possible)
        return _interval_check(shown, surely=surely)
    note = "" if surely or never else "; the limit lies inside its likely range"
    return Check(outcome=Outcome.PASS if inside else Outcome.FAIL, reason=shown + note)


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
    most = f"{_show(limit, metric)} is possible by the number of sources ({why})"
    no_more = "no more than " if kind is BoundKind.AT_MOST else ""
    surely = limit <= bound if kind is BoundKind.AT_MOST else limit >= bound
    return Check(
        outcome=Outcome.PASS if surely else Outcome.INCONCLUSIVE,
        reason=f"{shown}, and {no_more if surely else ''}{most}",
    )


def _show(value: float, metric: Metric) -> str:
    return f"{100 * value:.1f} %" if metric.is_rate else f"{value:.3f}"
