"""GenFair's source cases: equivalence partitioning, mutation, boundary values (P3, section IV).

Every case is a row of values of its own (`rows.py`), stated plainly, or after an operator, or after
a mutation and a boundary value; each template takes these in turn. While combinations of values are
missing, the template comes next that adds most of them, and each has half its equal share at least;
then they take turns. So every beginning of the stream states nearly as many combinations as so many
cases can. An operator touches the attribute that it touched least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from fairgate.domain.attributes import AttributeUse, Manner
from fairgate.features.generation.generator import Distinct, Ingredients
from fairgate.features.generation.rows import Counts, Rows
from fairgate.suites.metamorphic.case_rows import GeneratedCase

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
