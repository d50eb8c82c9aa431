"""Degrees as columns and as points: signs, halves, levels, and answers that have none."""

import math

import numpy as np
import pytest

from fairgate.domain.degrees import Degrees
from fairgate.domain.executions import Execution
from fairgate.domain.units import Arm, Reading, Reason, Unit
from fairgate.metrics.columns import Pool, PoolAnswer
from fairgate.metrics.degrees import (
    degree_columns,
    expected_rank,
    in_probability,
    log_odds,
    points_of_probability,
)
from fairgate.metrics.metric import Table

SCALE = ("bad", "poor", "fair", "good", "best")


def degrees(*probabilities, scale=SCALE):
    pairs = zip(scale, probabilities, strict=False)
    return Degrees(tuple((label, math.log(one)) for label, one in pairs))


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (SCALE[:2], math.log(0.2 / 0.1)),
        (SCALE[:3], math.log(0.3 / 0.1)),
        (SCALE[:4], math.log((0.3 + 0.05) / (0.1 + 0.2))),
        (SCALE, math.log((0.05 + 0.15) / (0.1 + 0.2))),
    ],
)
def test_halves_of_the_order(scale, expected):
    found = degrees(0.1, 0.2, 0.3, 0.05, 0.15)
    assert log_odds(found, scale) == pytest.approx(expected)
    assert log_odds(found, scale[::-1]) == pytest.approx(-expected)
    rank = expected_rank(found, scale)
    assert expected_rank(found, scale[::-1]) == pytest.approx(1 - rank)


def test_of_two_labels_the_expected_rank_is_the_probability_of_the_better_one():
    found = degrees(0.1, 0.3, scale=("toxic", "non-toxic"))
    odds = log_odds(found, ("toxic", "non-toxic"))
    assert expected_rank(found, ("toxic", "non-toxic")) == pytest.approx(1 / (1 + math.exp(-odds)))


def answer(key, found, value="good", *, arm=Arm.TEST):
    unit = Unit(
        key=key, asks={}, dimensions={}, content="", suite="s", cluster="c", follows="", arm=arm
    )
    several = [Execution(response="x", degrees=each) for each in found]
    reading = Reading(value=value, reason=None if value else Reason.UNREADABLE)
    return PoolAnswer(key=key, unit=unit, reading=reading, executions=several, responses=["x"])


def test_columns_of_answers_with_and_without_degrees():
    sure, thin = degrees(0.1, 0.1, 0.1, 0.2, 0.3), degrees(0.01, 0.01, 0.01, 0.01, 0.01)
    members = [
        answer("sure", [sure]),
        answer("twice", [sure, sure]),
        answer("none", [None]),
        answer("once of two", [sure, None]),
        answer("not answered", []),
        answer("thin", [thin]),
        answer("thin and unreadable", [thin], value=None),
        answer("thin and beside the order", [thin], value="other"),
    ]
    pool = Pool(relation="r", source=answer("source", [sure]), members=members)
    [found] = degree_columns(SCALE, 0.1).compute([pool], lambda _: None)
    none, thin_ = Reason.NO_DEGREES, Reason.LOW_MASS
    odds = pytest.approx(math.log(0.5 / 0.2))
    assert found["log-odds"] == [odds, odds, none, none, none, thin_, thin_, thin_]
    rank = pytest.approx(expected_rank(sure, SCALE))
    # By its label: "good" is the fourth of five.
    others = [0.75, Reason.UNREADABLE, Reason.NO_RANK]
    assert found["expected-rank"] == [rank, rank, none, none, none, *others]
    mass = pytest.approx(0.8)
    assert found["mass"] == [mass, mass, none, none, none, *[pytest.approx(0.05)] * 3]


def table(odds, ranks=None):
    """Make the table of `odds` [sources, phrases], of which the last four phrases are neutral."""
    n, phrases = odds.shape
    terms = [f"t{p}" for p in range(phrases - 4)] + [f"n{p}" for p in range(4)]
    control = np.tile([False] * (phrases - 4) + [True] * 4, n)
    values = {"log-odds": odds.ravel(), "expected-rank": odds.ravel() if ranks is None else ranks}
    return Table(
        suite="s",
        keys=[f"s{s}#{t}" for s in range(n) for t in terms],
        clusters=np.repeat(np.arange(n), phrases),
        cluster_names=[f"s{s}" for s in range(n)],
        control=control,
        dimensions={
            "relation": ["r"] * n * phrases,
            "category": ["c"] * n * phrases,
            "term": terms * n,
        },
        values=values,
    )


