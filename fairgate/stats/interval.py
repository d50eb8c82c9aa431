"""An interval around an estimate, or the reason why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from fairgate.domain.outcomes import CONFIDENCE
from fairgate.stats.observations import (
    ClusterTotals,
    Floats,
    Observations,
    cluster_totals,
    contrast,
)

TOO_FEW_CLUSTERS = "too few clusters"
NOTHING_DECIDED = "nothing decided"
NO_VARIATION = "no variation between sources"
NOT_FROM_ZERO = "the whole cannot be distinguished from 0"
_SYMMETRIC = 1e-6
"""Skewness below which its removal would lose more digits than it changes."""
_FEW = 10
"""Sources that vary, below which their error is not known well enough."""
_FEW_EVENTS = 10
"""Events up to which the truth lies below Wilson's range too often: 12.5 % of draws of 1 in 100."""


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


def confidence_interval(
    observed: Observations,
    *,
    is_share: bool,
    limits: tuple[float, float] | None = None,
) -> Interval | NoInterval:
    """Return the interval that reports print, and that says whether chance explains a value.

    Deterministic, whatever the order of the sources. `is_share` says that every case is in [0, 1]
    and that arms are averaged, not compared. `limits`, beyond which no end lies, are the least and
    the greatest value. No
    interval where an arm is empty, or where what is no share and has no limits does not vary
    between sources.

    What one source's cases say moves together, so sources are what is counted. *A share* has the
    interval of as many independent answers as its cluster-robust error amounts to, and of its
    sources where fewer than ten of them vary (E. L. Korn and B. I. Graubard, "Confidence intervals
    for proportions with small expected number of positive counts estimated from survey data",
    Survey Methodology 24 (1998) 193-201): Wilson's, and beside few events the exact one. *Anything
    else* has Student's interval. From ten such sources on it reaches at least as far as the one
    without its skewness, because few large losses make the mean loss look too certain.
    """
    totals = cluster_totals(observed)
    if not len(observed.weights) or not totals.counts.any(axis=0).all():
        return NoInterval(reason=NOTHING_DECIDED)
    value, clusters = contrast(totals), n_filled(totals)
    error = standard_error(totals)
    if is_share:
        answers = float(clusters)
        if totals.informative >= _FEW and error > 0:
            level = 0.5 + CONFIDENCE / 2
            wider = t_quantile(level, clusters - 1) / NormalDist().inv_cdf(level)
            answers = max(1.0, value * (1 - value) / (error * wider) ** 2)
        return _wilson(value, answers)
    student = t_interval(totals, confidence=CONFIDENCE)
    if isinstance(student, NoInterval):
        if limits is None or student.reason != NO_VARIATION:
            return student
        return _of_equal_sources(totals, value, limits)
    ends = [student]
    if totals.informative >= _FEW:
        ends.append(_skewness_adjusted(totals, value, error))
    least, greatest = (-math.inf, math.inf) if limits is None else limits
    return Interval(
        low=max(least, min(end.low for end in ends)),
        high=min(greatest, max(end.high for end in ends)),
    )


def _of_equal_sources(totals: ClusterTotals, value: float, limits: tuple[float, float]) -> Interval:
    """Return the interval of sources that all say the same.

    If more than a share u of all sources said otherwise, that none of n does would be rarer than
    the tail: (1 - u)^n. They could say the least, or the greatest; where all the others differ
    from 0 in one direction, nothing, but not the opposite.
    """
    sources = int(np.count_nonzero(totals.counts > 0, axis=0).min())
    share = 1 - math.pow((1 - CONFIDENCE) / 2, 1 / sources)
    least, greatest = limits
    if value < 0:
        greatest = min(greatest, 0.0)
    elif value > 0:
        least = max(least, 0.0)
    return Interval(
        low=min(value, value - share * (value - least)),
        high=max(value, value + share * (greatest - value)),
    )


def _skewness_adjusted(totals: ClusterTotals, value: float, error: float) -> Interval:
    """Return Student's interval of a contrast, transformed so that its skewness is removed.

    P. Hall, "On the removal of skewness by transformation", J. R. Statist. Soc. B 54 (1992) 221-28.
    """
    beyond, clusters = influence(totals), n_filled(totals)
    spread = math.fsum((beyond**2).tolist()) / clusters
    skewness = math.fsum((beyond**3).tolist()) / clusters / math.pow(spread, 1.5)
    quantile, root = t_quantile(0.5 + CONFIDENCE / 2, clusters - 1), math.sqrt(clusters)

    def untransformed(t: float) -> float:
        """Invert `t + s t^2 / (3 root) + s^2 t^3 / (27 root^2) + s / (6 root)`, s the skewness."""
        if abs(skewness) < _SYMMETRIC:
            return t
        inside = 1 + skewness / root * (t - skewness / (6 * root))
        return 3 * root / skewness * (math.copysign(math.pow(abs(inside), 1 / 3), inside) - 1)

    ends = [value - error * untransformed(sign * quantile) for sign in (1, -1)]
    return Interval(low=min(ends), high=max(ends))


def _wilson(rate: float, answers: float) -> Interval:
    """Return Wilson's interval; the end beside few events, or beside few others, is exact."""
    events, others, tail = rate * answers, (1 - rate) * answers, (1 - CONFIDENCE) / 2
    interval = wilson(events, answers, confidence=CONFIDENCE)
    assert isinstance(interval, Interval)  # noqa: S101 (there are answers)
    low, high = interval.low, interval.high
    if 0 < events <= _FEW_EVENTS:
        low = min(low, _exact_low(events, answers, tail))
    if 0 < others <= _FEW_EVENTS:
        high = max(high, 1 - _exact_low(others, answers, tail))
    return Interval(low=low, high=high)


def _exact_low(events: float, answers: float, tail: float) -> float:
    """Return the rate at which this many events or more have the probability `tail`.

    C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the
    case of the binomial", Biometrika 26 (1934) 404-413: the quantile of a beta distribution, so
    that `events` need not be whole.
    """
    from scipy.special import betaincinv

    return float(betaincinv(events, answers - events + 1, tail))
