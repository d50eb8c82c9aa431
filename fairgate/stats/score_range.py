"""Score interval of a contrast of rates, by the number of its sources.

Each arm's rate has Wilson's interval as a share of its sources: cases of one source move together,
so a source counts once, whatever its cases are. The arms are put together by squares (R. G.
Newcombe, "Interval estimation for the difference between independent proportions", Statistics in
Medicine 17 (1998) 873-890, method 10). Wider than needed where cases of a source, or arms, are
less dependent; it is there for few sources and few violations too, where a bootstrap is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairgate.stats.interval import NOTHING_DECIDED, Interval, IntervalOrReason, NoInterval
from fairgate.stats.observations import ClusterTotals
from fairgate.stats.wilson import wilson

_MOST_SOURCES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RateArm:
    """The rate of one arm, in [0, 1], its weight in the contrast, and its decided sources."""

    rate: float
    weight: float
    sources: int


def rate_arms(totals: ClusterTotals) -> tuple[RateArm, ...]:
    """Return the arms of a contrast; an arm without a decided case has 0 sources and rate 0."""
    counts, sums = totals.counts.sum(axis=0), totals.sums.sum(axis=0)
    filled = np.count_nonzero(totals.counts > 0, axis=0)
    return tuple(
        RateArm(rate=float(s / c) if c else 0.0, weight=float(weight), sources=int(n))
        for s, c, weight, n in zip(sums, counts, totals.weights, filled, strict=True)
    )


def score_range(arms: tuple[RateArm, ...], *, confidence: float) -> IntervalOrReason:
    """Return the interval of `sum_a weight_a * rate_a`; none where an arm has no sources."""
    value, below, above = 0.0, 0.0, 0.0
    for arm in arms:
        found = wilson(arm.rate * arm.sources, arm.sources, confidence=confidence)
        if isinstance(found, NoInterval):
            return found
        ends = arm.weight * found.low, arm.weight * found.high
        centre = arm.weight * arm.rate
        value += centre
        below += (centre - min(ends)) ** 2
        above += (max(ends) - centre) ** 2
    if not arms:
        return NoInterval(reason=NOTHING_DECIDED)
    return Interval(low=value - math.sqrt(below), high=value + math.sqrt(above), method="wilson")


def sources_to_tell(arms: tuple[RateArm, ...], bound: float, *, confidence: float) -> int | None:
    """Return with how many sources the same rates would lie beyond `bound` as a whole.

    None where more than a million are needed, or the value is the bound itself.
    """
    value = sum(arm.weight * arm.rate for arm in arms)

    def tells(sources: int) -> bool:
        same = tuple(RateArm(rate=arm.rate, weight=arm.weight, sources=sources) for arm in arms)
        found = score_range(same, confidence=confidence)
        if isinstance(found, NoInterval):
            return False
        return found.low > bound if value > bound else found.high < bound

    if value == bound or not tells(_MOST_SOURCES):
        return None
    low, high = 0, _MOST_SOURCES
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tells(middle) else (middle, high)
    return high
