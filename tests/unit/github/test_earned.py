"""What a history of judged pushes earns, written a letter a push: g green, r red."""

import datetime as dt

import pytest

from fairgate.github.proof import DAYS, JudgedPush, earned

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


def after(history, since=HOUR, step=HOUR):
    pushes = [JudgedPush(START + step * n, letter == "r") for n, letter in enumerate(history)]
    return earned(pushes, (pushes[-1].at if pushes else START) + since)


@pytest.mark.parametrize(("history", "has_earned", "count"), [
    ("", False, 0),
    ("g" * 9, False, 9),
    ("g" * 10, True, 10),
    ("r" * 10, True, 10),  # a red that stands is no reason to wait
    ("ggggrrrrrr", True, 10),
    ("rgrgrgrgrg", True, 10),  # nor is one that comes and goes
    ("gggggrgg", False, 2),  # one that ended is
    ("gggggrgggg", False, 4),
    ("rggrggrggrggrgg", False, 2),
    ("ggggggggrg", True, 10),
    ("gggggrggggggggg", False, 9),
    ("gggggrgggggggggg", True, 10),
    ("g" * 10 + "rgrg", True, 10),  # what is earned stays
    ("r" * 10 + "grg", True, 10),
])  # fmt: skip
def test_ten_pushes_without_a_red_that_went_green_again(history, has_earned, count):
    assert after(history) == (has_earned, count)


@pytest.mark.parametrize(("history", "days", "has_earned"), [
    ("", DAYS, False), ("g", DAYS - 1, False), ("g", DAYS, True), ("r", DAYS, True),
    ("rg", DAYS - 1, False), ("rg", DAYS, True),
])  # fmt: skip
def test_or_four_weeks(history, days, has_earned):
    assert after(history, dt.timedelta(days=days))[0] == has_earned


def test_weeks_that_were_earned_stay():
    assert after("grg", step=dt.timedelta(days=DAYS))[0]
    assert not after("rggrgg", step=dt.timedelta(days=DAYS // 4 - 1))[0]
