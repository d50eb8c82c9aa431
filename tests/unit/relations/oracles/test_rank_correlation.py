"""Spearman's rho of two rankings, against its definition and against scipy on the same ranks."""

import itertools
import random

import pytest
from scipy.stats import spearmanr

from fairgate.relations.oracles.ranking import rank_correlation


def by_definition(left, right):
    """Return 1 - 6 sum d^2 / (n (n^2 - 1)) over the items that both have."""
    common = [item for item in left if item in right]
    others = [item for item in right if item in left]
    n = len(common)
    squares = sum((common.index(item) - others.index(item)) ** 2 for item in common)
    return 1 - 6 * squares / (n * (n * n - 1))


@pytest.mark.parametrize("n", [3, 4, 5])
def test_all_permutations(n):
    items = "abcde"[:n]
    for other in itertools.permutations(items):
        expected = by_definition(items, other)
        assert rank_correlation(items, other) == pytest.approx(expected, abs=1e-12)
        ranks = [other.index(item) for item in items]
        assert expected == pytest.approx(spearmanr(range(n), ranks).statistic, abs=1e-12)


def test_items_that_only_one_ranking_has_are_left_out():
    rng = random.Random(7)
    for _ in range(100):
        left, right = (rng.sample("abcdefghij", rng.randrange(3, 10)) for _ in range(2))
        common = set(left) & set(right)
        found = rank_correlation(left, right)
        if len(common) < 3:
            assert found is None
        else:
            assert found == pytest.approx(by_definition(left, right), abs=1e-12)
