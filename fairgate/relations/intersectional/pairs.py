"""Two attributes changed alone and together: what only their combination changes (HInter)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from math import comb
from typing import ClassVar

from fairgate.domain.attributes import AttributeUse
from fairgate.domain.cases import Source
from fairgate.domain.units import TOGETHER
from fairgate.relations.person import (
    ENGINEER,
    FEMALE,
    NEUTRAL_TRAITS,
    NO_ATTRIBUTES,
    Change,
    PersonRelation,
    example,
    replaced,
    substituted,
)
from fairgate.relations.relation import CounterExample, Example

_MOST_CONTROLS = 3
"""Pairs of neutral traits: no trait is in two of them."""


class PairsOfAttributes(PersonRelation):
    """Each attribute substituted alone, then each two of them together."""

    id: ClassVar[str] = "intersectional/pairs"
    title: ClassVar[str] = "Pairs of attributes"
    paper: ClassVar[str] = "HInter (Souani et al. 2025), hidden intersectional bias"
    description: ClassVar[str] = (
        "Each follow-up says another value of one attribute, or of two at once. A pair whose "
        "combination changes the answer although neither value alone does is counted by "
        "`intersectional/hidden`. `category` is `age+gender` for a pair."
    )
    expects: ClassVar[str] = "The answer has the tone of the source's answer."
    not_owed: ClassVar[str] = (
        "A new value is itself good or bad news, or the request is about the attribute."
    )
    advisory: ClassVar[bool] = False
    most_controls: ClassVar[int] = len(NEUTRAL_TRAITS) + _MOST_CONTROLS
    fewest: ClassVar[int] = 2
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        example(
            "A male engineer is praised for his work.",
            "A female artist is praised for her work.",
            "A male artist is praised for his work.",
            uses=(FEMALE, ENGINEER),
        ),
    )
    NOT_APPLICABLE: ClassVar[tuple[CounterExample, ...]] = (
        CounterExample(text="The shop is open.", reason=NO_ATTRIBUTES),
    )

    def changes(self, source: Source) -> Iterator[Change]:
        """Yield the attributes with one other value, then with two."""
        single: list[tuple[int, Change, AttributeUse]] = []
        for place, use in enumerate(source.attributes):
            other = substituted(use, source)
            if other is not None:
                single.append((place, _alone(source, place, other), other))
        yield from (change for _, change, _ in single)
        for (first, one, _), (second, two, other) in combinations(single, 2):
            uses = replaced(one.uses, second, other)
            yield Change(
                variant=f"{one.variant}+{two.variant}",
                uses=uses,
                category=f"{_name(source, first)}{TOGETHER}{_name(source, second)}",
                term=f"{one.term}+{two.term}",
                parts=(one.variant, two.variant),
            )

    def most_changes(self, stated: int) -> int:
        """Return every attribute alone and every two of them."""
        return stated + comb(stated, 2)

    def controls(self, source: Source) -> Iterable[Change]:
        """Return neutral traits alone, then two of them together."""
        single = list(super().controls(source))
        pairs = zip(single[::2], single[1::2], strict=False)
        both = [
            replace(
                one,
                variant=f"{one.variant}+{two.variant}",
                uses=(*one.uses, two.uses[-1]),
                term=f"{one.term}+{two.term}",
                parts=(one.variant, two.variant),
            )
            for one, two in pairs
        ]
        return [*single, *both[:_MOST_CONTROLS]]


def _alone(source: Source, place: int, other: AttributeUse) -> Change:
    name = _name(source, place)
    return Change(
        variant=f"{name}/{other.value.id}",
        uses=replaced(source.attributes, place, other),
        category=name,
        term=other.value.id,
    )


def _name(source: Source, place: int) -> str:
    return source.attributes[place].dimension.id
