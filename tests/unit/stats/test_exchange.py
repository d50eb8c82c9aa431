"""The permutation within sources, against all arrangements and against draws."""

import tracemalloc
from itertools import product

import numpy as np
import pytest

from fairgate.stats import recurrence
from fairgate.stats.exchange import exchange_p, widened
from fairgate.stats.recurrence import alike, core, recurrence_p


def brute_force(own: list[float], others: list[list[float]]) -> float:
    pools = [[value, *rest] for value, rest in zip(own, others, strict=True)]
    sums = [sum(each) for each in product(*pools)]
    return sum(total >= sum(own) - 1e-9 for total in sums) / len(sums)


def test_p_values_are_those_of_all_arrangements():
    rng = np.random.default_rng(0)
    wrong = []
    for trial in range(60):
        step = [1.0, 0.5, 1 / 3][trial % 3]
        sizes = rng.integers(1, 5, size=4)
        others = [(rng.integers(0, 3, size=n) * step).tolist() for n in sizes]
        own = (rng.integers(0, 3, size=4) * step).tolist()
        p, least = exchange_p(np.array(own), [np.array(each) for each in others])
        if abs(p - brute_force(own, others)) > 1e-9 or least > p:
            wrong.append((own, others, p))
    assert not wrong


def test_values_without_a_common_fraction_are_drawn():
    own, others = np.array([0.7123, 0.31]), [np.array([0.1, 0.2271]), np.array([0.3, 0.05])]
    p, _ = exchange_p(own, others)
    assert p == pytest.approx(brute_force(own.tolist(), [o.tolist() for o in others]), abs=0.02)
    assert exchange_p(own[::-1], others[::-1])[0] == pytest.approx(p, abs=0.02)


def test_fair_worlds_reject_as_often_as_they_may():
    rng = np.random.default_rng(1)
    rejected = 0
    for _ in range(400):
        values = rng.random((24, 13)) < rng.random((24, 1)) * 0.4
        p, _ = exchange_p(values[:, 0].astype(float), list(values[:, 1:].astype(float)))
        rejected += p <= 0.05
    assert rejected <= 400 * 0.05 + 3 * (400 * 0.05 * 0.95) ** 0.5


def test_nothing_and_no_variation_give_one():
    assert exchange_p(np.zeros(0), []) == (1.0, 1.0)
    assert exchange_p(np.ones(3), [np.ones(4)] * 3) == (1.0, 1.0)


def test_a_wider_spread_makes_p_larger_and_never_smaller():
    assert widened(0.001, 1.0) == 0.001
    assert 0.001 < widened(0.001, 1.2) < widened(0.001, 2.0) < 0.5
    assert widened(0.7, 3.0) == 0.7
    assert 0 < widened(5e-324, 1.5) < 1e-9


def unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    found = rng.normal(size=shape).astype(np.float32)
    return found / np.linalg.norm(found, axis=-1, keepdims=True)


def test_what_recurs_across_sources_is_seen_and_topics_are_not():
    rng = np.random.default_rng(2)
    topics = unit(rng, 30, 1, 64)
    neutral = list(unit(rng, 30, 12, 64) * 0.5 + topics * 0.5)
    planted = unit(rng, 64)
    own = unit(rng, 30, 64) * 0.5 + topics[:, 0] * 0.5
    phrases = [[phrase] * 30 for phrase in range(12)]
    assert recurrence_p(neutral, [own], phrases)[0] > 0.05
    own[:8] = planted + unit(rng, 8, 64) * 0.3
    assert recurrence_p(neutral, [own], phrases)[0] < 0.001
    row, alike = core(own)
    assert row < 8
    assert set(range(8)) <= set(alike)


def test_a_neutral_phrase_that_recurs_as_much_takes_the_evidence():
    rng = np.random.default_rng(3)
    neutral, planted = unit(rng, 24, 12, 32), unit(rng, 32)
    own = unit(rng, 24, 32)
    own[:6] = planted
    neutral[:8, 3] = planted
    phrases = [[phrase] * 24 for phrase in range(12)]
    assert recurrence_p(list(neutral), [own], phrases)[0] >= 2 / 13


def test_nothing_alike_has_no_core():
    assert core(np.eye(4, dtype=np.float32)) == (-1, [])


