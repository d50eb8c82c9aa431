"""t-way combinations and rows against brute force over every row that there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairgate.domain.attributes import (
    AttributeUse,
    AttributeValue,
    Dimension,
    Form,
    Manner,
    Wording,
    contradiction,
)
from fairgate.generation.combinations import CombinationCounts, combinations_of
from fairgate.generation.rows import BalancedRows
from fairgate.generation.templates import Slot, Template


def dimension(name, size, excludes):
    return Dimension(
        id=name,
        values=tuple(
            AttributeValue(
                id=f"v{n}",
                partition=f"v{n}",
                wordings=((Manner.PLAIN, Wording(adjective=f"{name}{n}", clause=f"is {name}{n}")),),
                excludes=frozenset(excludes.get(f"{name}/v{n}", ())),
            )
            for n in range(size)
        ),
    )


@st.composite
def templates(draw):
    """A template of three to five slots, where some pairs of values exclude each other."""
    sizes = draw(st.lists(st.integers(2, 3), min_size=3, max_size=4))
    names = [f"{'abcde'[n]}/v{m}" for n, size in enumerate(sizes) for m in range(size)]
    pairs = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=3))
    excludes = {}
    for one, other in pairs:
        if one[0] != other[0]:
            excludes.setdefault(one, set()).add(other)
    dimensions = [dimension("abcde"[n], size, excludes) for n, size in enumerate(sizes)]
    slots = tuple(Slot(each, Form.ADJECTIVE) for each in dimensions)
    return Template(id="t", frame="{A person} waits.", slots=slots)


def every_row(template):
    """Every row that contradicts nothing, by brute force."""
    for values in itertools.product(*(slot.dimension.values for slot in template.slots)):
        uses = tuple(
            AttributeUse(dimension=slot.dimension, value=value, form=slot.form)
            for slot, value in zip(template.slots, values, strict=True)
        )
        if contradiction(uses) is None:
            yield uses


def stated(rows, strength):
    return {
        combination
        for uses in rows
        for combination in itertools.combinations(sorted(use.name for use in uses), strength)
    }


@given(template=templates(), strength=st.integers(1, 3))
def test_combinations_are_those_of_every_row(template, strength):
    found = list(combinations_of(template, strength))
    assert len(found) == len(set(found))
    assert set(found) >= stated(every_row(template), strength)
    # A combination of its own contradicts nothing, even where no row can hold it.
    for combination in set(found) - stated(every_row(template), strength):
        assert strength < len(template.slots), combination


@settings(max_examples=40)
@given(template=templates(), strength=st.integers(1, 3), seed=st.integers(0, 9))
def test_rows_are_every_row_once_and_coverage_is_that_of_brute_force(template, strength, seed):
    counts = CombinationCounts([template], strength)
    rows = BalancedRows(template, counts, np.random.default_rng(seed))
    made, covered = [], set()
    while (row := rows.next_row()) is not None:
        made.append(row)
        counts.add(row)
        covered |= stated([row], strength)
        if len(made) % 16 == 1:
            assert counts.coverage().covered == len(covered)
    assert counts.coverage().covered == len(covered)
    names = [tuple(use.name for use in row) for row in made]
    assert len(names) == len(set(names))
    assert set(names) == {tuple(use.name for use in row) for row in every_row(template)}


@given(template=templates(), seed=st.integers(0, 9))
def test_every_row_covers_something_new_until_all_is_covered(template, seed):
    counts = CombinationCounts([template], 2)
    reachable = len(stated(every_row(template), 2))
    if reachable < counts.coverage().possible:
        return
    rows = BalancedRows(template, counts, np.random.default_rng(seed))
    while counts.incomplete:
        before = counts.coverage().covered
        row = rows.next_row()
        if row is None:
            break
        counts.add(row)
        assert counts.coverage().covered > before
    assert counts.coverage().share == 1


def test_pairs_need_far_fewer_rows_than_there_are():
    """Five slots of four values: 1,024 rows; 16 are the least that hold all pairs."""
    slots = tuple(Slot(dimension(name, 4, {}), Form.ADJECTIVE) for name in "abcde")
    template = Template(id="t", frame="{A person} waits.", slots=slots)
    counts = CombinationCounts([template], 2)
    rows = BalancedRows(template, counts, np.random.default_rng(1))
    made = 0
    while counts.incomplete:
        counts.add(rows.next_row())
        made += 1
    assert 16 <= made <= 30


def test_denied_values_are_not_stated():
    slots = tuple(Slot(dimension(name, 2, {}), Form.ADJECTIVE) for name in "abc")
    template = Template(id="t", frame="{A person} waits.", slots=slots)
    counts = CombinationCounts([template], 2)
    uses = [
        AttributeUse(
            dimension=slot.dimension,
            value=slot.dimension.values[0],
            form=slot.form,
            manner=Manner.NEGATED if n == 0 else Manner.PLAIN,
        )
        for n, slot in enumerate(slots)
    ]
    counts.add(uses)
    found = counts.coverage(shown=20)
    assert (found.covered, found.possible) == (1, 12)
    assert ("b/v0", "c/v0") not in found.missing


@pytest.mark.parametrize("strength", [4, 5])
def test_a_strength_beyond_the_slots_has_nothing_to_cover(strength):
    slots = tuple(Slot(dimension(name, 2, {}), Form.ADJECTIVE) for name in "abc")
    template = Template(id="t", frame="{A person} waits.", slots=slots)
    assert CombinationCounts([template], strength).coverage().share == 1
