"""Which phrases carry a difference: all, or the words that explain it clearly better."""

import numpy as np
import pytest

from fairgate.stats.phrases import carrying

SOURCES, PHRASES = 100, 4


def values_of(harms, *, seed=0, noise=0.2, sources=SOURCES, apart=0.0, phrases=PHRASES):
    """Each source is asked in one phrase, whose answers change at its own rate."""
    rng = np.random.default_rng(seed)
    own = rng.normal(0, apart, phrases) if apart else np.zeros(phrases)
    values = np.full((sources, phrases), np.nan)
    turn = rng.integers(0, phrases, sources)
    chances = np.clip(noise + np.asarray(harms) + own, 0, 1)[turn]
    values[np.arange(sources), turn] = (rng.random(sources) < chances) - noise
    return values


def carried(harms, **settings):
    values = values_of(harms, **settings)
    effect = float(np.nanmean(values))
    return carrying(values, apart=settings.get("apart", 0.0) ** 2, effect=effect)


@pytest.mark.parametrize("apart", [0.0, 0.03])
@pytest.mark.parametrize(
    ("harms", "expected"),
    [
        ((0.3, 0.3, 0.3, 0.3), (0, 1, 2, 3)),
        ((-0.2, -0.2, -0.2, -0.2), (0, 1, 2, 3)),
        ((0.7, 0, 0, 0), (0,)),
        ((0, 0, 0.7, 0), (2,)),
        ((0.7, 0, 0.7, 0), (0, 2)),
    ],
)
def test_what_carries_it_is_told_nine_times_of_ten(harms, expected, apart):
    told = [carried(harms, seed=seed, apart=apart) for seed in range(60)]
    assert told.count(expected) >= 54, told


@pytest.mark.parametrize("phrases", [2, 3, 8])
def test_all_are_told_whatever_their_number(phrases):
    told = [carried((0.4,) * phrases, seed=seed, phrases=phrases) for seed in range(60)]
    assert told.count(tuple(range(phrases))) >= 51  # of eight more sets are tried


def test_wording_like_any_other_is_no_word_of_its_own():
    """Phrases that lie as far apart as control prompts do are no finding about one of them."""
    told = [
        carried((0.2,) * PHRASES, seed=seed, apart=0.1, noise=0.3, sources=2000)
        for seed in range(60)
    ]
    assert told.count((0, 1, 2, 3)) >= 50


def test_it_depends_neither_on_the_order_of_sources_nor_on_that_of_phrases():
    values = values_of((0.7, 0, 0.7, 0))
    order, places = np.random.default_rng(1).permutation(SOURCES), [2, 3, 1, 0]
    found = carrying(values, apart=0.0, effect=0.35)
    assert carrying(values[order], apart=0.0, effect=0.35) == found
    moved = carrying(values[:, places], apart=0.0, effect=0.35)
    assert sorted(places[place] for place in moved) == [*found]


def test_what_others_explain_already_is_left_out():
    """Everybody differs by .5 and this identity by .25 more, which one phrase alone carries."""
    values = np.full((40, 2), np.nan)
    values[:20, 0], values[20:, 1] = 1.0, 0.5
    values += np.random.default_rng(2).normal(0, 0.05, values.shape)
    assert carrying(values, apart=0.0, effect=0.25) == (0,)
    assert carrying(values, apart=0.01, effect=0.75) == (0, 1)


def test_without_any_noise_equal_phrases_all_carry_it_and_one_alone_is_told():
    same = np.where(np.eye(4, dtype=bool)[np.arange(40) % 4], 1.0, np.nan)
    assert carrying(same, apart=0.0, effect=1.0) == (0, 1, 2, 3)
    one = np.where(np.isnan(same), np.nan, [[1.0, 0.0, 0.0, 0.0]])
    assert carrying(one, apart=0.0, effect=0.25) == (0,)


def test_a_single_phrase_carries_it():
    assert carrying(np.ones((5, 1)), apart=0.0, effect=1.0) == (0,)
