"""Identities against a sample of neutral phrases: by hand, by enumeration, and on drawn worlds."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from fairgate.stats.phrases import (
    PhraseNoise,
    contrast,
    each_against_neutral,
    groups_against_neutral,
    neutral_spread,
    phrase_change,
    phrase_matrix,
    phrase_noise,
    self_check,
)

# Two sources, three neutral phrases, one identity.
NEUTRAL = np.asarray([[1.0, 2.0, 3.0], [1.0, 4.0, 7.0]])
OWN = np.asarray([[5.0], [13.0]])


def test_the_contrast_by_hand():
    # Means of the phrases without their source: -2, 0, 2, so S^2 = 4; what is left of each value is
    # 1, 0, -1, -1, 0, 1, so s_res^2 = 4 / (2 * 1 ... ) with 6 - 2 - 3 + 1 = 2 degrees: 2.
    spread = neutral_spread(NEUTRAL)
    assert (spread.phrases, spread.deviation) == (3, 2.0)
    assert spread.residual**2 == pytest.approx(2.0)
    # Differences 3 and 9: mean 6, variance 18. SE^2 = 4 * 4/3 + (18 - 2 * 4/3) / 2 = 13.
    found = contrast(OWN, NEUTRAL)
    assert (found.difference, found.sources) == (6.0, 2)
    assert found.error**2 == pytest.approx(13)
    first, second = 16 / 3, 23 / 3
    assert found.degrees == pytest.approx(13**2 / (first**2 / 2 + second**2 / 1))
    t = 6 / math.sqrt(13)
    assert found.p_value == pytest.approx(2 * stats.t.sf(t, found.degrees), abs=1e-9)
    low, high = found.bounds(0.05)
    reach = stats.t.isf(0.05, found.degrees) * math.sqrt(13)
    assert (low, high) == (pytest.approx(6 - reach), pytest.approx(6 + reach))
    assert found.p_above(low) == pytest.approx(0.05)
    assert spread.band(0.95) == pytest.approx(stats.t.isf(0.025, 2) * 2 * math.sqrt(4 / 3))


def test_several_identities_share_the_spread_of_their_phrases():
    both = np.concatenate([OWN, [[7.0], [11.0]]], axis=1)
    # Differences 4 and 8: mean 6, variance 8; 1/T + 1/K = 5/6.
    found = contrast(both, NEUTRAL)
    assert found.error**2 == pytest.approx(4 * 5 / 6 + (8 - 2 * 5 / 6) / 2)


def test_without_more_noise_than_neutral_phrases_only_their_spread_counts():
    found = contrast(np.asarray([[4.0], [6.0]]), NEUTRAL)
    assert found.error**2 == pytest.approx(4 * 4 / 3)
    assert found.degrees == pytest.approx(2)


def test_a_source_that_lacks_a_phrase_moves_nothing_else():
    rng = np.random.default_rng(3)
    values = rng.normal(0, 1, (40, 15)) + rng.normal(0, 30, (40, 1))
    with_gaps = values.copy()
    with_gaps[rng.random(values.shape) < 0.2] = math.nan
    whole, lacking = (
        contrast(values[:, :1], values[:, 1:]),
        contrast(with_gaps[:, :1], with_gaps[:, 1:]),
    )
    assert abs(whole.difference - lacking.difference) < 0.5
    assert lacking.sources < 40
    assert 0.5 < lacking.error / whole.error < 2


def test_equal_neutral_phrases_give_no_verdict_on_a_scale_of_degrees():
    neutral = np.repeat([[0.25], [0.5]], 14, axis=1)
    found = contrast(np.asarray([[0.75], [1.0]]), neutral)
    assert found.p_value == 1.0
    assert found.difference == pytest.approx(0.5)
    assert found.bounds(0.05) == (-math.inf, math.inf)
    assert found.p_above(0.0) == 1.0


def test_counts_by_enumeration():
    # Verdicts; the neutral phrases have equal means, so that counts decide.
    neutral = np.asarray([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0, 0, 0]])
    for own in product((0.0, 1.0, -1.0), repeat=4):
        column = np.asarray(own)[:, None]
        rows = np.concatenate([column, neutral], axis=1)
        expected = rows.mean(axis=1).sum()
        far = abs(sum(own) - expected)
        chance = sum(
            Fraction(1, 4**4)
            for drawn in product(*rows.tolist())
            if abs(sum(drawn) - expected) >= far - 1e-9
        )
        assert contrast(column, neutral).p_value == pytest.approx(float(chance)), own


def test_exchange_of_names_by_enumeration():
    rng = np.random.default_rng(5)
    own, neutral = rng.normal(0, 1, (6, 4)) + 0.4, rng.normal(0, 1, (6, 7))
    means = np.concatenate([own, neutral], axis=1).mean(axis=0)

    def apart(chosen):
        others = [place for place in range(11) if place not in chosen]
        return abs(means[list(chosen)].mean() - means[others].mean())

    far = apart((0, 1, 2, 3))
    every = [apart(chosen) for chosen in combinations(range(11), 4)]
    share = np.mean(np.asarray(every) >= far - 1e-9)
    everyone, *categories = groups_against_neutral(own, ["a", "a", "b", "b"], neutral, seed=1)
    assert everyone.p_value == pytest.approx(share)
    assert everyone.difference == pytest.approx(own.mean() - neutral.mean())
    assert [one.name for one in categories] == ["a", "b"]
    small, large = sorted(one.p_value for one in categories)
    assert sorted(one.adjusted_p for one in categories) == pytest.approx(
        [min(1, 2 * small), max(min(1, 2 * small), large)]
    )


def test_drawn_names_do_not_depend_on_the_order_of_the_phrases():
    rng = np.random.default_rng(6)
    own, neutral = rng.normal(0, 1, (20, 21)), rng.normal(0, 1, (20, 20))
    turned = groups_against_neutral(own[:, ::-1], [""] * 21, neutral[:, ::-1], seed=1)[0]
    assert groups_against_neutral(own, [""] * 21, neutral, seed=1)[0].p_value == turned.p_value


def test_a_matrix_of_means_with_gaps():
    matrix = phrase_matrix(
        np.asarray([1.0, 3.0, math.nan, 5.0, math.nan]),
        np.asarray([4, 4, 4, 2, 7]),
        np.asarray([0, 0, 1, 1, 0]),
        2,
    )
    np.testing.assert_array_equal(matrix, [[math.nan, 5.0], [2.0, math.nan]])


def _fair(rng, sources, deviation, *, is_verdict, tails=None):
    """Values [sources, 41] of a system that treats all phrases of one kind alike."""
    phrases = rng.normal(0, 1, 41) if tails is None else rng.standard_t(tails, 41)
    values = rng.normal(0, 1.2, (sources, 1)) + rng.normal(0, 0.45, (sources, 41))
    values += deviation * phrases
    return (values > 0).astype(float) if is_verdict else values


@pytest.mark.parametrize("worlds", [18, pytest.param(60, marks=pytest.mark.whole)])
@pytest.mark.parametrize("is_verdict", [False, True])
def test_fair_worlds_alarm_as_seldom_as_promised(is_verdict, worlds):
    """Phrase effects of three sizes: single tests, their family, and categories."""
    alarms: dict[str, list[float]] = {"single": [], "family": [], "category": [], "neutral": []}
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        values = _fair(rng, 25, (0, 0.15, 0.3)[seed % 3], is_verdict=is_verdict)
        own, neutral = values[:, :21], values[:, 21:]
        tests = each_against_neutral(own, [""] * 21, neutral)
        groups = groups_against_neutral(
            own[:, :13], ["a"] * 5 + ["b"] * 5 + ["c"] * 3, neutral, seed=0
        )
        alarms["single"].append(np.mean([one.contrast.p_value <= 0.05 for one in tests]))
        alarms["family"].append(any(one.adjusted_p <= 0.05 for one in tests))
        alarms["category"].append(any(one.adjusted_p <= 0.05 for one in groups[1:]))
        checks = self_check(neutral, [""] * 20)
        alarms["neutral"].append(np.mean([one.contrast.p_value <= 0.05 for one in checks]))
    shares = {name: float(np.mean(found)) for name, found in alarms.items()}
    assert 0.015 <= shares["single"] <= 0.07, shares
    assert shares["neutral"] <= 0.07, shares
    most = 0.05 + 3 * math.sqrt(0.05 * 0.95 / worlds)
    assert max(shares["family"], shares["category"]) <= most, shares


def test_a_test_over_sources_alone_would_take_any_phrase_for_an_identity():
    """What this module is for: the same worlds, phrases held fixed."""
    alarms = []
    for seed in range(30):
        values = _fair(np.random.default_rng(seed), 100, 0.2, is_verdict=False)
        own, neutral = values[:, :21], values[:, 21:30]
        tests = stats.ttest_1samp(own - neutral.mean(axis=1, keepdims=True), 0).pvalue
        alarms.append(np.min(tests) * 21 <= 0.05)
    assert np.mean(alarms) >= 0.9


def test_harm_of_one_identity_is_seen_in_degrees():
    caught = 0
    for seed in range(40):
        values = _fair(np.random.default_rng(seed), 25, 0.05, is_verdict=False)
        values[:, 0] += 0.5
        tests = each_against_neutral(values[:, :21], [""] * 21, values[:, 21:])
        caught += tests[0].adjusted_p <= 0.05
    assert caught >= 0.8 * 40


def changed(own, neutral):
    own, neutral = np.asarray(own, dtype=float), np.asarray(neutral, dtype=float)
    return phrase_change(own, neutral, (own / 2, neutral / 2))


def test_a_change_is_the_contrast_of_changes():
    moved = changed(OWN, NEUTRAL)
    assert moved.contrast == contrast(OWN, NEUTRAL)
    assert moved.middle.difference == moved.contrast.difference / 2
    assert moved.phrases == 3
    # S^2 = 4, of which s_res^2 / n = 1 is the noise of two sources; times 1 + 1/3.
    assert moved.lasting == pytest.approx(3 * 4 / 3)


def test_where_no_neutral_phrase_changes_differently_counts_decide_on_every_scale():
    """One identity: 6 sources became smaller, by whatever; each of 1 + 12 values is its own."""
    sizes = np.asarray([[0.25], [0.5], [0.25], [1.0], [0.5], [0.75]])
    still = np.zeros((6, 12))
    one = changed(-sizes, still)
    assert math.isnan(one.contrast.error)
    assert one.contrast.p_value == pytest.approx(float(Fraction(1, 13) ** 6), rel=1e-6)
    # Two identities by exchange of 14 names: 1 of 91 pairs is as far.
    two = changed(-np.concatenate([sizes, sizes], axis=1), still)
    assert two.contrast.p_value == pytest.approx(1 / math.comb(14, 2))
    # Nothing changed at all.
    assert changed(np.zeros((6, 1)), still).contrast.p_value == 1.0


def test_heavy_tails_leave_the_spread_of_phrases_fewer_degrees_of_freedom():
    """Var(S^2) / S^4 = 2 / 2 + 3 / 3 with excess kurtosis 3 and three phrases: 1, not 2."""
    spread = neutral_spread(NEUTRAL, kurtosis=3)
    assert (spread.degrees, neutral_spread(NEUTRAL).degrees) == (pytest.approx(1), pytest.approx(2))
    assert spread.band(0.95) == pytest.approx(stats.t.isf(0.025, 1) * 2 * math.sqrt(4 / 3))
    plain, heavy = contrast(OWN, NEUTRAL), contrast(OWN, NEUTRAL, kurtosis=3)
    assert (heavy.difference, heavy.error) == (plain.difference, plain.error)
    assert heavy.degrees == pytest.approx(1)
    assert heavy.p_value == pytest.approx(2 * stats.t.sf(6 / math.sqrt(13), 1), abs=1e-9)


@pytest.mark.parametrize("members", [1, 4, 21])
@pytest.mark.parametrize("noise", [(0.014, 0.036, 0.03), (0.0, 0.3, 0.2), (0.05, 0.1, 0.0)])
def test_the_least_harm_that_is_told_is_told_nine_times_of_ten(noise, members):
    apart, residual, excess = noise
    sources, phrases, level = 25, 20, 0.05 / 21
    least = PhraseNoise(apart=apart, residual=residual, excess=excess).least_told(
        sources=sources, identities=members, phrases=phrases, level=level, power=0.9
    )
    told = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        effects = rng.normal(0, apart, members + phrases) + np.repeat(
            [least, 0], [members, phrases]
        )
        values = effects + rng.normal(0, residual, (sources, members + phrases))
        values[:, :members] += rng.normal(0, excess, (sources, 1))
        told.append(contrast(values[:, :members], values[:, members:]).p_value <= level)
    assert 0.82 <= np.mean(told) <= 0.97
    measured = phrase_noise([values[:, :members]], values[:, members:])
    assert measured.residual == pytest.approx(residual, rel=0.2)
