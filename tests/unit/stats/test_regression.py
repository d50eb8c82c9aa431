import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from fakes.statistics import regression_evidence
from scipy import stats

from fairgate.stats.observations import estimate
from fairgate.stats.regression import Method, Worse

NAN = math.nan


def evidence(now, base, *, level: float = 0.05, worse: Worse = Worse.HIGHER):
    rng = np.random.default_rng(0)
    return regression_evidence(now, base, worse=worse, level=level, rng=rng)


def verdicts(rng, sources: int = 60, terms: int = 7, rate: float = 0.3):
    return (rng.random((sources, terms)) < rng.beta(rate, 1 - rate, (sources, 1))).astype(float)


def test_a_regression_is_significant_and_bounded_away_from_zero(build):
    base = verdicts(np.random.default_rng(0))
    now = base.copy()
    now[:14, :3] = 1.0
    found = evidence(build(now), build(base))
    assert found.worsening == pytest.approx(now.mean() - base.mean())
    assert found.significant
    assert found.method is Method.EXACT
    assert 0 < found.lower < found.worsening < found.upper
    assert found.n_changed_sources <= 14
    assert found.n_discordant == int((now != base).sum())


def test_for_a_value_where_higher_is_better_a_fall_is_the_worsening(build):
    rng = np.random.default_rng(3)
    base, now = verdicts(rng), verdicts(rng)
    up = evidence(build(now), build(base))
    down = evidence(build(base), build(now), worse=Worse.LOWER)
    assert down.worsening == pytest.approx(up.worsening)
    assert (down.p_value, down.lower, down.upper) == (up.p_value, up.lower, up.upper)


@pytest.mark.parametrize("level", [0.05, 0.025, 0.0125])
@pytest.mark.parametrize("worse", list(Worse))
@pytest.mark.parametrize("sources", [1, 2, 3, 6, 9, 12, 30])
def test_p_value_and_bound_agree_at_every_level(build, level, worse, sources):
    rng = np.random.default_rng(sources)
    for shift in (0.0, 0.1, 0.3):
        base = verdicts(rng, sources)
        now = np.maximum(base, rng.random(base.shape) < shift)
        arms = {"arms": [0, 1, 0, 1, 0, 1, 0], "weights": (1.0, -1.0)}
        runs = build(now, **arms), build(base, **arms)
        found = evidence(*runs, level=level, worse=worse)
        assert (found.lower > 0) == found.significant
        assert found.lower <= found.worsening <= found.upper


def test_one_source_can_say_nothing_about_a_change(build):
    found = evidence(build([[1, 1, 1]]), build([[0, 0, 0]]))
    assert found.p_value == 0.5
    assert found.upper == math.inf
    assert found.n_changed_sources == 1


def test_few_sources_are_compared_by_t(build):
    rng = np.random.default_rng(4)
    base, now = verdicts(rng, 4, 20), verdicts(rng, 4, 20, 0.8)
    found = evidence(build(now), build(base))
    changes = (now - base).mean(axis=1)
    assert found.method is Method.STUDENT
    expected = stats.ttest_1samp(changes, 0, alternative="greater")
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.lower == pytest.approx(expected.confidence_interval(0.95).low)


def test_from_five_sources_on_the_test_is_exact(build):
    """Student's t would reject three changes of eight (p = .04); by chance it is one of eight."""
    now = [[1, 0]] * 3 + [[0, 0]] * 5
    found = evidence(build(now), build([[0, 0]] * 8))
    assert found.method is Method.EXACT
    assert found.p_value == pytest.approx(1 / 8)


def test_four_sources_that_turn_alike_show_nothing(build):
    """No spread, and still no test that could reject."""
    found = evidence(build([[1, 1]] * 4), build([[0, 0]] * 4))
    assert found.worsening == 1.0
    assert not found.significant
    assert found.least_p == 1 / 16


@pytest.mark.parametrize("rows", [[], [[NAN, NAN]], [[NAN], [NAN]]])
def test_nothing_decided_is_not_evaluated(build, rows):
    found = evidence(build(rows), build(rows))
    assert (found.evaluated, found.significant, found.level) == (False, False, 0.05)
    assert math.isnan(found.p_value)


