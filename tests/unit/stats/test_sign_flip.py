from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from fairgate.stats.sign_flip import (
    FlipMethod,
    TypicalValues,
    changed_sources_needed,
    lattice_unit,
    sign_flip_test,
)


def values_of(changes, seed: int = 0, n_draws: int = 20_000) -> TypicalValues:
    changes = np.asarray(changes, dtype=np.float64)
    shares = np.full(len(changes), 1 / len(changes))
    return TypicalValues.of(changes, shares, rng=np.random.default_rng(seed), n_draws=n_draws)


def flip(changes, **more):
    changes = np.asarray(changes, dtype=np.float64)
    return sign_flip_test(changes, values_of(changes), **more)


def enumerated(changes) -> float:
    sums = [np.dot(signs, changes) for signs in product((-1, 1), repeat=len(changes))]
    return float(np.mean(np.array(sums) >= np.sum(changes) - 1e-9))


@pytest.mark.parametrize("changes", [[3, -1, 2, 5, 1], [1, 1, 1, -1], [-2, -3, 1], [4], [2, -2]])
def test_both_exact_methods_agree_with_all_sign_vectors(changes):
    by_steps = flip(np.array(changes) / 21, unit=1 / 21)
    by_list = flip(np.array(changes) / 21)
    assert by_steps.method is FlipMethod.CONVOLUTION
    assert by_list.method is FlipMethod.ENUMERATION
    assert by_steps.p_worse == pytest.approx(enumerated(changes))
    assert by_list.p_worse == pytest.approx(enumerated(changes))


def test_unchanged_sources_do_not_matter():
    some = np.array([3, -1, 2, 5, 1]) / 21
    padded = np.concatenate([some, np.zeros(95)])
    assert flip(padded, unit=1 / 21) == flip(some, unit=1 / 21)


def test_no_changed_source_is_no_evidence():
    found = flip(np.zeros(20), unit=1.0)
    assert found.method is FlipMethod.NOTHING_CHANGED
    assert (found.p_worse, found.p_two_sided, found.min_attainable_p) == (1.0, 1.0, 1.0)


def test_all_changed_sources_worse_attain_the_smallest_p():
    found = flip(np.full(6, 2 / 21), unit=1 / 21)
    assert found.p_worse == pytest.approx(0.5**6)
    assert found.min_attainable_p == pytest.approx(0.5**6)
    assert found.p_two_sided == pytest.approx(2 * 0.5**6)


def test_an_improvement_has_a_large_one_sided_and_a_small_two_sided_p():
    found = flip(np.full(8, -1 / 21), unit=1 / 21)
    assert found.p_worse == pytest.approx(1.0)
    assert found.p_two_sided == pytest.approx(2 / 2**8)


def test_ties_with_the_observed_sum_count():
    # In floating point 0.1 + 0.2 is not 0.3; as steps of 1/10 the sums tie.
    found = flip(np.array([0.1, 0.2, -0.3]))
    assert found.p_worse == pytest.approx(5 / 8)


def test_monte_carlo_agrees_with_the_exact_p_and_is_seeded():
    changes = np.random.default_rng(3).normal(0.15, 1, 60)
    first, second = sign_flip_test(changes, values_of(changes)), flip(changes)
    assert first == second
    assert first.method is FlipMethod.MONTE_CARLO
    exact = sign_flip_test(np.rint(changes * 1000) / 1000, values_of(changes), unit=1 / 1000)
    assert exact.method is FlipMethod.CONVOLUTION
    assert first.p_worse == pytest.approx(exact.p_worse, abs=0.01)
    assert first.p_two_sided == pytest.approx(exact.p_two_sided, abs=0.02)


def test_monte_carlo_never_reports_zero():
    changes = np.full(50, 0.3) + np.linspace(0, 0.01, 50)
    found = flip(changes)
    assert found.method is FlipMethod.MONTE_CARLO
    assert found.p_worse == pytest.approx(1 / 20_001)
    assert found.min_attainable_p == pytest.approx(1 / 20_001)


def test_the_sum_to_reach_can_be_smaller_than_the_observed_one():
    changes = np.array([1.0, 1.0, 1.0])
    assert flip(changes).p_worse == pytest.approx(1 / 8)
    assert flip(changes, reach=1.0).p_worse == pytest.approx(4 / 8)
    spread = np.linspace(0.5, 1.5, 40) * np.where(np.arange(40) % 4 == 0, -1, 1)
    drawn = values_of(spread)
    assert drawn.p_reach(float(spread.sum())) < drawn.p_reach(0.0)
    assert drawn.p_reach(0.0) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("level", "needed"), [(0.05, 5), (0.0125, 7), (0.5, 1), (0.25, 2), (0.01, 7)]
)
def test_how_many_changed_sources_a_level_needs(level, needed):
    assert changed_sources_needed(level) == needed
    assert 0.5**needed <= level < 0.5 ** (needed - 1)


def test_lattice_of_verdicts_is_the_common_denominator(build):
    assert lattice_unit(build([[1, 0, -1], [0, 0, 1]])) == pytest.approx(1 / 6)
    two = build([[1, 0, 0], [1, 0, 0]], arms=[0, 0, 1], weights=(1.0, -1.0))
    assert lattice_unit(two) == pytest.approx(1 / 4)


def test_real_values_halves_of_weights_and_empty_arms_have_no_lattice(build):
    assert lattice_unit(build([[0.5, 0]])) is None
    assert lattice_unit(build([[1, 0]], arms=[0, 1], weights=(0.5, 0.5))) is None
    assert lattice_unit(build([[1, math.nan]], arms=[0, 1], weights=(1.0, -1.0))) is None
