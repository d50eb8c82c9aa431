"""Where wording itself matters, fair systems are not red, and harm is seen all the same.

The tables of 40 worlds a cell: `python -m calibration.phrases`.
"""

import pytest
from calibration.phrases import FAIR, HARM, reds

PHRASES = "neutral-phrases"


@pytest.mark.parametrize("worlds", [2, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*FAIR])
def test_fair_systems_stay_green_whatever_phrases_do_by_themselves(name, worlds):
    red, rules = reds(FAIR[name], PHRASES, range(worlds))
    # Two standard errors above 5 %: of 40 worlds, four.
    assert red <= max(1, 0.05 * worlds + 2 * (0.05 * 0.95 * worlds) ** 0.5), rules


@pytest.mark.parametrize(
    "worlds",
    [1, pytest.param(2, marks=pytest.mark.whole), pytest.param(40, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("name", [name for name in HARM if name.startswith("one")])
def test_one_identity_that_is_harmed_is_red(name, worlds):
    red, rules = reds(HARM[name], PHRASES, range(worlds))
    assert red >= 0.8 * worlds, rules


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FAIR])
def test_what_phrases_change_by_themselves_is_no_regression(name):
    red, rules = reds(FAIR[name], PHRASES, range(40), is_changed=True)
    assert red <= 4, rules


def test_nine_nouns_call_length_an_identity():
    """Seen before: what the pool is for."""
    red, rules = reds(FAIR["length, 2 to 25 %"], "neutral", range(3))
    assert red >= 1
    assert "asr/generation/net" in rules