def points(data, term=None):
    """The mean of all identities, or of one."""
    chosen = ~data.control if term is None else data.dimension("term").equal(term)
    values = points_of_probability(data, {})[chosen]
    return float(values[~np.isnan(values)].mean()) if not np.isnan(values).all() else math.nan


def test_points_are_the_difference_at_the_level_of_the_sources():
    rng = np.random.default_rng(3)
    for _ in range(50):
        n = int(rng.integers(2, 30))
        levels, shift = rng.normal(0, 3, n), float(rng.normal(0, 1))
        odds = np.repeat(levels[:, None], 6, axis=1) + rng.normal(0, 0.3, (n, 6))
        neutral = odds[:, 2:].mean(axis=1)
        odds[:, 0] = neutral + shift
        found = points(table(odds), "t0")
        sigmoid = 1 / (1 + np.exp(-neutral))
        expected = float(np.mean(1 / (1 + np.exp(-neutral - shift)) - sigmoid))
        assert found == pytest.approx(expected, abs=1e-9)
        assert -1 <= found <= 1
        other = odds[:, 1] - neutral
        beside = points(table(odds), "t1")
        assert np.sign(beside) == np.sign(other.mean())


def test_no_difference_is_no_points_and_small_ones_go_on_smoothly():
    odds = np.tile(np.linspace(-4, 4, 9)[:, None], (1, 6))
    assert points(table(odds)) == 0.0
    for small in (1e-9, 1e-7, 1e-5):
        odds[:, :2] = odds[:, 2:4] + small
        found = points(table(odds))
        assert found == pytest.approx(in_probability(small, odds[:, 2]), rel=1e-3)


def test_sources_without_a_neutral_phrase_count_nowhere():
    odds = np.random.default_rng(4).normal(0, 1, (8, 6))
    whole = points(table(odds[:7]))
    odds[7, 2:] = np.nan
    odds[7, 0] = 40.0
    assert points(table(odds)) == pytest.approx(whole)
    odds[:, 2:] = np.nan
    assert math.isnan(points(table(odds)))


def test_an_answer_with_too_little_mass_counts_by_its_label_among_the_others():
    rng = np.random.default_rng(5)
    for _ in range(50):
        n = int(rng.integers(2, 20))
        odds = rng.normal(0, 2, (n, 6))
        by_label = rng.random((n, 6)) < rng.choice([0.1, 0.5, 1.0])
        places = rng.choice([0.0, 0.25, 0.5, 1.0], (n, 6))
        chances = np.where(by_label, (np.sign(places - 0.5) + 1) / 2, 1 / (1 + np.exp(-odds)))
        ranks = np.where(by_label, places, 1 / (1 + np.exp(-odds)))
        data = table(np.where(by_label, np.nan, odds), ranks.ravel())
        values = points_of_probability(data, {}).reshape(n, 6)
        assert not np.isnan(values).any(), "no case is lost"
        expected = chances - chances[:, 2:].mean(axis=1, keepdims=True)
        of_labels = by_label | by_label[:, 2:].all(axis=1, keepdims=True)
        assert values[of_labels] == pytest.approx(expected[of_labels])
        assert (np.abs(values[of_labels]) <= 1).all()
        # Others count as they do where no answer falls back.
        others = table(np.where(by_label, np.nan, odds), np.full(n * 6, np.nan))
        alone = points_of_probability(others, {}).reshape(n, 6)
        assert values[~of_labels] == pytest.approx(alone[~of_labels])


def test_degrees_without_a_half_of_the_labels_count_nowhere():
    pool = Pool(relation="r", source=None, members=[answer("a", [degrees(0.1, 0.1, 0.1)])])
    [found] = degree_columns(SCALE, 0.1).compute([pool], lambda _: None)
    assert found["log-odds"] == found["expected-rank"] == [Reason.NO_RANK]
