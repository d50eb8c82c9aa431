import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from fairgate.stats.interval import t_quantile
from fairgate.stats.permutation import TypicalValues, holm, sign_flip_test


def values_of(changes, shares=None, *, seed=0) -> TypicalValues:
    changes = np.asarray(changes, dtype=np.float64)
    shares = np.full(len(changes), 1 / len(changes)) if shares is None else np.asarray(shares)
    return TypicalValues.of(changes, shares, rng=np.random.default_rng(seed))


def flip(changes, reach=None):
    values = values_of(changes)
    reach = values.total if reach is None else reach
    return sign_flip_test(np.asarray(changes, dtype=np.float64), values, reach)


def enumerated(changes) -> float:
    sums = [np.dot(signs, changes) for signs in product((-1, 1), repeat=len(changes))]
    return float(np.mean(np.array(sums) >= np.sum(changes) - 1e-9))


@pytest.mark.parametrize("changes", [[3, -1, 2, 5, 1], [1, 1, 1, -1], [-2, -3, 1], [4], [2, -2]])
def test_few_changes_are_tested_exactly(changes):
    assert flip(np.array(changes) / 21) == (pytest.approx(enumerated(changes)), True)
    assert flip([*changes, *[0] * 40]) == (pytest.approx(enumerated(changes)), True)


def test_ties_with_the_observed_sum_count():
    # In floating point 0.1 + 0.2 is not 0.3.
    assert flip([0.1, 0.2, -0.3])[0] == pytest.approx(5 / 8)


def test_drawn_flips_agree_with_the_normal_approximation_and_are_seeded():
    changes = np.random.default_rng(3).normal(0.15, 1, 60)
    assert flip(changes) == flip(changes)
    expected = norm.sf(changes.sum() / math.sqrt(np.square(changes).sum()))
    assert flip(changes) == (pytest.approx(expected, abs=0.01), False)
    never_zero = flip(np.full(50, 0.3) + np.linspace(0, 0.01, 50))
    assert never_zero == (pytest.approx(1 / 20_001), False)


def test_the_sum_to_reach_can_be_smaller_than_the_observed_one():
    changes = np.array([1.0, 1.0, 1.0])
    assert flip(changes)[0] == pytest.approx(1 / 8)
    assert flip(changes, reach=1.0)[0] == pytest.approx(4 / 8)
    spread = np.linspace(0.5, 1.5, 40) * np.where(np.arange(40) % 4 == 0, -1, 1)
    drawn = values_of(spread)
    assert drawn.p_reach(float(spread.sum())) < drawn.p_reach(0.0)
    assert drawn.p_reach(0.0) == pytest.approx(0.5, abs=0.05)


def test_few_sources_use_all_subsets():
    found = values_of([0.1, 0.2, 0.3])
    # Means over subsets of the per-source changes 3 * change: 7 non-empty subsets.
    assert found.means == pytest.approx([0.3, 0.45, 0.6, 0.6, 0.6, 0.75, 0.9])
    assert found.n_arrangements == 8


def test_a_bound_excludes_a_value_exactly_where_its_test_rejects():
    changes = np.random.default_rng(1).normal(0.05, 0.2, 40) / 40
    found = values_of(changes)
    for level in (0.05, 0.0125, 0.001):
        lower, upper = found.bounds(level)
        reached = [int((found.means <= end).sum()) for end in (math.nextafter(lower, -1), lower)]
        below, at = ((found.always + many) / found.n_arrangements for many in reached)
        assert below <= level < at
        assert lower < float(changes.sum()) < upper


def test_the_bounds_are_close_to_those_of_t_for_normal_changes():
    raw = np.random.default_rng(5).normal(0.05, 0.2, 100)
    lower, upper = values_of(raw / 100).bounds(0.05)
    reach = t_quantile(0.95, 99) * raw.std(ddof=1) / 10
    assert lower == pytest.approx(raw.mean() - reach, abs=0.003)
    assert upper == pytest.approx(raw.mean() + reach, abs=0.003)


@pytest.mark.parametrize(
    ("changes", "level", "bounds"),
    [
        ([0.2] * 3, 0.05, (-math.inf, math.inf)),  # no arrangement is rare enough
        ([0.2] * 5, 0.05, pytest.approx((1.0, 1.0))),
        ([0.0] * 30, 0.0125, (0.0, 0.0)),
    ],
)
def test_bounds_of_equal_changes(changes, level, bounds):
    assert values_of(changes).bounds(level) == bounds


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


def test_holm_by_hand_and_equal_p_treated_equally():
    found = holm([0.01, 0.04, 0.03, 0.005], alpha=0.05)
    assert [one.adjusted_p for one in found] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [one.rejected for one in found] == [True, False, False, True]
    # 0.005 at a quarter, 0.01 at a third; 0.03 at a half stops the steps, also for 0.04.
    assert [one.level for one in found] == pytest.approx([0.05 / 3, 0.025, 0.025, 0.0125])
    tied = holm([0.02, 0.02, 0.02], alpha=0.05)
    assert [(one.rejected, one.level) for one in tied] == [(False, 0.05 / 3)] * 3


def test_tests_that_cannot_reject_leave_the_family():
    """Tarone: of 300 drawn families each that can reject is corrected as if the others were not there."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        size = int(rng.integers(1, 9))
        least = np.where(rng.random(size) < 0.5, 0.0, rng.uniform(0.051, 1, size))
        p_values = np.maximum(least, rng.random(size) ** 3).tolist()
        found = holm(p_values, alpha=0.05, least=least.tolist())
        able = [number for number in range(size) if least[number] <= 0.05]
        alone = holm([p_values[n] for n in able], alpha=0.05)
        assert [found[n] for n in able] == alone
        for number in {*range(size)} - {*able}:
            assert not found[number].rejected
            assert found[number].adjusted_p > 0.05
            assert 0 < found[number].level < found[number].p_value
