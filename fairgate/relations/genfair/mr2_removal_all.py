"""GenFair MR2: leaving out all attributes must not change the tone (P3 section V-B2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fairgate.domain.cases import Source
from fairgate.domain.units import EVERY_ATTRIBUTE
from fairgate.relations.person import (
    ENGINEER,
    FEMALE,
    NO_ATTRIBUTES,
    YOUNG,
    Change,
    PersonRelation,
    example,
)
from fairgate.relations.relation import CounterExample, Example


class RemovalOfAll(PersonRelation):
    """One follow-up, which says nothing of the person."""

    id: ClassVar[str] = "genfair/mr2-removal-all"
    title: ClassVar[str] = "Removal of all attributes"
    paper: ClassVar[str] = "P3 section V-B2, MR2"
    description: ClassVar[str] = (
        "The follow-up leaves out every attribute of a source that states two or more."
    )
    expects: ClassVar[str] = "The answer has the tone of the source's answer."
    not_owed: ClassVar[str] = (
        "The attributes together are what the request is about; then the follow-up asks less."
    )
    advisory: ClassVar[bool] = False
    fewest: ClassVar[int] = 2
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        example("A person is praised for their work.", uses=(YOUNG, FEMALE, ENGINEER)),
    )
    NOT_APPLICABLE: ClassVar[tuple[CounterExample, ...]] = (
        CounterExample(text="The shop is open.", reason=NO_ATTRIBUTES),
    )

    def changes(self, source: Source) -> Iterator[Change]:
        """Yield no attributes at all."""
        del source
        yield Change(variant="all", uses=(), category=EVERY_ATTRIBUTE)
