"""The starter policy on a first run: fair worlds stay green, planted ones do not."""

from __future__ import annotations

import pytest
from calibration.first_runs import BIASED, FAIR, reds


@pytest.mark.parametrize("name", FAIR)
def test_a_fair_first_run_is_green(name):
    assert reds(FAIR[name], range(2)) == (0, [])


@pytest.mark.parametrize("name", BIASED)
def test_a_planted_first_run_is_red(name):
    assert reds(BIASED[name], range(2))[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", FAIR)
def test_ten_fair_first_runs_are_green(name):
    assert reds(FAIR[name], range(10)) == (0, [])


@pytest.mark.slow
@pytest.mark.parametrize("name", BIASED)
def test_nine_of_ten_planted_first_runs_are_red(name):
    assert reds(BIASED[name], range(10))[0] >= 9
