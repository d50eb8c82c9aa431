"""The template-based baseline of GenFair's evaluation (P3, section V.C.1): templates filled in.

Every slot gets a value drawn at random, each as likely as the others; nothing is mutated, negated
or moved to a boundary, and no combination is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from fairgate.domain.attributes import AttributeUse, contradiction
from fairgate.features.generation.generator import Distinct, Ingredients
from fairgate.features.generation.templates import Template
from fairgate.suites.metamorphic.sources import GeneratedCase

MOST_REPEATS = 200
"""Draws in a row without a new text after which a template counts as used up."""


class TemplateOnly:
    """Templates with values drawn at random."""

    id: ClassVar[str] = "template"
    description: ClassVar[str] = "Templates filled with values at random (baseline of P3)."

    def cases(self, given: Ingredients, rng: np.random.Generator) -> Iterator[GeneratedCase]:
        """Yield cases, template by template in turn, until none gives a new text."""
        distinct = Distinct()
        seen: dict[str, set[bytes]] = {template.id: set() for template in given.templates}
        left = list(given.templates)
        while left:
            for template in tuple(left):
                case = _new_case(template, distinct, seen[template.id], rng)
                if case is None:
                    left.remove(template)
                else:
                    yield case


def _new_case(
    template: Template, distinct: Distinct, seen: set[bytes], rng: np.random.Generator
) -> GeneratedCase | None:
    sizes = [len(slot.dimension.values) for slot in template.slots]
    for drawn in rng.integers(0, sizes, size=(MOST_REPEATS, len(sizes)), dtype=np.uint8):
        row = drawn.tobytes()
        if row in seen:
            continue
        seen.add(row)
        uses = [
            AttributeUse(dimension=slot.dimension, value=slot.dimension.values[n], form=slot.form)
            for slot, n in zip(template.slots, drawn.tolist(), strict=True)
        ]
        if contradiction(uses) is None:
            case = distinct.case(template.id, template.frame, uses)
            if case is not None:
                return case
    return None
