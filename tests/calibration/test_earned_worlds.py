"""Whoever earns to block does not trouble fair changes, and stops a harm; 200 repositories.

The table: `python -m calibration.earned_blocking`.
"""

from calibration.earned_blocking import WORLDS, fair_shares, harmed_share

MANY = 200
(WORLD,) = (world for world in WORLDS if (world.sources, world.changed) == (100, 0.3))


def test_fair_pull_requests_are_hardly_ever_blocked():
    red, blocked = fair_shares(WORLD, MANY // 2)
    assert 0 < red < 0.02
    assert blocked <= 0.01


def test_a_harm_is_blocked_within_ten_pull_requests():
    assert harmed_share(WORLD, MANY) >= 0.9