def test_real_values_are_compared_by_drawn_flips(build):
    rng = np.random.default_rng(6)
    base = rng.gamma(2, 0.3, (60, 5))
    now = base + rng.normal(0.1, 0.2, base.shape)
    found = evidence(build(now), build(base))
    assert found.method is Method.MONTE_CARLO
    assert found.significant
    assert found.lower == pytest.approx(0.08, abs=0.03)


def test_the_same_whatever_the_order_of_cases_and_sources(build):
    rng = np.random.default_rng(7)
    now, base = build(rng.gamma(2, 0.3, (30, 5))), build(rng.gamma(2, 0.3, (30, 5)))
    order = rng.permutation(150)
    keys = [now.keys[i] for i in order]
    turned = replace(now, keys=keys, clusters=29 - now.clusters[order], values=now.values[order])
    first, second = evidence(now, base), evidence(turned, base)
    for name in ("p_value", "lower", "upper", "worsening"):
        assert getattr(second, name) == pytest.approx(getattr(first, name), abs=1e-12)


def two_arms(build, biased, counter):
    return build(np.stack([biased, counter], axis=1), arms=[0, 1], weights=(1.0, -1.0))


@pytest.mark.parametrize("seed", range(25))
def test_the_absolute_change_is_tested_exactly(build, seed):
    rng = np.random.default_rng(seed)
    now, base = verdicts(rng, 11, 2, 0.5), verdicts(rng, 11, 2, 0.5)
    found = evidence(two_arms(build, *now.T), two_arms(build, *base.T), worse=Worse.ABSOLUTE)
    # Exchange the runs within sources in all ways and compare the sizes.
    here, there = now[:, 0] - now[:, 1], base[:, 0] - base[:, 1]
    swaps = np.array(list(product((False, True), repeat=11)))
    sizes = [abs(np.where(s, there, here).mean(axis=1)) for s in (swaps, ~swaps)]
    expected = np.mean(sizes[0] - sizes[1] >= abs(here.mean()) - abs(there.mean()) - 1e-9)
    if found.worsening > 1e-9:
        assert found.p_value == pytest.approx(expected)
    else:
        assert min(found.p_value, expected) >= 0.5


def test_a_bias_that_turns_its_sign_is_no_larger_bias(build):
    rng = np.random.default_rng(9)
    biased, counter = (rng.random(60) < 0.7).astype(float), (rng.random(60) < 0.3).astype(float)
    now, base = two_arms(build, biased, counter), two_arms(build, counter, biased)
    found = evidence(now, base, worse=Worse.ABSOLUTE)
    assert found.sign_changed
    assert found.worsening == pytest.approx(0)
    assert not found.significant
    assert estimate(now) == pytest.approx(-estimate(base))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_growing_bias_is_a_worsening_and_a_shrinking_one_none_on_either_side(build, sign):
    rng = np.random.default_rng(11)
    none = (rng.random(60) < 0.5).astype(float)
    fair = two_arms(build, none, none)
    slanted = two_arms(build, *(none * (rng.random(60) < 0.4), none)[::sign])
    grown = evidence(slanted, fair, worse=Worse.ABSOLUTE)
    assert grown.now * sign < 0
    assert 0.1 < grown.worsening <= grown.upper
    assert grown.significant
    shrunk = evidence(fair, slanted, worse=Worse.ABSOLUTE)
    assert shrunk.worsening < 0
    assert shrunk.p_value > 0.9
    assert shrunk.upper < 0.1


@pytest.mark.parametrize("sources", [3, 4])
def test_few_sources_with_a_turned_sign_use_the_wider_error(build, sources):
    rng = np.random.default_rng(sources)
    now = two_arms(build, rng.random(sources).round(1), rng.random(sources).round(1) / 3)
    base = two_arms(build, rng.random(sources).round(1) / 3, rng.random(sources).round(1))
    found = evidence(now, base, worse=Worse.ABSOLUTE)
    assert found.method is Method.STUDENT
    assert found.sign_changed
    assert 0 < found.p_value < 1
    assert found.lower <= found.worsening <= found.upper
