"""Rows of values for the slots of a template, each the one that states most that was not stated.

A covering array is built row by row (greedy, as in AETG): all rows of a template are compared, and
the one with the most new combinations of t values is taken; where nothing is new, the one whose
combinations are rarest. Rows that hold two values which nobody has together are left out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fairgate.domain.attributes import AttributeUse, excluded
from fairgate.features.generation.combinations import named_values
from fairgate.features.generation.templates import Template

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
    """The rows of one template, with how often each was used."""

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
