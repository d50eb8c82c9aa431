import math

import numpy as np
import pytest
from fakes.statistics import power_of

from fairgate.stats.regression import (
    RuleDesign,
    minimum_detectable_effect,
    simulated_power,
    sources_needed,
)

ONE = RuleDesign(level=0.05, margin=0.0)


def test_the_margin_is_a_floor_of_what_a_rule_can_catch():
    quiet = RuleDesign(level=0.05, margin=0.02)
    assert minimum_detectable_effect(0.05, 100, quiet) == pytest.approx(0.02 + 1.281552 * 0.005)
    assert minimum_detectable_effect(0.0, 100, quiet) == pytest.approx(0.02)


@pytest.mark.parametrize("sources", [0, 1])
def test_one_source_can_see_nothing(sources):
    assert minimum_detectable_effect(0.2, sources, ONE) == math.inf
    assert power_of(0.5, 0.2, sources, ONE) == 0.0
    assert simulated_power(np.zeros(3), 0.5, sources, ONE, rng=np.random.default_rng(0)) == 0.0


@pytest.mark.parametrize("effect", [0.03, 0.05, 0.1])
@pytest.mark.parametrize("sd", [0.05, 0.2, 0.5])
def test_sources_needed_is_the_smallest_number_that_does(effect, sd):
    design = RuleDesign()
    needed = sources_needed(effect, sd, design)
    assert needed is not None
    assert minimum_detectable_effect(sd, needed, design) <= effect
    assert minimum_detectable_effect(sd, needed - 1, design) > effect


def test_a_change_within_the_margin_is_never_seen():
    assert sources_needed(0.01, 0.2, RuleDesign()) is None
    assert sources_needed(0.02, 0.2, RuleDesign()) is None
    assert sources_needed(0.0200001, 0.5, RuleDesign()) is None


def test_without_noise_as_many_sources_do_as_let_the_test_reject():
    assert sources_needed(0.05, 0.0, RuleDesign()) == 5
    assert power_of(0.05, 0.0, 4, RuleDesign()) == 0.0
    assert power_of(0.05, 0.0, 5, RuleDesign()) == 1.0
    assert power_of(0.01, 0.0, 5, RuleDesign()) == 0.0


@pytest.mark.parametrize("sd", [0.12, 0.17, 0.3])
def test_the_formula_agrees_with_the_simulation(sd):
    rng = np.random.default_rng(8)
    residuals = rng.normal(0, 1, 4000)
    residuals = (residuals - residuals.mean()) / residuals.std() * sd
    simulated = simulated_power(residuals, 0.05, 100, RuleDesign(), rng=rng, n_simulations=4000)
    assert simulated == pytest.approx(power_of(0.05, sd, 100, RuleDesign()), abs=0.02)
