"""Values for the slots of a template, so chosen that rare combinations come first.

Each row begins with the combination that was stated least often and fills the other slots with the
values whose combinations are rarest (greedy, as in AETG). So every row covers something new until
all is covered, and later rows keep the counts even.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from fairgate.domain.attributes import AttributeUse, AttributeValue, excluded
from fairgate.generation.combinations import (
    Combination,
    CombinationCounts,
    combinations_of,
    named_values,
)
from fairgate.generation.templates import Template

Named = tuple[str, AttributeValue]
_TRIES = 8
"""Repeated rows in a row after which the remaining ones are taken in order."""


class BalancedRows:
    """The rows of one template, each once. Ends where all were made."""

    def __init__(
        self, template: Template, counts: CombinationCounts, rng: np.random.Generator
    ) -> None:
        """Take the counts that all templates share; the caller adds to them."""
        self._template = template
        self._counts = counts
        self._rng = rng
        self._slots = named_values(template)
        self._slot_of = {name: n for n, slot in enumerate(self._slots) for name, _ in slot}
        self._values = {name: value for slot in self._slots for name, value in slot}
        self._seeds = list(combinations_of(template, min(counts.strength, len(self._slots))))
        self._seen: set[tuple[str, ...]] = set()
        self._rest: Iterator[tuple[Named, ...]] = itertools.product(*self._slots)

    def next_row(self) -> tuple[AttributeUse, ...] | None:
        """Return a row that was not returned before; None where there is none left."""
        for _ in range(_TRIES):
            row = self._greedy_row()
            if row is not None and row not in self._seen:
                return self._taken(row)
        for chosen in self._rest:
            row = tuple(name for name, _ in chosen)
            clash = any(excluded(*pair) for pair in itertools.combinations(chosen, 2))
            if row not in self._seen and not clash:
                return self._taken(row)
        return None

    def _taken(self, row: tuple[str, ...]) -> tuple[AttributeUse, ...]:
        self._seen.add(row)
        return tuple(
            AttributeUse(dimension=slot.dimension, value=self._values[name], form=slot.form)
            for slot, name in zip(self._template.slots, row, strict=True)
        )

    def _greedy_row(self) -> tuple[str, ...] | None:
        if not self._seeds:
            return None
        seed = self._rarest(self._seeds)
        chosen = {self._slot_of[name]: name for name in seed}
        open_slots = [n for n in range(len(self._slots)) if n not in chosen]
        self._rng.shuffle(open_slots)
        for slot in open_slots:
            fitting = [
                name
                for name, value in self._slots[slot]
                if not any(
                    excluded((name, value), (other, self._values[other]))
                    for other in chosen.values()
                )
            ]
            if not fitting:  # what it excludes leaves a slot empty: it would come up for ever
                self._seeds.remove(seed)
                return None
            costs = [self._cost(name, list(chosen.values())) for name in fitting]
            least = min(costs)
            chosen[slot] = self._any([n for n, c in zip(fitting, costs, strict=True) if c == least])
        return tuple(chosen[n] for n in range(len(self._slots)))

    def _cost(self, name: str, others: Sequence[str]) -> int:
        """Return how often the combinations were stated that a value would complete."""
        partners = itertools.combinations(others, self._counts.strength - 1)
        return sum(self._counts.of(tuple(sorted((name, *each)))) for each in partners)

    def _rarest(self, combinations: Sequence[Combination]) -> Combination:
        counts = [self._counts.of(each) for each in combinations]
        least = min(counts)
        rarest = [n for n, count in enumerate(counts) if count == least]
        return combinations[rarest[int(self._rng.integers(len(rarest)))]]

    def _any(self, names: Sequence[str]) -> str:
        return names[int(self._rng.integers(len(names)))]
