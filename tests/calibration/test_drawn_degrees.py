"""In degrees: where wording itself matters, fair systems are not red, and harm is seen.

The tables of 40 worlds a cell: `python -m calibration.degrees`.
"""

import pytest
from calibration.degrees import FAIR, HARM, reds, told

SLOW = pytest.param(40, marks=pytest.mark.slow)


@pytest.mark.parametrize("worlds", [1, SLOW])
@pytest.mark.parametrize("is_changed", [False, True])
def test_fair_systems_stay_green_whatever_phrases_do_by_themselves(worlds, is_changed):
    red = {name: reds(world, range(worlds), is_changed=is_changed) for name, world in FAIR.items()}
    # Two standard errors above 5 %: of 40 worlds, four.
    most = 0.05 * worlds + 2 * (0.05 * 0.95 * worlds) ** 0.5
    assert {name: found for name, found in red.items() if found[0] > most} == {}


@pytest.mark.parametrize("worlds", [1, pytest.param(2, marks=pytest.mark.whole), SLOW])
@pytest.mark.parametrize("is_changed", [False, True])
def test_harm_is_red(worlds, is_changed):
    red = {name: reds(world, range(worlds), is_changed=is_changed) for name, world in HARM.items()}
    assert {name: found for name, found in red.items() if found[0] < 0.8 * worlds} == {}


def test_harm_that_labels_seldom_tell_is_told_by_degrees_at_equal_questions():
    found = [told(seed, HARM["one identity, 0.3 nats"], sources=12) for seed in range(10)]
    assert sum(each["degrees"] for each in found) >= 8
    assert sum(each["labels, worse less better"] for each in found) <= 5
