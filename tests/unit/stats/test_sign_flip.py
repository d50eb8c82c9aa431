import math
from itertools import product

import numpy as np
import pytest

from fairgate.stats.permutation import (
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
    assert by_steps == (pytest.approx(enumerated(changes)), True)
    assert by_list == (pytest.approx(enumerated(changes)), True)


def test_ties_with_the_observed_sum_count():
    # In floating point 0.1 + 0.2 is not 0.3; as steps of 1/10 the sums tie.
    found = flip(np.array([0.1, 0.2, -0.3]))
    assert found[0] == pytest.approx(5 / 8)


def test_monte_carlo_agrees_with_the_exact_p_and_is_seeded():
    changes = np.random.default_rng(3).normal(0.15, 1, 60)
    first, second = sign_flip_test(changes, values_of(changes)), flip(changes)
    assert first == second
    exact = sign_flip_test(np.rint(changes * 1000) / 1000, values_of(changes), unit=1 / 1000)
    assert (first[1], exact[1]) == (False, True)
    assert first[0] == pytest.approx(exact[0], abs=0.01)


def test_monte_carlo_never_reports_zero():
    changes = np.full(50, 0.3) + np.linspace(0, 0.01, 50)
    assert flip(changes) == (pytest.approx(1 / 20_001), False)


def test_the_sum_to_reach_can_be_smaller_than_the_observed_one():
    changes = np.array([1.0, 1.0, 1.0])
    assert flip(changes)[0] == pytest.approx(1 / 8)
    assert flip(changes, reach=1.0)[0] == pytest.approx(4 / 8)
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
