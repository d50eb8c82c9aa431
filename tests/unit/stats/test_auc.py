from __future__ import annotations

import math

import numpy as np
import pytest

from fairgate.stats.association import auc, quartiles


def by_pairs(scores, positive) -> float:
    wins = [(a > b) + (a == b) / 2 for a in scores[positive] for b in scores[~positive]]
    return float(np.mean(wins))


def test_auc_is_the_share_of_won_pairs_with_ties_as_halves():
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.integers(0, 6, 40).astype(float)
        positive = rng.random(40) < 0.4
        assert auc(scores, positive) == pytest.approx(by_pairs(scores, positive))


def test_auc_of_perfect_reversed_and_constant_scores():
    positive = np.array([True, True, False])
    assert auc(np.array([3.0, 2.0, 1.0]), positive) == 1.0
    assert auc(np.array([1.0, 2.0, 3.0]), positive) == 0.0
    assert auc(np.array([1.0, 1.0, 1.0]), positive) == 0.5


def test_auc_needs_both_kinds():
    scores = np.array([1.0, 2.0])
    assert math.isnan(auc(scores, np.array([True, True])))
    assert math.isnan(auc(scores, np.array([False, False])))
    assert math.isnan(auc(np.zeros(0), np.zeros(0, dtype=bool)))


def test_quartiles_interpolate_linearly():
    assert quartiles(np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx((1.75, 2.5, 3.25))
    assert all(math.isnan(value) for value in quartiles(np.zeros(0)))
