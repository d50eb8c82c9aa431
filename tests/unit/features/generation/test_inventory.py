"""t-way combinations and rows against brute force over every row that there is."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from fakes.generation import share
from hypothesis import given, settings
from hypothesis import strategies as st

from fairgate.domain.attributes import (
    AttributeValue,
    Dimension,
    Form,
    Manner,
    Wording,
    contradiction,
)
from fairgate.features.generation.cases import CombinationCounts, combinations_of
from fairgate.features.generation.generators import (
    CandidateRows,
    CaseTemplate,
    Counts,
    Slot,
)


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
    return CaseTemplate(id="t", frame="{A person} waits.", slots=slots)


def every_row(template):
    """Every row that contradicts nothing, by brute force."""
    for row in itertools.product(*(range(len(s.dimension.values)) for s in template.slots)):
        uses = template.uses(row)
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
    assert set(found) == stated(every_row(template), strength)


def taken(template, strength, seed=1):
    """The rows of a template, each once, as they come."""
    rows = CandidateRows(template, Counts([template], strength), np.random.default_rng(seed))
    while (row := rows.best()) is not None:
        yield rows.uses(row)
        rows.use(row, None)
        rows.strike(row)


@settings(max_examples=40)
@given(template=templates(), strength=st.integers(1, 3), seed=st.integers(0, 9))
def test_rows_are_every_row_once_and_each_adds_most(template, strength, seed):
    left = {tuple(use.name for use in row): row for row in every_row(template)}
    covered = set()
    for row in taken(template, strength, seed):
        most = max(len(stated([other], strength) - covered) for other in left.values())
        assert len(stated([row], strength) - covered) == most
        covered |= stated([row], strength)
        del left[tuple(use.name for use in row)]
    assert not left


def plain_template(count, size):
    slots = tuple(Slot(dimension(name, size, {}), Form.ADJECTIVE) for name in "abcdefgh"[:count])
    return CaseTemplate(id="t", frame="{A person} waits.", slots=slots)


def filled(count, size, rows, strength=2):
    template = plain_template(count, size)
    counts = CombinationCounts([template], strength)
    for uses in itertools.islice(taken(template, strength), rows):
        counts.add(uses)
    return counts


def test_few_rows_cover_all_pairs():
    """Five slots of six values: 36 rows are the fewest that could."""
    assert share(filled(5, 6, 36)) > 0.8
    assert share(filled(5, 6, 80)) == 1


def test_denied_values_are_not_stated():
    template = plain_template(3, 2)
    counts = CombinationCounts([template], 2)
    first, *others = template.uses([0, 0, 0])
    counts.add([replace(first, manner=Manner.NEGATED), *others])
    assert len(counts.stated) == 12
    assert {each for each, count in counts.stated.items() if count} == {("b/v0", "c/v0")}


@pytest.mark.parametrize("strength", [4, 5])
def test_a_strength_beyond_the_slots_has_nothing_to_cover(strength):
    assert share(CombinationCounts([plain_template(3, 2)], strength)) == 1
