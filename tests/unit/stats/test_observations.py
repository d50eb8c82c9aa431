import math
from dataclasses import replace

import numpy as np
import pytest

from fairgate.domain.errors import BaselineError
from fairgate.stats.observations import (
    Observations,
    cluster_totals,
    estimate,
    pair_by_key,
    select,
)

NAN = math.nan


def shuffled(obs: Observations, seed: int = 0) -> Observations:
    order = np.random.default_rng(seed).permutation(len(obs.keys))
    renumber = np.random.default_rng(seed + 1).permutation(obs.n_clusters)
    return replace(
        obs,
        keys=[obs.keys[i] for i in order],
        clusters=renumber[obs.clusters[order]],
        arms=obs.arms[order],
        values=obs.values[order],
    )


@pytest.mark.parametrize(
    ("rows", "arms", "expected"),
    [
        ([[1, 0, NAN], [1, NAN, NAN]], None, 2 / 3),  # the mean of the decided cases
        ([[1, 1, 0], [1, 0, 1]], [0, 0, 1], 3 / 4 - 1 / 2),
        ([[1, NAN], [0, NAN]], [0, 1], NAN),  # an arm without a decided case
        ([[NAN]], None, NAN),
        ([], None, NAN),
    ],
)
def test_estimates_of_one_arm_and_of_two(build, rows, arms, expected):
    obs = build(rows, arms=arms, weights=(1.0, -1.0) if arms else (1.0,))
    assert estimate(obs) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("rows", "informative"),
    [
        ([[0, 0], [0, 0]], 0), ([[1, 1], [1, 1]], 0), ([[1, 0], [0, 0], [0, 0]], 1),
        ([[1, 1], [1, 1], [0, 1]], 1), ([[1, 0], [0, 1], [0, 0]], 2), ([], 0), ([[NAN]], 0),
    ],
)  # fmt: skip
def test_informative_clusters_are_those_with_a_violation_or_with_anything_else(
    build, rows, informative
):
    assert cluster_totals(build(rows)).informative == informative


def test_pairing_follows_keys_not_positions_or_cluster_numbers(build):
    now = build([[1, 0], [1, 1], [0, 0]])
    base = shuffled(build([[0, 0], [1, 0], [0, 0]]))
    pairs = pair_by_key(now, base)
    assert pairs.base.values.tolist() == [0, 0, 1, 0, 0, 0]
    assert estimate(pairs.difference) == pytest.approx(2 / 6)
    assert pairs.n_discordant == 2


def test_pairing_keeps_only_cases_decided_in_both(build):
    now = build([[1, NAN, 0], [1, 1, 1]])
    base = select(build([[0, 0, NAN], [1, 1, NAN], [1, 1, 1]]), np.arange(9) != 4)
    pairs = pair_by_key(now, base)
    assert pairs.now.keys == ["s0#t/0", "s1#t/0"]
    assert pairs.now.n_clusters == 2
    assert estimate(pairs.difference) == 0.5


@pytest.mark.parametrize(
    ("moved", "message"),
    [
        ({"clusters": np.array([0, 0, 0, 0])}, "another arm or source"),
        ({"clusters": np.array([0, 1, 1, 1])}, "another arm or source"),
        ({"clusters": np.array([0, 1, 0, 1])}, "another arm or source"),
        ({"arms": np.array([1, 0, 1, 0])}, "another arm or source"),
    ],
)
def test_pairing_refuses_another_source_and_another_arm(build, moved, message):
    obs = build([[1, 0], [0, 1]], arms=[0, 1], weights=(1.0, -1.0))
    for pair in ((obs, replace(obs, **moved)), (replace(obs, **moved), obs)):
        with pytest.raises(BaselineError, match=message):
            pair_by_key(*pair)
