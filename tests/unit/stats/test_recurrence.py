"""The answers that say the same strange thing, and the one among them that the others resemble."""

import numpy as np
import pytest

from fairgate.stats.recurrence import core


def unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    found = rng.normal(size=shape).astype(np.float32)
    return found / np.linalg.norm(found, axis=-1, keepdims=True)


def test_what_recurs_across_sources_is_the_core_and_topics_are_not():
    rng = np.random.default_rng(2)
    planted, own = unit(rng, 64), unit(rng, 30, 64) * 0.5
    assert core(own)[1] == []
    own[:8] = planted + unit(rng, 8, 64) * 0.3
    row, alike = core(own)
    assert row in range(8)
    assert alike == [*range(8)]


@pytest.mark.parametrize("repeats", [1, 3])
def test_the_core_is_found_in_whichever_repeat_it_is(repeats):
    rng = np.random.default_rng(5)
    answers, planted = unit(rng, 30, repeats, 64), unit(rng, 64)
    for source in range(12):
        answers[source, source % repeats] = planted
    assert {*core(answers.reshape(30, -1), repeats)[1]} >= {*range(12)}


def test_nothing_alike_has_no_core():
    assert core(np.eye(4, dtype=np.float32)) == (-1, [])


def test_the_core_is_the_same_in_whatever_parts_rows_are_compared(monkeypatch):
    rng = np.random.default_rng(7)
    answers = unit(rng, 40, 64) * 0.5
    answers[5:30] = unit(rng, 64) + unit(rng, 25, 64) * 0.6
    whole = core(answers)
    assert len(whole[1]) > 10
    for rows in (1, 7, 40):
        monkeypatch.setattr("fairgate.stats.recurrence._ROWS_AT_ONCE", rows)
        assert core(answers) == whole
