"""How strongly values go together: against hand-computed values and plain chance."""

import math
import random

import numpy as np
import pytest
from scipy import stats

from fairgate.stats.association import (
    alike_within_groups,
    auc,
    commonest,
    entropy,
    stability,
    within_groups,
)


def test_the_commonest_value_and_its_ties():
    assert commonest("abbcc") == ("b", 2, 5)
    assert commonest(["x"]) == ("x", 1, 1)
    assert commonest([]) == ("", 0, 0)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (["aa", "bb"], 1.0),  # the group decides all
        (["aaa", "aaa"], "constant"),
        (["ab", "ab"], -0.5),  # within: 0 of 2 pairs agree; of all 6 pairs 2 do
        (["aab", "abb"], -1 / 9),  # within 2 of 6, chance 6 of 15
        (["aab", "abb", "aaa", "bbb"], 7 / 18),  # within 8 of 12, chance 30 of 66
        (["aab"], None),
        (["a", "b"], None),  # no group has two answers
    ],
)
def test_kappa_is_the_agreement_beyond_chance(groups, expected):
    found = within_groups((str(n), value) for n, group in enumerate(groups) for value in group)
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_kappa_with_values_that_agree_without_being_equal():
    """With equality it is the same kappa; with more it needs values that are not all alike."""
    rng = random.Random(2)
    answers = [(str(n), rng.choice("abcd")) for n in range(20) for _ in range(5)]
    exact = within_groups(answers)
    assert alike_within_groups(answers, lambda a, b: False) == pytest.approx(exact)
    followed = [(str(n), "abcd"[n % 4 // 2 * 2 + k % 2]) for n in range(20) for k in range(2)]
    near = alike_within_groups(followed, lambda a, b: {a, b} in ({"a", "b"}, {"c", "d"}))
    assert near == 1.0
    assert within_groups(followed) < 0.05
    assert alike_within_groups(followed, lambda a, b: True) is None


def test_auc_is_the_share_of_won_pairs_with_ties_as_halves_and_needs_both_kinds():
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.integers(0, 6, 40).astype(float)
        positive = rng.random(40) < 0.4
        won = stats.mannwhitneyu(scores[positive], scores[~positive]).statistic
        expected = won / positive.sum() / (~positive).sum()
        assert auc(scores, positive) == pytest.approx(expected)
    for kinds in ([True, True], [False, False], []):
        assert math.isnan(auc(np.zeros(len(kinds)), np.array(kinds, dtype=bool)))


@pytest.mark.parametrize(
    ("labels", "bits"),
    [(["a"], 0.0), (["a"] * 5, 0.0), (["a", "b"], 1.0), ("abcd", 2.0), ("aaab", 0.8112781)],
)
def test_entropy_in_bits(labels, bits):
    assert entropy(labels) == pytest.approx(bits)


def test_stability_is_the_share_of_cases_with_one_verdict():
    assert stability(["aaa", "aab", "b", ""]) == pytest.approx(2 / 3)
    assert math.isnan(stability([[], []]))
