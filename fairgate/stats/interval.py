"""An interval around an estimate, or the reason why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from statistics import NormalDist

import numpy as np

from fairgate.stats.observations import ClusterTotals, Floats

TOO_FEW_CLUSTERS = "too few clusters"
NOTHING_DECIDED = "nothing decided"
NO_VARIATION = "no variation between sources"
_TINY = 1e-300
_PRECISION = 1e-16
_MANY = 200
"""Degrees of freedom above which the difference of two log-gammas would lose digits."""
NOT_FROM_ZERO = "the whole cannot be distinguished from 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A two-sided interval `low <= high`; `method` is `bca`, `bca and t`, `t` or `wilson`."""

    low: float
    high: float
    method: str


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
    return Interval(low=low, high=high, method="wilson")


def influence(totals: ClusterTotals) -> Floats:
    """Return [G] what each cluster adds to the estimate beyond its expectation; sums to 0."""
    counts = totals.counts.sum(axis=0)
    means = totals.sums.sum(axis=0) / counts
    return np.asarray(
        ((totals.sums - totals.counts * means) * (totals.weights / counts)).sum(axis=1),
        dtype=np.float64,
    )


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


def t_upper_tail(t: float, degrees_of_freedom: int) -> float:
    """Return P(T >= t) for Student's t; NaN for NaN. Raises ValueError below 1 degree.

    Tail and quantile equal `scipy.special.stdtr` and `stdtrit` to nine digits or more (a test
    compares them). A stored gate needs nothing else of scipy, and would wait for its import at
    every start. Source: the tail is half an incomplete beta function (M. Abramowitz and I. A.
    Stegun, Handbook of Mathematical Functions, 1964, 26.5.27), whose continued fraction (26.5.8) is
    evaluated from the front (W. J. Lentz, Applied Optics 15 (1976) 668-671).
    """
    if degrees_of_freedom < 1:
        raise ValueError(f"Student's t needs a degree of freedom, not {degrees_of_freedom}")
    if math.isnan(t):
        return t
    tail = _tail(abs(t), degrees_of_freedom)
    return tail if t >= 0 else 1 - tail


@lru_cache(maxsize=4096)
def t_quantile(probability: float, degrees_of_freedom: int) -> float:
    """Return the t with P(T <= t) = `probability`; 0 and 1 are at infinity.

    Raises ValueError for what is no probability, and below 1 degree of freedom.
    """
    if not 0 <= probability <= 1:
        raise ValueError(f"{probability} is no probability")
    if degrees_of_freedom < 1:
        raise ValueError(f"Student's t needs a degree of freedom, not {degrees_of_freedom}")
    if probability in (0, 1):
        return math.copysign(math.inf, probability - 0.5)
    tail = min(probability, 1 - probability)
    t = _with_tail(tail, degrees_of_freedom)
    return math.copysign(t, probability - 0.5) if t else 0.0


def _with_tail(tail: float, freedom: int) -> float:
    """Return the t >= 0 with that upper tail of at most 0.5.

    It is above the normal distribution's, and the tail is convex, so that Newton's steps from there
    rise towards the root; they end with the rise, or where the density is below the least double.
    """
    t = -NormalDist().inv_cdf(tail) * (1 - 1e-12)
    while density := _density(t, freedom):
        better = t + (_tail(t, freedom) - tail) / density
        if not better > t * (1 + 4 * _PRECISION):
            break
        t = better
    return t


def _density(t: float, freedom: int) -> float:
    half = freedom / 2
    power = (half + 0.5) * math.log1p(t / freedom * t)
    return math.exp(-power - _log_beta(freedom)) / math.sqrt(freedom)


def _tail(t: float, freedom: int) -> float:
    """Return P(T >= t) for t >= 0: half the incomplete beta function I_x(freedom / 2, 1 / 2)."""
    if math.isinf(t):
        return 0.0
    half = freedom / 2
    square = t / freedom * t
    if math.isinf(square):
        return 0.0
    x, rest = 1 / (1 + square), square / (1 + square)
    front = math.exp(-half * math.log1p(square) - _log_beta(freedom)) * math.sqrt(rest)
    if x < (half + 1) / (half + 2.5):
        return front * _fraction(half, 0.5, x) / half / 2
    return 0.5 - front * _fraction(0.5, half, rest)


def _log_beta(freedom: int) -> float:
    """Return log B(freedom / 2, 1 / 2)."""
    z = freedom / 2
    if freedom <= _MANY:
        return math.lgamma(z) + math.lgamma(0.5) - math.lgamma(z + 0.5)
    ratio = -1 / (8 * z) + 1 / (192 * z**3) - 1 / (640 * z**5)
    return 0.5 * math.log(math.pi / z) - ratio


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of I_x(a, b), for x below (a + 1) / (a + b + 2)."""
    c, d = 1.0, 1 / _apart(1 - (a + b) * x / (a + 1))
    value = d
    for m in count(1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _apart(1 + term * d)
            c = _apart(1 + term / c)
            value *= c * d
        if abs(c * d - 1) <= 2 * _PRECISION:
            break
    return value


def _apart(number: float) -> float:
    """Return the number, away from 0 so that it can divide."""
    return number if abs(number) > _TINY else _TINY


def t_interval(totals: ClusterTotals, *, confidence: float) -> IntervalOrReason:
    """Return estimate ± t_{G-1} * cluster-robust standard error.

    Linearised (sandwich) variance of a ratio with the small-sample factor G / (G - 1): K.-Y. Liang
    and S. L. Zeger, Biometrika 73 (1986) 13-22; G - 1 degrees of freedom: C. Hansen, J.
    Econometrics 141 (2007) 597-620; A. C. Cameron and D. L. Miller, J. Human Resources 50 (2015)
    317-372, section VI.
    """
    if not totals.counts.any(axis=0).all():
        return NoInterval(reason=NOTHING_DECIDED)
    clusters = n_filled(totals)
    if clusters < 2:
        return NoInterval(reason=TOO_FEW_CLUSTERS)
    error = standard_error(totals)
    if not error:
        return NoInterval(reason=NO_VARIATION)
    reach = t_quantile(0.5 + confidence / 2, clusters - 1) * error
    centre = contrast(totals)
    return Interval(low=centre - reach, high=centre + reach, method="t")


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
    if not whole.counts.any(axis=0).all():
        return NoInterval(reason=NOTHING_DECIDED)
    clusters = n_filled(whole)
    if clusters < 2:
        return NoInterval(reason=TOO_FEW_CLUSTERS)
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
    return Interval(low=(b - root) / a, high=(b + root) / a, method="Fieller")