def test_draws_that_identities_share_are_those_of_each_alone():
    """Every pair of every draw, summed one by one, gives the same p values."""
    rng = np.random.default_rng(4)
    neutral = [unit(rng, 6 - source % 2, 8) for source in range(12)]
    owns = [unit(rng, 12, 8) for _ in range(4)]
    planted = unit(rng, 8)
    for count, own in enumerate(owns):
        own[: 2 * count] = planted
    wrong = []
    for own, p in zip(owns, recurrence_p(neutral, owns), strict=True):
        members = [np.vstack([of, mine]) for of, mine in zip(neutral, own, strict=True)]
        every = np.concatenate(members)
        starts = np.cumsum([0, *map(len, members)])[:-1]
        resemblance, draws = alike(every, every), np.random.default_rng(0)
        numbers = np.triu_indices(12, 1)

        def total(chosen, resemblance=resemblance, numbers=numbers):
            return int(resemblance[chosen[numbers[0]], chosen[numbers[1]]].sum())

        counts = np.array([len(of) for of in members])
        observed = total(starts + counts - 1)
        reached = drawn = 0
        while drawn < 20_000 and reached < 20:
            for chosen in draws.integers(0, counts, size=(500, 12)):
                drawn += 1
                reached += total(starts + chosen) >= observed
                if reached == 20:
                    break
        expected = reached / drawn if reached == 20 else (1 + reached) / (1 + drawn)
        if abs(p - expected) > 1e-9:
            wrong.append((p, expected))
    assert not wrong


def test_what_recurs_in_one_of_an_answers_repeats_is_seen_whichever_it_is():
    rng = np.random.default_rng(5)
    sources, phrases, repeats = 30, 12, 3
    answers, planted = unit(rng, sources, phrases + 1, repeats, 64), unit(rng, 64)
    rows = answers.reshape(sources, phrases + 1, -1)
    neutral, names = list(rows[:, 1:]), [[phrase] * sources for phrase in range(phrases)]
    (fair,) = recurrence_p(neutral, [rows[:, 0]], names, repeats=repeats)
    for source in range(12):
        answers[source, 0, source % repeats] = planted
    (harmed,) = recurrence_p(neutral, [rows[:, 0]], names, repeats=repeats)
    assert fair > 0.05
    assert harmed < 0.001
    assert set(core(rows[:, 0], repeats)[1]) >= set(range(12))


def test_many_sources_take_no_more_memory_than_one_block(monkeypatch):
    """What recurs in a ninth of 180 sources is seen block by block; what recurs nowhere is not."""
    monkeypatch.setattr(recurrence, "MOST_ROWS", 13 * 30)
    sources, phrases = 180, 12
    rng = np.random.default_rng(0)
    neutral, planted = list(unit(rng, sources, phrases, 16)), unit(rng, 16)
    fair, harmed = unit(rng, sources, 16), unit(rng, sources, 16)
    harmed[::9] = planted
    tracemalloc.start()
    try:
        unharmed, seen = recurrence_p(neutral, [fair, harmed])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert unharmed > 0.05
    assert seen < 0.001
    every = 4 * (sources * phrases) ** 2
    assert peak < every / 4, f"{peak / every:.2f} of the matrix of all sources"


@pytest.mark.parametrize(
    ("worlds", "most"), [(10, 1), pytest.param(40, 2, marks=pytest.mark.whole)]
)
def test_an_identity_with_the_strongest_habit_of_all_phrases_is_no_finding(worlds, most):
    """Every phrase has a habit of its own; somebody's is the strongest."""
    wrong = []
    for seed in range(worlds):
        rng = np.random.default_rng([7, seed])
        answers = unit(rng, 24, 21, 32)
        for phrase, often in enumerate(sorted(rng.beta(2, 6, 21), reverse=True)):
            answers[rng.random(24) < often, phrase] = unit(rng, 32)
        phrases = [[phrase] * 24 for phrase in range(20)]
        (p,) = recurrence_p(list(answers[:, 1:]), [answers[:, 0]], phrases)
        if p < 0.05 / 21 / 11:  # identities and lines of gates
            wrong.append((seed, p))
    assert len(wrong) <= most, wrong
