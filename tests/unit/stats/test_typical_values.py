import math

import numpy as np
import pytest

from fairgate.stats.interval import t_quantile
from fairgate.stats.permutation import TypicalValues


def values_of(changes, shares=None, *, seed: int = 0) -> TypicalValues:
    changes = np.asarray(changes, dtype=np.float64)
    shares = np.full(len(changes), 1 / len(changes)) if shares is None else np.asarray(shares)
    return TypicalValues.of(changes, shares, rng=np.random.default_rng(seed))


def test_few_sources_use_all_subsets():
    found = values_of([0.1, 0.2, 0.3])
    # Means over subsets of the per-source changes 3 * change: 7 non-empty subsets.
    assert found.means == pytest.approx([0.3, 0.45, 0.6, 0.6, 0.6, 0.75, 0.9])
    assert found.n_arrangements == 8
    assert found.p_above(0.0) == pytest.approx(1 / 8)
    assert found.p_above(0.61) == pytest.approx(6 / 8)


def test_a_bound_excludes_a_value_exactly_where_its_test_rejects():
    changes = np.random.default_rng(1).normal(0.05, 0.2, 40) / 40
    found = values_of(changes)
    for level in (0.05, 0.0125, 0.001):
        lower, upper = found.bounds(level)
        assert found.p_above(math.nextafter(lower, -math.inf)) <= level
        assert found.p_above(lower) > level
        assert lower < float(changes.sum()) < upper


def test_the_bounds_are_close_to_those_of_t_for_normal_changes():
    raw = np.random.default_rng(5).normal(0.05, 0.2, 100)
    lower, upper = values_of(raw / 100).bounds(0.05)
    reach = t_quantile(0.95, 99) * raw.std(ddof=1) / 10
    assert lower == pytest.approx(raw.mean() - reach, abs=0.003)
    assert upper == pytest.approx(raw.mean() + reach, abs=0.003)


def test_bounds_are_infinite_where_no_arrangement_is_rare_enough():
    assert values_of([0.2, 0.2, 0.2]).bounds(0.05) == (-math.inf, math.inf)
    assert values_of([0.2] * 5).bounds(0.05) == pytest.approx((1.0, 1.0))


def test_no_change_is_bounded_by_no_change():
    assert values_of(np.zeros(30)).bounds(0.0125) == (0.0, 0.0)


def test_unequal_sources_weigh_by_their_share():
    found = values_of([0.09, 0.01], [0.9, 0.1])
    assert found.means == pytest.approx([0.1, 0.1, 0.1])


def test_neither_the_order_of_the_sources_nor_threads_matter():
    rng = np.random.default_rng(2)
    changes, shares = rng.normal(0, 0.01, 101), rng.dirichlet(np.ones(101))
    order = rng.permutation(101)
    first, second = values_of(changes, shares), values_of(changes[order], shares[order])
    assert first.means.tobytes() == second.means.tobytes()
    assert first.sums.tobytes() == second.sums.tobytes()
