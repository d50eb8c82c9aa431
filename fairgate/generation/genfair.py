"""GenFair's source cases: equivalence partitioning, mutation, boundary values (P3, section IV).

Template by template in turn, one row of values each (`rows.py`). A row gives its plain case, a case
for each operator, and for each mutant one with a boundary value as well. As long as combinations of
values are missing, a row gives two cases and the others wait. Which attribute an operator touches
next is the one that it touched least, so that every beginning of the stream is fair to attributes,
operators and combinations.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from fairgate.domain.attributes import AttributeUse, AttributeValue, Manner, contradiction
from fairgate.generation.case_rows import GeneratedCase
from fairgate.generation.combinations import CombinationCounts
from fairgate.generation.generator import Distinct, Ingredients
from fairgate.generation.rows import BalancedRows
from fairgate.generation.templates import Template
from fairgate.relations.frames import Realised, realise

MANNERS = {
    "intensify": Manner.INTENSIFIED,
    "reduce": Manner.REDUCED,
    "negate": Manner.NEGATED,
}
SUBSTITUTE, BOUNDARY = "substitute", "boundary"
OPERATORS = (*MANNERS, SUBSTITUTE, BOUNDARY)
_FIRST = 2
"""Cases that a row gives at once while combinations are missing: the plain one and another."""
_MOST_WAITING = 4096
"""Rows that wait at most: where values exclude each other, coverage may never be complete."""

Uses = tuple[AttributeUse, ...]


class GenFair:
    """Partitions, mutants and boundary values of the templates."""

    id: ClassVar[str] = "genfair"
    description: ClassVar[str] = (
        "Equivalence partitioning, mutation (intensify, reduce, negate, substitute) and boundary "
        "values, balanced over combinations of attributes (GenFair, P3)."
    )

    def cases(self, given: Ingredients, rng: np.random.Generator) -> Iterator[GeneratedCase]:
        """Yield cases until every row of every template was made."""
        counts = CombinationCounts(given.templates, given.strength)
        variants = _Variants(counts)
        waiting: list[Iterator[GeneratedCase]] = []
        for template, row in _rows_in_turn(given, counts, rng):
            cases = variants.of(template, row)
            if counts.incomplete and len(waiting) < _MOST_WAITING:
                yield from itertools.islice(cases, _FIRST)
                waiting.append(cases)
                continue
            for earlier in waiting:
                yield from earlier
            waiting.clear()
            yield from cases
        for earlier in waiting:
            yield from earlier


def _rows_in_turn(
    given: Ingredients, counts: CombinationCounts, rng: np.random.Generator
) -> Iterator[tuple[Template, Uses]]:
    rows = {template.id: BalancedRows(template, counts, rng) for template in given.templates}
    left = list(given.templates)
    while left:
        for template in tuple(left):
            row = rows[template.id].next_row()
            if row is None:
                left.remove(template)
            else:
                yield template, row


class _Variants:
    """The cases of a row, with the counts that decide what is touched next."""

    def __init__(self, counts: CombinationCounts) -> None:
        self._counts = counts
        self._touched: Counter[tuple[str, str]] = Counter()
        self._values: Counter[str] = Counter()
        self._distinct = Distinct()
        self._rows = 0

    def of(self, template: Template, row: Uses) -> Iterator[GeneratedCase]:
        """Yield the plain case, a case for each operator, and a boundary case of each mutant.

        The operators begin with another one for every row.
        """
        self._rows += 1
        yield from self._case(template, row, ())
        first = self._rows % len(OPERATORS)
        mutants = []
        for operator in (*OPERATORS[first:], *OPERATORS[:first]):
            found = self._mutant(template, row, operator, ())
            if found is not None:
                yield from self._case(template, *found)
                if operator != BOUNDARY:
                    mutants.append(found)
        for uses, operators in mutants:
            found = self._mutant(template, uses, BOUNDARY, operators)
            if found is not None:
                yield from self._case(template, *found)

    def _case(
        self, template: Template, uses: Uses, operators: Sequence[str]
    ) -> Iterator[GeneratedCase]:
        case = self._distinct.case(template.id, template.frame, uses, operators)
        if case is not None:
            self._counts.add(uses)
            self._values.update(use.name for use in uses if use.manner is not Manner.NEGATED)
            yield case

    def _mutant(
        self, template: Template, uses: Uses, operator: str, before: tuple[str, ...]
    ) -> tuple[Uses, tuple[str, ...]] | None:
        """Return the uses with one changed: that of the attribute touched least so far."""
        touched = {name.partition(":")[2] for name in before}
        order = sorted(range(len(uses)), key=lambda n: self._times(operator, uses[n]))
        for n in order:
            if uses[n].dimension.id in touched:
                continue
            changed = self._changed(uses[n], operator)
            mutant = (*uses[:n], changed, *uses[n + 1 :]) if changed is not None else None
            if mutant is None or contradiction(mutant) is not None:
                continue
            if not isinstance(realise(template.frame, mutant), Realised):
                continue
            name = uses[n].dimension.id
            self._touched[operator, name] += 1
            return mutant, (*before, f"{operator}:{name}")
        return None

    def _times(self, operator: str, use: AttributeUse) -> int:
        return self._touched[operator, use.dimension.id]

    def _changed(self, use: AttributeUse, operator: str) -> AttributeUse | None:
        """Return a use after an operator; None where the operator does not apply to it."""
        manner = MANNERS.get(operator)
        if manner is not None:
            wording = use.value.wording(manner)
            return None if wording is None else replace(use, manner=manner)
        if operator == SUBSTITUTE:
            others = [v for v in use.dimension.others(use.value) if self._sayable(use, v)]
            elsewhere = [v for v in others if v.partition != use.value.partition]
            choice = elsewhere or others
        else:
            choice = [v for v in use.dimension.boundaries if v.id != use.value.id]
        if not choice:
            return None
        value = min(choice, key=lambda v: self._values[f"{use.dimension.id}/{v.id}"])
        return replace(use, value=value, manner=Manner.PLAIN)

    @staticmethod
    def _sayable(use: AttributeUse, value: AttributeValue) -> bool:
        return bool(replace(use, value=value, manner=Manner.PLAIN).words())
