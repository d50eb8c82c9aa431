"""Student's t distribution: upper tail and quantile, for a whole number of degrees of freedom.

Equal to `scipy.special.stdtr` and `stdtrit` to nine digits or more (a test compares them). A stored
gate needs nothing else of scipy, and would wait for its import at every start.

Source: the tail is half an incomplete beta function (M. Abramowitz and I. A. Stegun, Handbook of
Mathematical Functions, 1964, 26.5.27), whose continued fraction (26.5.8) is evaluated from the
front (W. J. Lentz, Applied Optics 15 (1976) 668-671).
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import count
from statistics import NormalDist

_TINY = 1e-300
_PRECISION = 1e-16
_MANY = 200
"""Degrees of freedom above which the difference of two log-gammas would lose digits."""


def t_upper_tail(t: float, degrees_of_freedom: int) -> float:
    """Return P(T >= t) for Student's t; NaN for NaN. Raises ValueError below 1 degree."""
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
