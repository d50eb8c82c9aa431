"""Records of what was found."""

import pytest

from fairgate.domain.outcomes import KeptKillScore


@pytest.mark.parametrize(
    ("caught", "mutants", "percent"),
    [(199, 200, 99), (29, 100, 29), (57, 100, 57), (2, 3, 66), (0, 7, 0), (7, 7, 100)],
)
def test_only_all_are_a_hundred_percent(caught, mutants, percent):
    rest = {"policy_hash": "", "strength": 0.3, "seeds": 5, "sources": 9}
    score = KeptKillScore(caught=caught, mutants=mutants, false_kills=0, controls=5, **rest)
    assert score.percent == percent
