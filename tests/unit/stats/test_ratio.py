"""Fieller's interval holds exactly the ratios that the t test of part - q * whole keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairgate.stats.interval import (
    NOT_FROM_ZERO,
    Interval,
    NoInterval,
    contrast,
    ratio_interval,
    standard_error,
    t_quantile,
)
from fairgate.stats.observations import ClusterTotals


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
    assert isinstance(found, Interval)
    limit = t_quantile(0.975, 29)
    for q in (found.low, found.high):
        rest = replace(part, sums=part.sums - q * whole.sums)
        assert abs(contrast(rest)) / standard_error(rest) == pytest.approx(limit)
    inside = replace(part, sums=part.sums - (found.low + found.high) / 2 * whole.sums)
    assert abs(contrast(inside)) / standard_error(inside) < limit


def test_a_part_that_is_the_whole_has_the_share_one():
    _, whole = drawn(np.random.default_rng(1))
    found = ratio_interval(whole, whole, confidence=0.95)
    assert isinstance(found, Interval)
    assert (found.low, found.high) == (pytest.approx(1.0), pytest.approx(1.0))


def test_no_share_of_a_whole_that_cannot_be_told_from_zero():
    rng = np.random.default_rng(2)
    part = totals(rng.binomial(10, [0.3, 0.3], (30, 2)))
    found = ratio_interval(part, part, confidence=0.95)
    assert found == NoInterval(reason=NOT_FROM_ZERO)


def test_no_share_without_cases_or_with_one_cluster():
    nothing = replace(totals([[1, 0]]), counts=np.zeros((1, 2)))
    assert isinstance(ratio_interval(nothing, nothing, confidence=0.95), NoInterval)
    one = totals([[5, 1]])
    assert isinstance(ratio_interval(one, one, confidence=0.95), NoInterval)


def test_covers_the_true_share_as_often_as_it_says():
    rng = np.random.default_rng(3)
    hits, known = 0, 0
    for _ in range(800):
        chance = rng.beta(2, 3, (40, 1))
        whole = rng.binomial(20, chance).astype(np.float64)
        part = rng.binomial(whole.astype(int), 0.7).astype(np.float64)
        one = ratio_interval(totals(part), totals(whole), confidence=0.95)
        if isinstance(one, Interval):
            known += 1
            hits += one.low <= 0.7 <= one.high
    assert known > 790
    assert 0.925 <= hits / known <= 0.975
