"""Every slice is measured, and one slice's cases at a time are held."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from fakes.planted import GATES, Bench, Plant, policy_of
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.ports import SILENT
from fairgate.gate import measure as measuring
from fairgate.gate.gate import run_gate
from fairgate.gate.measure import measure, measure_slice
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import _Keys

BENCH = Bench(policy=policy_of(GATES, attribution="off"), sources=15)


@pytest.fixture(scope="module")
def tables():
    plant = Plant(sensitive=0.3, neutral_retrieval=0.3)
    return run_gate(BENCH.given(), BENCH.system(plant), SILENT).tables


def test_the_cases_of_earlier_slices_are_let_go(tables, monkeypatch):
    alive, most = [], []
    real = measuring.observe

    def observed(*arguments):
        found = real(*arguments)
        alive.append(weakref.ref(found.values))
        most.append(sum(ref() is not None for ref in alive))
        return found

    monkeypatch.setattr(measuring, "observe", observed)
    assert len(measure(tables, confidence=0.95, seed=1)) >= len(most) > 50
    assert max(most) <= 2


@pytest.mark.parametrize("has_intervals", [True, False])
def test_a_slice_measured_alone_is_the_slice_among_all(tables, has_intervals):
    [table] = tables.values()
    found = measure(tables, confidence=0.95, seed=1, has_intervals=has_intervals)
    for each in found[::17]:
        alone = measure_slice(BY_ID[each.metric], table, each.where, confidence=0.95, seed=1)
        assert (alone.value, alone.decided, alone.violated) == (
            each.value,
            each.decided,
            each.violated,
        )
        if has_intervals:
            assert alone == each
        else:
            assert each.interval is None


@given(rows=st.lists(st.integers(0, 9), max_size=12), low=st.integers(-4, 4))
def test_keys_of_rows_read_like_a_list(rows, low):
    keys = [f"k{n}" for n in range(10)]
    found, plain = _Keys(keys, np.array(rows, dtype=np.int64)), [keys[row] for row in rows]
    assert list(found) == plain
    assert len(found) == len(plain)
    assert [found[place] for place in range(-len(plain), len(plain))] == plain + plain
    assert list(found[low:]) == plain[low:]
