"""Fair systems are green and nobody is named; harms are red, and the right node is named first.

A part of the table of `calibration.worlds`, whose figures stand in the docs.
"""

import pytest
from calibration.worlds import LEVELS, WORLDS, row

WHOLE = pytest.mark.whole
FEW, MANY = 3, 12
SEEDS = pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=WHOLE)])
ALWAYS_SEEN = ("one +30", "category +10")


@pytest.mark.walk(8)
@SEEDS
@pytest.mark.parametrize("against", LEVELS)
@pytest.mark.parametrize("name", [name for name, world in WORLDS.items() if world.level is None])
def test_a_fair_system_is_green(name, against, seeds):
    red, _, named = row(name, 25, range(seeds), against)
    assert red <= 1 / seeds
    assert named <= 1 / seeds


@pytest.mark.walk(2)
@SEEDS
@pytest.mark.parametrize("against", LEVELS)
@pytest.mark.parametrize("name", ALWAYS_SEEN)
def test_a_harm_is_red_and_the_right_node_is_named(name, against, seeds):
    red, is_right, _ = row(name, 100, range(seeds), against)
    assert red >= (1 if seeds == FEW else 0.9)
    assert is_right >= (2 / 3 if seeds == FEW else 0.9)
