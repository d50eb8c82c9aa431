"""Small accepted changes end at the budget; unchanged ones do not, however many there are."""

import pytest
from calibration.budget import BUDGET, MARGIN, NOISES, rising, unchanged


def test_twenty_changes_of_one_point_turn_red_at_the_budget():
    results = list(rising(0))
    failed = [set(one.failed) for one in results]
    assert not any("regression" in one for one in failed)
    assert all(one.change is not None and one.change.change <= MARGIN for one in results)
    since = [one.since_anchor.change for one in results if one.since_anchor is not None]
    assert since == pytest.approx([0.01 * n for n in range(1, 21)])
    assert [("budget" in one) for one in failed] == [n * 0.01 > BUDGET for n in range(1, 21)]


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_only_runs_beyond_a_limit_can_fail(noise):
    """The simulation asks the engine about those runs alone."""
    assert unchanged(noise, 7, 6, whole=True) == unchanged(noise, 7, 6)


def test_unchanged_histories_stay_green():
    assert all(unchanged(NOISES[0], seed).is_green for seed in range(20))
