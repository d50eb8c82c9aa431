"""Shapley values against the mean over all orders, written out; and what both ends miss."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgate.features.blame.factors import design, residual_weights, shapley_weights

NUMBERS = st.floats(-10, 10).map(lambda x: round(x, 3))


def valued(weights, values):
    return sum(weight * values[new] for new, weight in weights.items())


def by_orders(factors, values):
    found = dict.fromkeys(factors, 0.0)
    orders = list(permutations(factors))
    for order in orders:
        for place, factor in enumerate(order):
            before, after = (frozenset(order[:n]) for n in (place, place + 1))
            found[factor] += values[after] - values[before]
    return {factor: total / len(orders) for factor, total in found.items()}


@given(size=st.integers(1, 3), data=st.data())
def test_up_to_three_factors_are_crossed_whole(size, data):
    factors = list("abc"[:size])
    runs = design(factors)
    assert len(runs) == len(set(runs)) == 2**size
    assert (runs[0], runs[-1]) == (frozenset(), frozenset(factors))
    values = {new: data.draw(NUMBERS) for new in runs}
    expected = by_orders(factors, values)
    found = {f: valued(w, values) for f, w in shapley_weights(factors).items()}
    assert found == pytest.approx(expected)
    assert sum(found.values()) == pytest.approx(values[runs[-1]] - values[runs[0]])
    assert residual_weights(factors) == {}


@given(size=st.integers(4, 6), three=st.booleans(), data=st.data())
def test_beyond_both_ends_are_exact_for_pairs_and_state_what_they_miss(size, three, data):
    factors = list("abcdef"[:size])
    runs = design(factors)
    assert len(runs) == len(set(runs)) == 2 * size + 2
    alone = {f: data.draw(NUMBERS) for f in factors}
    pairs = {frozenset(p): data.draw(NUMBERS) for p in permutations(factors, 2) if p[0] < p[1]}
    third = data.draw(st.floats(1, 5)) if three else 0.0

    def value(new):
        total = sum(alone[f] for f in new) + sum(v for pair, v in pairs.items() if pair <= new)
        return total + third * (set("abc") <= new)

    values = {new: value(new) for new in runs}
    found = {f: valued(w, values) for f, w in shapley_weights(factors).items()}
    assert sum(found.values()) == pytest.approx(values[runs[-1]] - values[runs[0]])
    # Three factors that only move together: each of three last moves counts it, the first ones not.
    assert valued(residual_weights(factors), values) == pytest.approx(third * (1 - 3 / 2))
    if not three:
        expected = {f: alone[f] + sum(v for p, v in pairs.items() if f in p) / 2 for f in factors}
        assert found == pytest.approx(expected)
