"""The statistics hold what the documentation says of them, on systems whose truth is known."""

import numpy as np
import pytest
from calibration import coverage, false_alarms, identity, power
from calibration.worlds import (
    NOISES,
    Noise,
    as_observations,
    change_shapes,
    propensities,
    stable_verdicts,
)
from fakes.statistics import regression_evidence

from fairgate.stats.regression import RegressionSettings

ALPHA = 0.05
NAIVE = "naive +2 points"


def by_method(rows, rules: int) -> dict[str, false_alarms.Alarms]:
    return {row.method: row for row in rows if row.rules == rules}


def check_false_alarms(noise: Noise, comparisons: int) -> None:
    rows = false_alarms.simulate(noise, comparisons, seed=20)
    for rules in (1, 4):
        assert by_method(rows, rules)[false_alarms.GATE].limits[0] <= ALPHA, (noise.name, rules)
    # The simulation can tell a bad method: four naive rules cry wolf in every one of these worlds.
    assert by_method(rows, 4)[NAIVE].limits[0] > ALPHA


@pytest.mark.walk(1)
@pytest.mark.parametrize("noise", NOISES[1:3], ids=lambda noise: noise.name)
def test_false_alarms_are_rare_in_a_short_simulation(noise):
    check_false_alarms(noise, 60)


@pytest.mark.whole
def test_an_unchanged_repository_is_green_a_thousand_times_of_a_thousand():
    rng = np.random.default_rng(23)
    for _ in range(1000):
        rate = propensities(rng, int(rng.integers(1, 40)))
        run = as_observations(stable_verdicts(rng, rate))
        known = {"settings": RegressionSettings(), "level": ALPHA / 4}
        found = regression_evidence(run, run, **known, rng=rng)
        assert not found.significant
        assert found.upper <= 0.0


@pytest.mark.parametrize("sd", [0.05, 0.08, 0.11])
def test_five_points_are_caught_at_the_spread_of_controlled_metrics(sd):
    for row in power.simulate(sd, 100, seed=21):
        assert row.one >= 0.9 * row.simulations, row.shape
        assert row.four >= 0.9 * row.simulations, row.shape


@pytest.mark.parametrize("sd", [0.08, 0.17, 0.4])
def test_the_simulated_changes_have_the_mean_and_spread_that_they_claim(sd):
    for name, draw in change_shapes(sd, 0.05).items():
        rng = np.random.default_rng(1)
        changes = np.concatenate([draw(rng) for _ in range(400)]) / 21
        assert changes.mean() == pytest.approx(0.05, abs=0.005), name
        assert changes.std() == pytest.approx(sd, rel=0.03), name


@pytest.mark.walk(1)
@pytest.mark.parametrize("cell", [(0.3, 20, 0.5), (0.1, 50, 0.5), (0.1, 100, 0.6)])
def test_intervals_cover_in_a_short_simulation(cell):
    found = coverage.simulate(*cell, samples=600)
    assert found.covered[coverage.PRINTED] >= 0.93
    assert found.covered["Wilson, unclustered"] < 0.7


def test_a_fair_but_prefix_sensitive_system_has_no_differing_identity():
    found = identity.simulate("fair", 150, seed=22, n_draws=199)
    assert identity.clopper_pearson(found.overall, found.simulations)[0] <= ALPHA
    assert identity.clopper_pearson(found.wrongly_named, found.simulations)[0] <= ALPHA


def test_one_biased_identity_is_found_and_named():
    found = identity.simulate("one term, +20 points", 20, seed=22, n_draws=999)
    assert found.overall >= 18
    assert found.named >= 18


def test_tables_are_rendered():
    rows = false_alarms.simulate(NOISES[0], 2, seed=1)
    assert false_alarms.render(rows).count("\n") == 1 + len(false_alarms.METHODS)
    assert "bell" in power.render(power.simulate(0.4, 2, seed=1))
    assert "| 0.30 | 20 |" in coverage.render([coverage.simulate(0.3, 20, 0.5, 50)])
    assert "fair" in identity.render([identity.simulate("fair", 1, seed=1, n_draws=9)])
