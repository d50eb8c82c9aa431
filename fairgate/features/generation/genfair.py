"""GenFair's source cases: equivalence partitioning, mutation, boundary values (P3, section IV).

Every case is a row of values of its own (`Rows`), stated plainly, or after an operator, or after a
mutation and a boundary value; each template takes these in turn. While combinations of values are
missing, the template comes next that adds most of them, and each has half its equal share at least;
then they take turns. So every beginning of the stream states nearly as many combinations as so many
cases can. An operator touches the attribute that it touched least.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fairgate.domain.attributes import AttributeUse, Manner, excluded
from fairgate.features.generation.generator import Distinct, Ingredients
from fairgate.features.generation.inventory import named_values
from fairgate.features.generation.templates import Template
from fairgate.suites.metamorphic.sources import GeneratedCase

MANNERS = {
    "intensify": Manner.INTENSIFIED,
    "reduce": Manner.REDUCED,
    "negate": Manner.NEGATED,
}
NEGATE, SUBSTITUTE, BOUNDARY = "negate", "substitute", "boundary"
OPERATORS = (*MANNERS, SUBSTITUTE, BOUNDARY)
RECIPES: tuple[tuple[str, ...], ...] = (
    (),
    *((name,) for name in OPERATORS),
    *((name, BOUNDARY) for name in (*MANNERS, SUBSTITUTE)),
)
"""Operators of one case after another of a template."""

Uses = tuple[AttributeUse, ...]
MOST_ROWS = 2**14
"""Rows of a template up to which all are compared."""
SAMPLE = 2**11
"""Rows drawn at random and compared where there are more than that."""
_REPEATS = 50
"""Samples in a row without a new case after which a template counts as used up."""
_NEW, _USED = 1e12, 1e9  # what a new combination and an earlier use of a row weigh

Cells = npt.NDArray[np.int64]


class Counts:
    """How often each combination was stated: one place for each, shared by all templates."""

    def __init__(self, templates: Sequence[Template], strength: int) -> None:
        """Lay out the combinations of the templates, all at zero."""
        self.strength = strength
        self._starts: dict[tuple[str, ...], int] = {}
        size = 0
        for template in templates:
            for slots in self.groups(template):
                held = sorted((template.slots[n].dimension for n in slots), key=lambda d: d.id)
                key = tuple(dimension.id for dimension in held)
                if key not in self._starts:
                    self._starts[key] = size
                    size += math.prod(len(dimension.values) for dimension in held)
        self.stated = np.zeros(size, dtype=np.int64)

    def groups(self, template: Template) -> list[tuple[int, ...]]:
        """Return the slots that are counted together; all where a template has fewer than t."""
        slots = len(template.slots)
        return list(itertools.combinations(range(slots), min(self.strength, slots)))

    def cells(self, template: Template, rows: Cells) -> Cells:
        """Return the place of each combination of each row, `[groups, rows]`."""
        found = []
        for slots in self.groups(template):
            order = sorted(slots, key=lambda n: template.slots[n].dimension.id)
            place = np.zeros(len(rows), dtype=np.int64)
            for n in order:
                place = place * len(template.slots[n].dimension.values) + rows[:, n]
            found.append(place + self._starts[tuple(template.slots[n].dimension.id for n in order)])
        return np.stack(found)


class Rows:
    """The rows of one template, with how often each was used.

    A covering array is built row by row (greedy, as in AETG): all rows of a template are compared,
    and the one with the most new combinations of t values is taken; where nothing is new, the one
    whose combinations are rarest. Rows that hold two values which nobody has together are left out.
    """

    def __init__(self, template: Template, counts: Counts, rng: np.random.Generator) -> None:
        """Take the counts that all templates share; `use` adds to them."""
        self.template = template
        self.used = 0
        self.gain = len(counts.groups(template))
        """Most combinations that a row can add: an upper bound until `best` was called."""
        self._counts = counts
        self._rng = rng
        slots = len(template.slots)
        groups = counts.groups(template)
        self._without = [
            [n for n, g in enumerate(groups) if slot not in g] for slot in range(slots)
        ]
        self._sizes = [len(slot.dimension.values) for slot in template.slots]
        self._clashes = _clashes(template)
        self._sampled = math.prod(self._sizes) > MOST_ROWS
        self._left = _REPEATS
        if not self._sampled:
            self._take(np.indices(self._sizes).reshape(slots, -1).T)

    def _take(self, rows: Cells) -> None:
        clash = np.zeros(len(rows), dtype=bool)
        for one, other, table in self._clashes:
            clash |= table[rows[:, one], rows[:, other]]
        self._rows = rows[~clash]
        self._cells = self._counts.cells(self.template, self._rows)
        self._uses = np.zeros(len(self._rows))

    def best(self, denied: int | None = None) -> int | None:
        """Return the row to take next; None where no row is left.

        Combinations of the slot `denied` do not count: a denied value is not stated.
        """
        if self._sampled and self._left:
            self._take(self._rng.integers(0, self._sizes, size=(SAMPLE, len(self._sizes))))
        cells = self._cells if denied is None else self._cells[self._without[denied]]
        stated = self._counts.stated[cells]
        new = (stated == 0).sum(axis=0)
        cost = self._uses * _USED + stated.sum(axis=0) - new * _NEW + self._rng.random(len(new))
        if not len(cost) or math.isinf(cost[row := int(cost.argmin())]):
            return None
        if denied is None:
            self.gain = int(new[row])
        return row

    def uses(self, row: int) -> tuple[AttributeUse, ...]:
        """Return what a row states, plainly."""
        return tuple(
            AttributeUse(dimension=slot.dimension, value=slot.dimension.values[n], form=slot.form)
            for slot, n in zip(self.template.slots, self._rows[row].tolist(), strict=True)
        )

    def use(self, row: int, denied: int | None) -> None:
        """Count a row as stated, but for the slot that is denied."""
        self.used += 1
        self._left = _REPEATS
        self._uses[row] += 1
        cells = self._cells[:, row]
        self._counts.stated[cells if denied is None else cells[self._without[denied]]] += 1

    def strike(self, row: int) -> None:
        """Leave a row out from now on: every text of it was made."""
        self._left -= self._sampled
        self._uses[row] = math.inf


def _clashes(template: Template) -> list[tuple[int, int, npt.NDArray[np.bool_]]]:
    """Return two slots and, `[values, values]`, which values of them nobody has together."""
    slots = list(enumerate(named_values(template)))
    tables = (
        (n, m, np.array([[excluded(one, other) for other in right] for one in left]))
        for (n, left), (m, right) in itertools.combinations(slots, 2)
    )
    return [found for found in tables if found[2].any()]


class GenFair:
    """Partitions, mutants and boundary values of the templates."""

    id: ClassVar[str] = "genfair"
    description: ClassVar[str] = (
        "Equivalence partitioning, mutation (intensify, reduce, negate, substitute) and boundary "
        "values, built to cover combinations of attributes (GenFair, P3)."
    )

    def cases(self, given: Ingredients, rng: np.random.Generator) -> Iterator[GeneratedCase]:
        """Yield cases until every text of every template was made."""
        counts = Counts(given.templates, given.strength)
        left = {Rows(template, counts, rng): n for n, template in enumerate(given.templates)}
        variants = _Variants()
        while left:
            rows = _next_template(list(left))
            case = variants.case(rows, left[rows] + rows.used)
            if case is None:
                del left[rows]
            else:
                yield case


def _next_template(left: list[Rows]) -> Rows:
    """Return the template whose best row adds most, or one that has less than half its share.

    What a row can add only falls, so most templates need not be looked at.
    """
    share = sum(rows.used for rows in left) / len(left)
    usable = [rows for rows in left if rows.used < share / 2] or left
    while True:
        first = max(usable, key=lambda rows: (rows.gain, -rows.used))
        bound = first.gain
        if not bound or first.best() is None or first.gain == bound:
            return first


class _Variants:
    """The cases of rows, with the counts that decide which attribute is touched next."""

    def __init__(self) -> None:
        self._touched: Counter[tuple[str, str]] = Counter()
        self._distinct = Distinct()

    def case(self, rows: Rows, turn: int) -> GeneratedCase | None:
        """Return a case with the operators of a turn; with others where these give no new text.

        None where no text of the template is left.
        """
        turn %= len(RECIPES)
        recipes = (*RECIPES[turn:], *RECIPES[:turn])
        if NEGATE in recipes[0]:
            slots = [slot.dimension.id for slot in rows.template.slots]
            for n in sorted(range(len(slots)), key=lambda n: self._touched[NEGATE, slots[n]]):
                row = rows.best(denied=n)
                case = None if row is None else self._new(rows, row, recipes[0], n)
                if case is not None:
                    return case
        while (row := rows.best()) is not None:
            for recipe in recipes:
                case = self._new(rows, row, recipe)
                if case is not None:
                    return case
            rows.strike(row)
        return None

    def _new(
        self, rows: Rows, row: int, recipe: tuple[str, ...], denied: int | None = None
    ) -> GeneratedCase | None:
        for uses, touched in self._changed(rows.uses(row), recipe, (), denied):
            names = [f"{operator}:{name}" for operator, name in touched]
            case = self._distinct.case(rows.template.id, rows.template.frame, uses, names)
            if case is not None:
                self._touched.update(touched)
                denials = (n for n, use in enumerate(uses) if use.manner is Manner.NEGATED)
                rows.use(row, next(denials, None))
                return case
        return None

    def _changed(
        self,
        uses: Uses,
        recipe: tuple[str, ...],
        touched: tuple[tuple[str, str], ...],
        denied: int | None,
    ) -> Iterator[tuple[Uses, tuple[tuple[str, str], ...]]]:
        """Yield what a recipe makes of a row, the attributes that were touched least first."""
        if not recipe:
            yield uses, touched
            return
        operator, *rest = recipe
        taken = {name for _, name in touched}
        order = sorted(
            range(len(uses)), key=lambda n: self._touched[operator, uses[n].dimension.id]
        )
        for n in order if denied is None or operator != NEGATE else [denied]:
            name = uses[n].dimension.id
            use = _after(uses[n], operator)
            if use is not None and name not in taken:
                others = (*uses[:n], use, *uses[n + 1 :])
                yield from self._changed(others, tuple(rest), (*touched, (operator, name)), denied)


def _after(use: AttributeUse, operator: str) -> AttributeUse | None:
    """Return a use as an operator leaves it; None where the operator cannot have led to it.

    A row holds the values that a substitution or a move to the boundary ends with.
    """
    manner = MANNERS.get(operator)
    if manner is not None:
        return None if use.value.wording(manner) is None else replace(use, manner=manner)
    return None if operator == BOUNDARY and use.value not in use.dimension.boundaries else use
