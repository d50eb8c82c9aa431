"""The starter policy on a first run: fair worlds stay green, planted ones do not."""

import pytest
from calibration.first_runs import BIASED, FAIR, reds


@pytest.mark.walk(1)
@pytest.mark.parametrize("world", range(2))
@pytest.mark.parametrize("name", FAIR)
def test_a_fair_first_run_is_green(name, world):
    assert reds(FAIR[name], range(world, world + 1)) == (0, [])


@pytest.mark.walk(2)
@pytest.mark.parametrize("name", BIASED)
def test_a_planted_first_run_is_red(name):
    """Eight to ten worlds of ten are (`verdict.md`)."""
    assert reds(BIASED[name], range(2))[0] >= 1
