"""Student's t distribution against scipy, tables, closed forms, and where doubles end."""

import math
import random

import pytest
from scipy.special import stdtr, stdtrit

from fairgate.stats.interval import t_quantile, t_upper_tail

DEGREES = (1, 2, 3, 4, 5, 9, 29, 99, 199, 200, 201, 202, 999, 9_999, 1_000_000)


@pytest.mark.parametrize("degrees", DEGREES)
def test_tails_agree_with_scipy(degrees):
    numbers = random.Random(degrees)
    for t in (0, 0.3, 1, 1.7, 1.96, 2, 3, 8, 30, *(numbers.expovariate(0.5) for _ in range(50))):
        expected = float(stdtr(degrees, -t))
        if expected > 1e-280:
            assert t_upper_tail(t, degrees) == pytest.approx(expected, rel=2e-10, abs=0), t
        assert t_upper_tail(-t, degrees) == pytest.approx(float(stdtr(degrees, t)), abs=1e-11), t


@pytest.mark.parametrize("degrees", DEGREES)
def test_quantiles_agree_with_scipy_and_undo_the_tail(degrees):
    numbers = random.Random(degrees)
    tails = (0.5, 0.4, 0.1, 0.05, 0.025, 0.01, 0.005, 1e-3, 1e-5, 1e-12)
    for tail in (*tails, *(numbers.uniform(1e-6, 0.5) for _ in range(50))):
        t = t_quantile(tail, degrees)
        assert t == pytest.approx(float(stdtrit(degrees, tail)), rel=1e-9, abs=1e-12), tail
        assert t_upper_tail(t, degrees) == pytest.approx(1 - tail, rel=1e-9), tail


def test_one_and_two_degrees_have_closed_forms():
    for t in (1e-9, 1e-3, 0.5, 1.0, 12.7, 1e6, 1e150, 1e200):
        # Beyond 1 the angle is small, and its complement keeps the digits.
        assert t_upper_tail(t, 1) == pytest.approx(math.atan2(1, t) / math.pi, rel=1e-13)
    for t in (1e-9, 1e-3, 0.5, 1.0, 12.7, 1e3):
        root = math.sqrt(2 + t * t)
        assert t_upper_tail(t, 2) == pytest.approx(1 / root / (root + t), rel=1e-13)


def test_the_ends():
    assert t_quantile(1, 5) == math.inf
    assert t_quantile(0, 5) == -math.inf
    assert t_quantile(0.5, 5) == 0
    assert t_upper_tail(math.inf, 5) == 0
    assert t_upper_tail(-math.inf, 5) == 1
    assert t_upper_tail(1e308, 3) == 0
    assert math.isnan(t_upper_tail(math.nan, 3))
    assert t_quantile(1e-100, 7) < t_quantile(1e-99, 7) < -1e13
    assert -math.inf < t_quantile(1e-300, 7) < -1e13  # the density is below the least double


@pytest.mark.parametrize(
    ("of", "value", "degrees"),
    [
        *((t_quantile, p, n) for p, n in ((-0.1, 5), (1.1, 5), (math.nan, 5), (0.5, 0), (0.5, -3))),
        (t_upper_tail, 1.0, 0),
    ],
)
def test_no_probability_and_no_degree_of_freedom_are_refused(of, value, degrees):
    with pytest.raises(ValueError, match="probability" if degrees > 0 else "degree"):
        of(value, degrees)
