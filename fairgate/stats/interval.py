"""An interval around an estimate, or the reason why there is none."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from fairgate.stats.observations import (
    ClusterTotals,
    Floats,
    Observations,
    cluster_contributions,
    cluster_shares,
    cluster_totals,
    decided_counts,
    estimate,
)
from fairgate.stats.permutation import TypicalValues

TOO_FEW_CLUSTERS = "too few clusters"
NOTHING_DECIDED = "nothing decided"
NO_VARIATION = "no variation between sources"
NOT_FROM_ZERO = "the whole cannot be distinguished from 0"
_SYMMETRIC = 1e-6
"""Skewness below which its removal would lose more digits than it changes."""
_FEW = 10
"""Sources that vary, as for the intervals of the report: below it, signs are too few to flip."""
_FEW_EVENTS = 10
"""Events up to which the truth lies below Wilson's range too often: 12.5 % of draws of 1 in 100."""
_MOST_SOURCES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A two-sided interval `low <= high`."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoInterval:
    """No interval is honest here; `reason` is one of this module's constants."""

    reason: str


IntervalOrReason = Interval | NoInterval


def wilson(successes: float, trials: float, *, confidence: float) -> IntervalOrReason:
    """Return the Wilson interval, in [0, 1] and never empty; no interval for no trials.

    `successes` need not be whole: a rate of pairs, say, as a share of their sources.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22
    (1927) 209-212. Only for unclustered counts (a share of sources, not of pairs): pairs of one
    source move together, and then this interval is far too narrow (design effect 8 to 15 on real
    answers).
    """
    if not trials:
        return NoInterval(reason=NOTHING_DECIDED)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / trials
    centre = share + z * z / (2 * trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    total = 1 + z * z / trials
    # At 0 and n the limit is 0 and 1 exactly; rounding would leave 1e-19 there.
    low = 0.0 if successes == 0 else max(0.0, (centre - spread) / total)
    high = 1.0 if successes == trials else min(1.0, (centre + spread) / total)
    return Interval(low=low, high=high)


def exact_interval(successes: int, trials: int, *, confidence: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a share."""
    tail, others = (1 - confidence) / 2, trials - successes
    low = _exact_low(successes, trials, tail) if successes else 0.0
    return low, 1 - _exact_low(others, trials, tail) if others else 1.0


def influence(totals: ClusterTotals) -> Floats:
    """Return [G] what each cluster adds to the estimate beyond its expectation; sums to 0."""
    counts = totals.counts.sum(axis=0)
    beyond = totals.sums - totals.counts * (totals.sums.sum(axis=0) / counts)
    return np.asarray((beyond * (totals.weights / counts)).sum(axis=1), dtype=np.float64)


def n_filled(totals: ClusterTotals) -> int:
    """Count the clusters that have a decided case."""
    return int(np.count_nonzero(totals.counts.any(axis=1)))


def standard_error(totals: ClusterTotals) -> float:
    """Return the cluster-robust standard error of the contrast; NaN for fewer than 2 clusters."""
    clusters = n_filled(totals)
    if clusters < 2 or not totals.counts.any(axis=0).all():
        return float("nan")
    # fsum: the same to the last bit whatever the order of the clusters.
    square = math.fsum(np.square(influence(totals)).tolist())
    return math.sqrt(clusters / (clusters - 1) * square)


def contrast(totals: ClusterTotals) -> float:
    """Return the estimate from cluster totals; NaN if an arm has no decided case."""
    counts = totals.counts.sum(axis=0)
    if not counts.all():
        return float("nan")
    return float(np.dot(totals.weights, totals.sums.sum(axis=0) / counts))


def t_upper_tail(t: float, degrees_of_freedom: float) -> float:
    """Return P(T >= t) for Student's t; NaN for NaN."""
    from scipy.special import stdtr

    return float(stdtr(degrees_of_freedom, -t))


def t_quantile(probability: float, degrees_of_freedom: float) -> float:
    """Return the t with P(T <= t) = `probability`, which is below 1."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, probability))


def _obstacle(totals: ClusterTotals) -> NoInterval | None:
    if not totals.counts.any(axis=0).all():
        return NoInterval(reason=NOTHING_DECIDED)
    return NoInterval(reason=TOO_FEW_CLUSTERS) if n_filled(totals) < 2 else None


def t_interval(totals: ClusterTotals, *, confidence: float) -> IntervalOrReason:
    """Return estimate ± t_{G-1} * cluster-robust standard error.

    Linearised (sandwich) variance of a ratio with the small-sample factor G / (G - 1): K.-Y. Liang
    and S. L. Zeger, Biometrika 73 (1986) 13-22; G - 1 degrees of freedom: C. Hansen, J.
    Econometrics 141 (2007) 597-620; A. C. Cameron and D. L. Miller, J. Human Resources 50 (2015)
    317-372, section VI.
    """
    clusters = n_filled(totals)
    if obstacle := _obstacle(totals):
        return obstacle
    error = standard_error(totals)
    if not error:
        return NoInterval(reason=NO_VARIATION)
    reach = t_quantile(0.5 + confidence / 2, clusters - 1) * error
    centre = contrast(totals)
    return Interval(low=centre - reach, high=centre + reach)


def ratio_interval(
    part: ClusterTotals, whole: ClusterTotals, *, confidence: float
) -> Interval | NoInterval:
    """Return Fieller's interval of part / whole; both over the same clusters and arms.

    A ratio without variation gives an interval of width 0. Deterministic, O(G).

    E. C. Fieller, "Some problems in interval estimation", J. R. Statist. Soc. B 16 (1954) 175-185:
    the ratios q for which `numerator - q * denominator` is not distinguishable from 0. It assumes
    no normal ratio and shows when there is none: where the denominator is not distinguishable from
    0, no q is excluded. Variances are cluster-robust as in `t_interval`.
    """
    clusters = n_filled(whole)
    if obstacle := _obstacle(whole):
        return obstacle
    numerator, denominator = contrast(part), contrast(whole)
    changes = np.stack([influence(part), influence(whole)])
    covariance = changes @ changes.T * clusters / (clusters - 1)
    square = t_quantile(0.5 + confidence / 2, clusters - 1) ** 2
    # a q^2 - 2 b q + c <= 0
    a = denominator**2 - square * float(covariance[1, 1])
    b = numerator * denominator - square * float(covariance[0, 1])
    c = numerator**2 - square * float(covariance[0, 0])
    if a <= 1e-12 * denominator**2 or not denominator:
        return NoInterval(reason=NOT_FROM_ZERO)
    root = math.sqrt(max(0.0, b * b - a * c))
    return Interval(low=(b - root) / a, high=(b + root) / a)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateArm:
    """The rate of one arm, in [0, 1], its weight in the contrast, and its decided sources."""

    rate: float
    weight: float
    sources: float


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
        if not self.as_answers:
            reach = self.value - (self.low if self.value > bound else self.high)
            needed = self.sources * (reach / (self.value - bound)) ** 2
            return math.ceil(needed) if needed <= _MOST_SOURCES else None

        def tells(sources: int) -> bool:
            same = (replace(arm, sources=sources) for arm in self.as_answers)
            ends = _score(same, self.confidence)
            return ends.low > bound if self.value > bound else ends.high < bound

        if not tells(_MOST_SOURCES):
            return None
        return 1 + bisect_left(range(1, _MOST_SOURCES), x=True, key=tells)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Contrast:
    """A contrast of means, and what its range follows from."""

    value: float
    totals: ClusterTotals
    arms: tuple[RateArm, ...]
    is_share: bool
    values: TypicalValues | None = None
    """The sign-flip test of the source means against every bound, where that decides."""
    limits: tuple[float, float] | None = None
    """The least and the greatest value that there can be; None: not known."""

    def range_at(self, confidence: float) -> LikelyRange | NoInterval:
        """Return the range, two-sided at `confidence`."""
        value, totals = self.value, self.totals
        ends: IntervalOrReason = NoInterval(reason=NO_VARIATION)
        if self.values is not None:
            low, high = self.values.bounds((1 - confidence) / 2)
            ends = Interval(low=low, high=high)
        elif not self.is_one_each:
            ends = t_interval(totals, confidence=confidence)
        as_answers: tuple[RateArm, ...] = ()
        if isinstance(ends, NoInterval):
            if not self.is_share:
                return self._of_equal_sources(confidence, ends)
            as_answers, ends = self.arms, _score(self.arms, confidence)
        low, high = min(ends.low, value), max(ends.high, value)
        if not self.is_share:
            skewed = _skewness_adjusted(totals, value, confidence)
            low, high = min(low, skewed.low), max(high, skewed.high)
        elif all(arm.weight > 0 for arm in self.arms) and not as_answers:
            # The end away from 1/2 reaches as far as few events leave open; at 1/2 both err alike.
            error, answers = standard_error(totals), float(n_filled(totals))
            if totals.informative >= _FEW and error:
                answers = max(1.0, value * (1 - value) / error**2)
            least, most = _wilson(value, answers, confidence)
            low = min(low, least) if value >= 0.5 else max(0.0, low)
            high = max(high, most) if value <= 0.5 else min(1.0, high)
        elif not as_answers:
            # Few events make a difference of shares look too certain on the same side.
            ends = _score(self._effective_arms(), confidence)
            rare = next((arm.rate for arm in self.arms if arm.weight > 0), 0.5)
            low = min(low, ends.low) if rare >= 0.5 else low
            high = max(high, ends.high) if rare <= 0.5 else high
        return LikelyRange(
            value=value,
            low=low,
            high=high,
            sources=int(min(arm.sources for arm in self.arms)),
            confidence=confidence,
            as_answers=as_answers,
        )

    def _of_equal_sources(self, confidence: float, why: NoInterval) -> LikelyRange | NoInterval:
        """Return the range of sources that all say the same, where a value has limits.

        If more than a share u of all sources said otherwise, that none of n does would be rarer
        than the tail: (1 - u)^n. They could say the least, or the greatest; where all the others
        differ from 0 in one direction, nothing, but not the opposite.
        """
        if self.limits is None or why.reason != NO_VARIATION:
            return why
        sources = int(min(arm.sources for arm in self.arms))
        share = 1 - math.pow((1 - confidence) / 2, 1 / sources)
        least, greatest = self.limits
        if self.value < 0:
            greatest = min(greatest, 0.0)
        elif self.value > 0:
            least = max(least, 0.0)
        return LikelyRange(
            value=self.value,
            low=min(self.value, self.value - share * (self.value - least)),
            high=max(self.value, self.value + share * (greatest - self.value)),
            sources=sources,
            confidence=confidence,
        )

    def _effective_arms(self) -> Iterator[RateArm]:
        """Yield the arms with as many sources as independent cases of that error are."""
        for number, arm in enumerate(self.arms):
            own = slice(number, number + 1)
            alone = replace(
                self.totals,
                sums=self.totals.sums[:, own],
                counts=self.totals.counts[:, own],
                weights=np.ones(1),
            )
            error, cases = standard_error(alone), float(arm.sources)
            varying = alone.sums[alone.counts > 0]
            few = min(np.count_nonzero(varying), np.count_nonzero(alone.counts > alone.sums))
            if few >= _FEW and error > 0:
                cases = max(1.0, arm.rate * (1 - arm.rate) / error**2)
            yield replace(arm, sources=cases)

    @property
    def is_one_each(self) -> bool:
        """Return whether a source is one answer in each arm."""
        return self.is_share and float(self.totals.counts.max()) <= 1


def likely_range(
    observed: Observations,
    *,
    confidence: float,
    is_share: bool,
    limits: tuple[float, float] | None = None,
) -> LikelyRange | NoInterval:
    """Return the range that decides whether a contrast is beyond a bound by more than chance.

    Deterministic, whatever the order of its sources. `is_share` says that every case is in [0, 1].
    `limits` are those of the value. No range where an arm is empty, or where what is no share and
    has no limits does not vary between sources. Where it has, sources that would say otherwise are
    as rare as their number leaves open, by the exact range of a count of 0.

    What one source's cases say moves together, so sources are what is counted. Where each source
    has one case in an arm, a source is one answer: Wilson's score interval of the share of sources
    (with at most ten events, or others, the end beside them is Clopper's and Pearson's exact one),
    arms put together by squares (R. G. Newcombe, "Interval estimation for the difference between
    independent proportions", Statistics in Medicine 17 (1998) 873-890, method 10). Where sources
    have many cases, their means are put to the sign-flip test against every bound, inverted
    (`TypicalValues`); below ten sources that vary, to Student's t; and where none varies, each is
    one answer again.

    A mean of rare events errs on the side away from 1/2: too few of them make it look too certain.
    The range of a share reaches there at least as far as the score interval of as many independent
    cases as its error amounts to (E. L. Korn and B. I. Graubard, "Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data", Survey
    Methodology 24 (1998) 193-201), that of a difference of shares, on the side of its first share,
    as far as such intervals put together by squares;
    below ten sources that vary of as many as there are sources.

    Flipped signs take what is no share to be symmetric about its mean. Few large losses make it
    look too certain that the mean loss is small, so its range reaches at least as far as Student's
    interval with its skewness removed (P. Hall, "On the removal of skewness by transformation", J.
    R. Statist. Soc. B 54 (1992) 221-228).
    """
    totals = cluster_totals(observed)
    if not len(observed.weights) or not decided_counts(observed).all():
        return NoInterval(reason=NOTHING_DECIDED)
    value, filled = estimate(observed), np.count_nonzero(totals.counts > 0, axis=0)
    rates = totals.sums.sum(axis=0) / totals.counts.sum(axis=0)
    arms = tuple(
        RateArm(rate=float(rate), weight=float(weight), sources=int(n))
        for rate, weight, n in zip(rates, totals.weights, filled, strict=True)
    )
    whole = _Contrast(value=value, totals=totals, arms=arms, is_share=is_share, limits=limits)
    is_constant = limits is not None and not is_share and not standard_error(totals) > 0
    if not is_constant and totals.informative >= _FEW and not whole.is_one_each:
        has_counts = totals.counts.any(axis=1)
        values = TypicalValues.of(
            cluster_contributions(observed)[has_counts],
            cluster_shares(observed)[has_counts],
            rng=np.random.default_rng(int(has_counts.sum())),
        )
        whole = replace(whole, values=values)
    return whole.range_at(confidence)


def _skewness_adjusted(totals: ClusterTotals, value: float, confidence: float) -> Interval:
    """Return Student's interval of a contrast, transformed so that its skewness is removed."""
    error, clusters = standard_error(totals), n_filled(totals)
    if not error > 0:
        return Interval(low=value, high=value)
    beyond = influence(totals)
    spread = math.fsum((beyond**2).tolist()) / clusters
    skewness = math.fsum((beyond**3).tolist()) / clusters / math.pow(spread, 1.5)
    quantile, root = t_quantile(0.5 + confidence / 2, clusters - 1), math.sqrt(clusters)

    def untransformed(t: float) -> float:
        """Invert `t + s t^2 / (3 root) + s^2 t^3 / (27 root^2) + s / (6 root)`, s the skewness."""
        if abs(skewness) < _SYMMETRIC:
            return t
        inside = 1 + skewness / root * (t - skewness / (6 * root))
        return 3 * root / skewness * (math.copysign(math.pow(abs(inside), 1 / 3), inside) - 1)

    ends = [value - error * untransformed(sign * quantile) for sign in (1, -1)]
    return Interval(low=min(ends), high=max(ends))


def _score(arms: Iterable[RateArm], confidence: float) -> Interval:
    """Return the interval of `sum_a weight_a * rate_a`, each source one answer in each arm.

    Arms of one sign are parts of a mean over the same sources: they are taken to err together.
    """
    value, below, above = 0.0, [0.0, 0.0], [0.0, 0.0]
    for arm in arms:
        low, high = _wilson(arm.rate, arm.sources, confidence)
        ends = arm.weight * low, arm.weight * high
        centre = arm.weight * arm.rate
        value += centre
        below[arm.weight < 0] += centre - min(ends)
        above[arm.weight < 0] += max(ends) - centre
    return Interval(low=value - math.hypot(*below), high=value + math.hypot(*above))


def _wilson(rate: float, answers: float, confidence: float) -> tuple[float, float]:
    """Return Wilson's ends; the one beside few events, or beside few others, is exact instead."""
    interval = wilson(rate * answers, answers, confidence=confidence)
    if not isinstance(interval, Interval):
        return 0.0, 1.0
    events, others, tail = rate * answers, (1 - rate) * answers, (1 - confidence) / 2
    low, high = interval.low, interval.high
    if 0 < events <= _FEW_EVENTS:
        low = min(low, _exact_low(events, answers, tail))
    if 0 < others <= _FEW_EVENTS:
        high = max(high, 1 - _exact_low(others, answers, tail))
    return low, high


def _exact_low(events: float, answers: float, tail: float) -> float:
    """Return the rate at which so many events or more have the probability `tail`.

    C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the
    case of the binomial", Biometrika 26 (1934) 404-413: the quantile of a beta distribution, so
    that `events` need not be whole.
    """
    from scipy.special import betaincinv

    return float(betaincinv(events, answers - events + 1, tail))
