from __future__ import annotations

import math

import pytest

from fairgate.stats.interval import Interval, NoInterval, wilson


def test_wilson_solves_the_score_equation():
    found = wilson(7, 40, confidence=0.9)
    assert isinstance(found, Interval)
    for limit in (found.low, found.high):
        assert abs(7 / 40 - limit) / math.sqrt(limit * (1 - limit) / 40) == pytest.approx(
            1.6448536, rel=1e-6
        )


def test_wilson_of_none_and_all_touches_the_end_exactly():
    none, every = wilson(0, 20, confidence=0.95), wilson(20, 20, confidence=0.95)
    assert isinstance(none, Interval)
    assert isinstance(every, Interval)
    assert none.low == 0.0
    assert every.high == 1.0
    assert none.high == pytest.approx(0.1611, abs=1e-4)
    assert every.low == pytest.approx(1 - none.high)


def test_wilson_of_nothing_is_no_interval():
    assert wilson(0, 0, confidence=0.95) == NoInterval(reason="nothing decided")
