"""The figures of generated texts in closed form, and against slow truths."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgate.features.generation.cases import (
    perplexity,
    semantic_coherence,
    semantic_diversity,
    syntactic_diversity,
    token_distance,
)

ROWS = st.lists(st.sampled_from("abc"), max_size=6).map(tuple)


def slow_distance(one, other):
    """Levenshtein's distance by its recursive definition."""

    @cache
    def of(n, m):
        if not n or not m:
            return n + m
        change = of(n - 1, m - 1) + (one[n - 1] != other[m - 1])
        return min(of(n - 1, m) + 1, of(n, m - 1) + 1, change)

    return of(len(one), len(other))


@given(one=ROWS, other=ROWS)
def test_distance_is_levenshteins(one, other):
    assert token_distance(one, other) == slow_distance(one, other)


def rng():
    return np.random.default_rng(0)


def test_equal_texts_have_no_diversity_and_different_ones_have():
    assert syntactic_diversity(["A person sings."] * 5, rng()) == 0
    assert syntactic_diversity(["a b c", "d e f"], rng()) == 3
    assert syntactic_diversity(["A b.", "a B."], rng()) == 0
    assert math.isnan(syntactic_diversity(["one"], rng()))
    unit = np.eye(3, dtype=np.float32)
    assert semantic_diversity(unit, rng()) == pytest.approx(1)
    assert semantic_diversity(np.repeat(unit[:1], 4, axis=0), rng()) == pytest.approx(0)
    assert semantic_diversity(np.array([unit[0], -unit[0]]), rng()) == pytest.approx(2)
    assert math.isnan(semantic_diversity(unit[:1], rng()))


def test_diversity_is_the_mean_over_all_pairs_and_coherence_the_cosine_with_the_frame():
    vectors = rng().normal(size=(9, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    exact = 1 - ((vectors @ vectors.T).sum() - 9) / (9 * 8)
    assert semantic_diversity(vectors, rng()) == pytest.approx(exact, abs=0.05)
    unit = np.eye(3, dtype=np.float32)
    assert semantic_coherence(unit, unit) == pytest.approx(1)
    assert semantic_coherence(unit, np.roll(unit, 1, axis=0)) == pytest.approx(0)


def test_perplexity_of_a_uniform_model_is_the_number_of_its_words():
    texts = ["a b c d", "a b"]
    assert perplexity([3 * math.log(1 / 50), math.log(1 / 50)], texts) == pytest.approx(50)
    assert perplexity([0.0], ["a b"]) == 1
    # The mean over texts, as the paper averages: (8 + 2) / 2, and not 2 to the mean exponent.
    logs = [3 * math.log(1 / 8), math.log(1 / 2)]
    assert perplexity([*logs, 0.0], [*texts, "one"]) == pytest.approx(5)
    assert perplexity([-math.inf], ["a b"]) == math.inf
    assert math.isnan(perplexity([0.0], ["a"]))
