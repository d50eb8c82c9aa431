"""The range that decides whether a value is beyond a bound by more than chance explains.

What one source's cases say moves together, so sources are what is counted. Where each source has
one case in an arm, a source is one answer: Wilson's score interval of the share of sources, arms
put together by squares (R. G. Newcombe, "Interval estimation for the difference between independent
proportions", Statistics in Medicine 17 (1998) 873-890, method 10). Where sources have many cases,
their means are put to the sign-flip test against every bound, inverted (`TypicalValues`); below ten
sources that vary, to Student's t; and where none varies, each is one answer again.

A mean of rare events errs on the side away from 1/2: too few of them make it look too certain. The
range of a share reaches there at least as far as the score interval of as many independent cases as
its error amounts to (E. L. Korn and B. I. Graubard, "Confidence intervals for proportions with
small expected number of positive counts estimated from survey data", Survey Methodology 24 (1998)
193-201), below ten sources that vary of as many as there are sources.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairgate.stats.interval import (
    NOTHING_DECIDED,
    Interval,
    IntervalOrReason,
    NoInterval,
    n_filled,
    standard_error,
    t_interval,
    wilson,
)
from fairgate.stats.observations import (
    ClusterTotals,
    Observations,
    cluster_contributions,
    cluster_shares,
    cluster_totals,
    decided_counts,
    estimate,
)
from fairgate.stats.sign_flip import TypicalValues

_FEW = 10
"""Sources that vary, as for the intervals of the report: below it, signs are too few to flip."""
_MOST_SOURCES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RateArm:
    """The rate of one arm, in [0, 1], its weight in the contrast, and its decided sources."""

    rate: float
    weight: float
    sources: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyRange:
    """Values that chance does not exclude, two-sided at `confidence`; `low <= value <= high`."""

    value: float
    low: float
    high: float
    sources: int
    """Of how many sources the value is; of the smallest arm."""
    confidence: float
    as_answers: tuple[RateArm, ...] = ()
    """The arms, where each source counted as one answer; empty where the means were tested."""

    def sources_to_tell(self, bound: float) -> int | None:
        """Return with how many such sources the same value would lie beyond `bound` as a whole.

        None where more than a million are needed, or the value is the bound itself.
        """
        if self.value == bound:
            return None
        if self.as_answers:
            return self._answers_to_tell(bound)
        reach = self.value - (self.low if self.value > bound else self.high)
        needed = self.sources * (reach / (self.value - bound)) ** 2
        return math.ceil(needed) if needed <= _MOST_SOURCES else None

    def _answers_to_tell(self, bound: float) -> int | None:
        def tells(sources: int) -> bool:
            same = tuple(
                RateArm(rate=arm.rate, weight=arm.weight, sources=sources)
                for arm in self.as_answers
            )
            found = _score(same, self.confidence)
            return found.low > bound if self.value > bound else found.high < bound

        if not tells(_MOST_SOURCES):
            return None
        low, high = 0, _MOST_SOURCES
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if tells(middle) else (middle, high)
        return high


def likely_range(
    observed: Observations, *, confidence: float, is_share: bool
) -> LikelyRange | NoInterval:
    """Return the range of a contrast; deterministic, whatever the order of its sources.

    `is_share` says that every case is in [0, 1]. No range where an arm is empty, or where what is
    no share does not vary between sources.
    """
    totals = cluster_totals(observed)
    if not len(observed.weights) or not decided_counts(observed).all():
        return NoInterval(reason=NOTHING_DECIDED)
    value, arms = estimate(observed), _arms(totals)
    one_each = is_share and float(totals.counts.max()) <= 1
    found = NoInterval(reason="") if one_each else _of_means(observed, totals, confidence)
    if isinstance(found, NoInterval) and not is_share:
        return found
    if isinstance(found, NoInterval):
        found, as_answers = _score(arms, confidence), arms
    else:
        as_answers = ()
        if is_share and len(arms) == 1:
            found = _widened(found, totals, value, confidence)
    return LikelyRange(
        value=value,
        low=min(found.low, value),
        high=max(found.high, value),
        sources=min(arm.sources for arm in arms),
        confidence=confidence,
        as_answers=as_answers,
    )


def _arms(totals: ClusterTotals) -> tuple[RateArm, ...]:
    counts, sums = totals.counts.sum(axis=0), totals.sums.sum(axis=0)
    filled = np.count_nonzero(totals.counts > 0, axis=0)
    return tuple(
        RateArm(rate=float(s / c), weight=float(weight), sources=int(n))
        for s, c, weight, n in zip(sums, counts, totals.weights, filled, strict=True)
    )


def _score(arms: tuple[RateArm, ...], confidence: float) -> Interval:
    """Return the interval of `sum_a weight_a * rate_a`, each source one answer in each arm."""
    value, below, above = 0.0, 0.0, 0.0
    for arm in arms:
        low, high = _wilson(arm.rate, arm.sources, confidence)
        ends = arm.weight * low, arm.weight * high
        centre = arm.weight * arm.rate
        value += centre
        below += (centre - min(ends)) ** 2
        above += (max(ends) - centre) ** 2
    return Interval(low=value - math.sqrt(below), high=value + math.sqrt(above), method="wilson")


def _wilson(rate: float, answers: float, confidence: float) -> tuple[float, float]:
    found = wilson(rate * answers, answers, confidence=confidence)
    return (found.low, found.high) if isinstance(found, Interval) else (0.0, 1.0)


def _of_means(observed: Observations, totals: ClusterTotals, confidence: float) -> IntervalOrReason:
    if totals.informative < _FEW:
        return t_interval(totals, confidence=confidence)
    filled = totals.counts.any(axis=1)
    values = TypicalValues.of(
        cluster_contributions(observed)[filled],
        cluster_shares(observed)[filled],
        rng=np.random.default_rng(int(filled.sum())),
    )
    low, high = values.bounds((1 - confidence) / 2)
    return Interval(low=low, high=high, method="sign flips")


def _widened(found: Interval, totals: ClusterTotals, value: float, confidence: float) -> Interval:
    """Return the range of a share with its end away from 1/2 as far as few events leave open."""
    error, answers = standard_error(totals), float(n_filled(totals))
    if totals.informative >= _FEW and error:
        answers = max(1.0, value * (1 - value) / error**2)
    low, high = _wilson(value, answers, confidence)
    # At 1/2 itself both ends err alike.
    low = min(found.low, low) if value >= 0.5 else max(0.0, found.low)
    high = max(found.high, high) if value <= 0.5 else min(1.0, found.high)
    return Interval(low=low, high=high, method=found.method)
