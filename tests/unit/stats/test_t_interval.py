from __future__ import annotations

import math

import numpy as np
import pytest

from fairgate.stats.interval import Interval, NoInterval, contrast, standard_error, t_interval
from fairgate.stats.observations import cluster_totals


def test_balanced_clusters_give_the_t_interval_of_the_cluster_means(build):
    rows = [[1, 0, 1], [0, 0, 0], [1, 1, 1], [1, 0, 0]]
    means = np.array([np.mean(row) for row in rows])
    found = t_interval(cluster_totals(build(rows)), confidence=0.95)
    assert isinstance(found, Interval)
    reach = 3.182446305284263 * means.std(ddof=1) / 2
    assert (found.low, found.high) == pytest.approx((means.mean() - reach, means.mean() + reach))


def test_two_arms_use_the_difference_within_each_cluster(build):
    obs = build([[1, 0], [1, 1], [0, 0], [1, 0]], arms=[0, 1], weights=(1.0, -1.0))
    differences = np.array([1, 0, 0, 1])
    totals = cluster_totals(obs)
    assert standard_error(totals) == pytest.approx(differences.std(ddof=1) / 2)
    assert contrast(totals) == pytest.approx(0.5)


def test_empty_clusters_do_not_count(build):
    with_empty = cluster_totals(build([[1, 0], [math.nan, math.nan], [0, 0], [1, 1]]))
    without = cluster_totals(build([[1, 0], [0, 0], [1, 1]]))
    assert t_interval(with_empty, confidence=0.95) == t_interval(without, confidence=0.95)


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


def test_standard_error_of_one_cluster_is_unknown(build):
    assert math.isnan(standard_error(cluster_totals(build([[1, 0]]))))
