"""Intervals of shares, contrasts and ratios (Fieller: exactly the ratios that the t test keeps)."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import betaincinv

from fairgate.stats.interval import (
    NOT_FROM_ZERO,
    Interval,
    NoInterval,
    _exact_low,
    confidence_interval,
    ratio_interval,
    standard_error,
    t_interval,
    t_quantile,
    t_upper_tail,
    wilson,
)
from fairgate.stats.observations import ClusterTotals, cluster_totals, contrast


def test_wilson_solves_the_score_equation():
    found = wilson(7, 40, confidence=0.9)
    for limit in (found.low, found.high):
        score = abs(7 / 40 - limit) / math.sqrt(limit * (1 - limit) / 40)
        assert score == pytest.approx(1.6448536, rel=1e-6)


def test_wilson_of_none_and_all_touches_the_end_exactly_and_nothing_has_no_interval():
    none, every = wilson(0, 20, confidence=0.95), wilson(20, 20, confidence=0.95)
    assert (none.low, every.high) == (0.0, 1.0)
    assert none.high == pytest.approx(0.1611, abs=1e-4)
    assert every.low == pytest.approx(1 - none.high)
    assert wilson(0, 0, confidence=0.95) == NoInterval(reason="nothing decided")


def test_few_events_have_the_exact_end_of_the_binomial():
    for events, answers, tail in product((0.3, 1, 2.5, 5, 10), (10.5, 12, 100, 1e6), (0.025, 1e-9)):
        exact = betaincinv(events, answers - events + 1, tail)
        assert _exact_low(events, answers, tail) == pytest.approx(exact, rel=1e-9, abs=1e-15)


def test_balanced_clusters_give_the_t_interval_of_the_cluster_means(build):
    rows = [[1, 0, 1], [0, 0, 0], [1, 1, 1], [1, 0, 0]]
    means = np.array([np.mean(row) for row in rows])
    found = t_interval(cluster_totals(build(rows)), confidence=0.95)
    reach = 3.182446305284263 * means.std(ddof=1) / 2
    assert (found.low, found.high) == pytest.approx((means.mean() - reach, means.mean() + reach))


def test_no_end_lies_beyond_what_a_value_can_be(build):
    rows = [[1, 0], [1, 0], [1, 0], [0, 0]]
    obs = build(rows, arms=[0, 1], weights=(1.0, -1.0))
    free, bound = (
        confidence_interval(obs, is_share=False, limits=limits) for limits in (None, (-1.0, 1.0))
    )
    assert free.high > 1
    assert bound == replace(free, high=1.0)


def test_two_arms_use_the_difference_within_each_cluster(build):
    obs = build([[1, 0], [1, 1], [0, 0], [1, 0]], arms=[0, 1], weights=(1.0, -1.0))
    differences = np.array([1, 0, 0, 1])
    totals = cluster_totals(obs)
    assert standard_error(totals) == pytest.approx(differences.std(ddof=1) / 2)
    assert contrast(totals) == pytest.approx(0.5)
    assert math.isnan(standard_error(cluster_totals(build([[1, 0]]))))


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([[math.nan]], "nothing decided"),
        ([[1, 0, 1]], "too few clusters"),
        ([[0, 0], [0, 0]], "no variation between sources"),
        ([[1, 1], [1, 1]], "no variation between sources"),
        ([[1, 0], [0, 1]], "no variation between sources"),
    ],
)
def test_where_there_is_no_interval_the_reason_is_said(build, rows, reason):
    assert t_interval(cluster_totals(build(rows)), confidence=0.95) == NoInterval(reason=reason)


def totals(sums) -> ClusterTotals:
    values = np.asarray(sums, dtype=np.float64)
    return ClusterTotals(
        sums=values,
        counts=np.full(values.shape, 10.0),
        weights=np.array([1.0, -1.0])[: values.shape[1]],
        informative=len(values),
    )


def drawn(rng, clusters=30):
    whole = rng.binomial(10, [0.4, 0.1], (clusters, 2)).astype(np.float64)
    return totals(np.floor(whole * 0.6)), totals(whole)


@pytest.mark.parametrize("seed", range(5))
def test_the_ends_are_where_the_t_test_turns(seed):
    part, whole = drawn(np.random.default_rng(seed))
    found = ratio_interval(part, whole, confidence=0.95)
    limit = t_quantile(0.975, 29)
    for q in (found.low, found.high):
        rest = replace(part, sums=part.sums - q * whole.sums)
        assert abs(contrast(rest)) / standard_error(rest) == pytest.approx(limit)
    inside = replace(part, sums=part.sums - (found.low + found.high) / 2 * whole.sums)
    assert abs(contrast(inside)) / standard_error(inside) < limit


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (totals(np.random.default_rng(2).binomial(10, [0.3, 0.3], (30, 2))), NOT_FROM_ZERO),
        (replace(totals([[1, 0]]), counts=np.zeros((1, 2))), "nothing decided"),
        (totals([[5, 1]]), "too few clusters"),
    ],
)
def test_no_share_of_what_is_near_zero_or_without_cases_or_of_one_cluster(part, reason):
    assert ratio_interval(part, part, confidence=0.95) == NoInterval(reason=reason)


def test_covers_the_true_share_as_often_as_it_says():
    rng = np.random.default_rng(3)
    found = []
    for _ in range(800):
        whole = rng.binomial(20, rng.beta(2, 3, (40, 1)))
        part = rng.binomial(whole, 0.7)
        found.append(ratio_interval(totals(part), totals(whole), confidence=0.95))
    known = [one for one in found if isinstance(one, Interval)]
    assert len(known) > 790
    assert 0.925 <= np.mean([one.low <= 0.7 <= one.high for one in known]) <= 0.975


def test_one_and_two_degrees_have_closed_forms():
    for t in (1e-9, 1e-3, 0.5, 1.0, 12.7, 1e6):
        # Beyond 1 the angle is small, and its complement keeps the digits.
        assert t_upper_tail(t, 1) == pytest.approx(math.atan2(1, t) / math.pi, rel=1e-9)
    for t in (1e-9, 1e-3, 0.5, 1.0, 12.7, 1e3):
        root = math.sqrt(2 + t * t)
        assert t_upper_tail(t, 2) == pytest.approx(1 / root / (root + t), rel=1e-9)


@pytest.mark.parametrize("degrees", [1, 2, 5, 29, 200, 9_999])
def test_quantiles_undo_the_tail(degrees):
    for tail in (0.5, 0.4, 0.1, 0.025, 1e-3, 1e-5, 1e-9):
        t = t_quantile(1 - tail, degrees)
        assert t_upper_tail(t, degrees) == pytest.approx(tail, rel=1e-6), tail
    assert math.isnan(t_upper_tail(math.nan, degrees))
