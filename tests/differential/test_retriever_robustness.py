"""RRS against a slow enumeration of all assignments, and the properties its definition promises."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgate.metrics.retriever_robustness import (
    BANDS,
    assignment_means,
    band_indices,
    mean_distances,
)


def slow_mean_distance(left, right, *, distance):
    """P1's equations as they are written, one float at a time."""
    size = len(left)
    costs = [[0.0] * size for _ in range(size)]
    for i, u in enumerate(left):
        for j, v in enumerate(right):
            u64, v64 = u.astype(np.float64), v.astype(np.float64)
            dot = float(u64 @ v64 / np.linalg.norm(u64) / np.linalg.norm(v64))
            costs[i][j] = 1 - dot if distance == "cosine" else max(0.0, 2 - 2 * dot) ** 0.5
    return min(
        sum(costs[i][order[i]] for i in range(size)) / size for order in permutations(range(size))
    )


def unit_vectors(count, seed, dimensions=8):
    vectors = np.random.default_rng(seed).normal(size=(count, dimensions))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_equals_the_enumeration_of_all_assignments(size, distance):
    vectors = unit_vectors(20, seed=size)
    rng = np.random.default_rng(size)
    lists = rng.integers(0, 20, size=(2, 30, size))
    fast = mean_distances(vectors, lists[0], lists[1], distance=distance)
    slow = [
        slow_mean_distance(vectors[a], vectors[b], distance=distance)
        for a, b in zip(lists[0], lists[1], strict=True)
    ]
    assert np.allclose(fast, slow, atol=1e-6)


def test_large_lists_use_the_same_optimum_as_small_ones():
    costs = np.random.default_rng(0).random((20, 7, 7))
    best = [
        min(sum(m[i, o[i]] for i in range(7)) for o in permutations(range(7))) / 7 for m in costs
    ]
    assert np.allclose(assignment_means(costs), best)


def test_a_document_is_at_distance_zero_from_itself():
    vectors = unit_vectors(5, seed=1, dimensions=384)
    same = np.asarray([[0, 1, 2, 3]])
    assert mean_distances(vectors, same, same[:, ::-1])[0] == 0.0


def test_greedy_takes_the_smallest_distance_first():
    costs = np.asarray([[[1.0, 2.0], [1.1, 9.0]]])
    assert assignment_means(costs, matching="greedy")[0] == pytest.approx(5.0)
    assert assignment_means(costs)[0] == pytest.approx(1.55)


@given(st.integers(1, 5), st.integers(0, 10_000))
def test_greedy_is_never_below_the_optimum_and_both_are_symmetric(size, seed):
    vectors = unit_vectors(12, seed)
    lists = np.random.default_rng(seed).integers(0, 12, size=(2, 8, size))
    optimum = mean_distances(vectors, lists[0], lists[1])
    greedy = mean_distances(vectors, lists[0], lists[1], matching="greedy")
    assert (greedy >= optimum - 1e-9).all()
    assert np.allclose(optimum, mean_distances(vectors, lists[1], lists[0]))
    assert ((optimum >= 0) & (optimum <= 2)).all()


@pytest.mark.whole
def test_values_do_not_depend_on_what_else_is_computed():
    vectors = unit_vectors(200, seed=3, dimensions=384)
    lists = np.random.default_rng(3).integers(0, 200, size=(2, 500, 4))
    together = mean_distances(vectors, lists[0], lists[1])
    alone = [mean_distances(vectors, lists[0][[i]], lists[1][[i]])[0] for i in range(500)]
    order = np.random.default_rng(4).permutation(200)
    place = np.argsort(order)
    shuffled = mean_distances(vectors[order], place[lists[0]], place[lists[1]])
    assert together.tolist() == alone
    assert together.tolist() == shuffled.tolist()


def test_bands_are_closed_above():
    scores = np.asarray([0.0, 1e-6, 0.63, 0.630001, 1.31, 1.310001, 3.0])
    names = [BANDS[index] for index in band_indices(scores, (0.63, 1.31))]
    assert names == ["perfectly-stable", "high", "high", "moderate", "moderate", "low", "low"]
