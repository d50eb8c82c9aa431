"""Which combinations of changed factors are run, and the Shapley value of each factor over them.

L. S. Shapley, "A value for n-person games", Contributions to the Theory of Games II (1953) 307-317:
the mean, over all orders in which factors could have changed, of what the value moved when this one
did. The values add up to the whole change.

Up to three factors, all 2^k combinations are run. Beyond, each factor is changed alone and taken
back alone (2k + 2 combinations), and its value is the mean of these two moves: equal to the Shapley
value where no three factors interact (with pairs, the first move lacks what the last one counts
twice). What the values miss of the whole change is shared equally, and `residual` states it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, combinations
from math import factorial
from typing import TypeVar

MOST_CROSSED = 3
"""Up to so many factors, all combinations are run."""
Factor = TypeVar("Factor")
Combination = frozenset[Factor]
"""The factors that have their new level; the others have the old one."""
Weights = dict[frozenset[Factor], float]
"""What each combination's value is multiplied by; the sum is linear in the values."""


def design(factors: Sequence[Factor]) -> list[Combination[Factor]]:
    """Return the combinations that are run: none changed first, all last. `factors` are unique."""
    k = len(factors)
    sizes = range(k + 1) if k <= MOST_CROSSED else (0, 1, k - 1, k)
    return [frozenset(chosen) for size in sizes for chosen in combinations(factors, size)]


def shapley_weights(factors: Sequence[Factor]) -> dict[Factor, Weights[Factor]]:
    """Return for each factor the weights of its value; over all factors they add up to the change.

    Over all combinations where they are run, else over those of `design`.
    """
    if not factors:
        return {}
    if len(factors) > MOST_CROSSED:
        return _from_both_ends(factors)
    k = len(factors)
    found: dict[Factor, Weights[Factor]] = {}
    for factor in factors:
        others = [other for other in factors if other != factor]
        weights: Weights[Factor] = {}
        for before in _subsets(others):
            share = factorial(len(before)) * factorial(k - len(before) - 1) / factorial(k)
            weights[frozenset({*before, factor})] = share
            weights[frozenset(before)] = -share
        found[factor] = weights
    return found


def residual_weights(factors: Sequence[Factor]) -> Weights[Factor]:
    """Return the weights of what moves from both ends miss; empty where all combinations are run.

    It is 0 where no three factors interact.
    """
    if len(factors) <= MOST_CROSSED:
        return {}
    whole: Weights[Factor] = {frozenset(factors): 1.0, frozenset(): -1.0}
    return _sum([whole, *(_scaled(_two_moves(factor, factors), -1.0) for factor in factors)])


def _from_both_ends(factors: Sequence[Factor]) -> dict[Factor, Weights[Factor]]:
    shared = _scaled(residual_weights(factors), 1 / len(factors))
    return {factor: _sum([_two_moves(factor, factors), shared]) for factor in factors}


def _two_moves(factor: Factor, factors: Sequence[Factor]) -> Weights[Factor]:
    everything = frozenset(factors)
    return {
        frozenset({factor}): 0.5,
        frozenset(): -0.5,
        everything: 0.5,
        everything - {factor}: -0.5,
    }


def _scaled(weights: Mapping[frozenset[Factor], float], by: float) -> Weights[Factor]:
    return {combination: weight * by for combination, weight in weights.items()}


def _sum(parts: Iterable[Mapping[frozenset[Factor], float]]) -> Weights[Factor]:
    total: Weights[Factor] = {}
    for combination, weight in chain.from_iterable(part.items() for part in parts):
        total[combination] = total.get(combination, 0.0) + weight
    return total


def _subsets(items: Sequence[Factor]) -> Iterable[tuple[Factor, ...]]:
    return chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))
