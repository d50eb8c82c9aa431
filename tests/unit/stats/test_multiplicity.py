import math

import pytest

from fairgate.domain.errors import DataError
from fairgate.stats.permutation import holm, uncorrected


def test_holm_by_hand():
    found = holm([0.01, 0.04, 0.03, 0.005], alpha=0.05)
    assert [one.adjusted_p for one in found] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [one.rejected for one in found] == [True, False, False, True]
    # 0.005 at a quarter, 0.01 at a third; 0.03 at a half stops the steps, also for 0.04.
    assert [one.level for one in found] == pytest.approx([0.05 / 3, 0.025, 0.025, 0.0125])


def test_holm_with_ties_treats_equal_p_equally():
    found = holm([0.02, 0.02, 0.02], alpha=0.05)
    assert [one.rejected for one in found] == [False] * 3
    assert {one.level for one in found} == {0.05 / 3}


def test_weighted_holm_by_hand():
    # One line of the policy, and two rules that share another line's part.
    found = holm([0.02, 0.012, 0.03], alpha=0.05, weights=[1, 0.5, 0.5])
    # 0.02 at 1/2 of the level, then 0.012 at 1/2, then 0.03 alone.
    assert [one.rejected for one in found] == [True, True, True]
    assert [one.level for one in found] == pytest.approx([0.025, 0.025, 0.05])
    assert [one.adjusted_p for one in found] == pytest.approx([0.04, 0.04, 0.04])


def test_a_line_of_many_rules_costs_the_others_no_more_than_one_rule():
    alone = holm([0.012, 0.9], alpha=0.05)
    beside = holm([0.012, *[0.9] * 21], alpha=0.05, weights=[1, *[1 / 21] * 21])
    equal = holm([0.012, *[0.9] * 21], alpha=0.05)
    assert alone[0].rejected
    assert beside[0].rejected
    assert beside[0].level == pytest.approx(0.025)
    assert not equal[0].rejected


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, math.nan]])
def test_weights_are_above_0_and_as_many_as_the_tests(weights):
    with pytest.raises(DataError, match="as many weights above 0"):
        holm([0.1, 0.2], alpha=0.05, weights=weights)


def test_uncorrected_holds_every_test_against_alpha():
    found = uncorrected([0.04, 0.06], alpha=0.05)
    assert [(one.level, one.rejected) for one in found] == [(0.05, True), (0.05, False)]


@pytest.mark.parametrize("correct", [holm, uncorrected])
def test_an_empty_family_is_empty(correct):
    assert correct([], alpha=0.05) == []


@pytest.mark.parametrize("correct", [holm, uncorrected])
@pytest.mark.parametrize("wrong", [math.nan, -0.1, 1.1])
def test_what_is_no_probability_is_refused(correct, wrong):
    with pytest.raises(DataError, match="p value number 2"):
        correct([0.5, wrong], alpha=0.05)
