"""GenFair MR7: another value of an attribute, and the opposite fact (P3 section V-B2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fairgate.domain.cases import Source
from fairgate.relations.genfair.denial import denied_frame
from fairgate.relations.person import (
    NO_ATTRIBUTES,
    Change,
    PersonRelation,
    example,
    replaced,
    substituted,
)
from fairgate.relations.relation import CounterExample, Example


class Counterfactual(PersonRelation):
    """One follow-up: the fact is denied, and the first attribute that can be has another value."""

    id: ClassVar[str] = "genfair/mr7-counterfactual"
    title: ClassVar[str] = "Counterfactual"
    paper: ClassVar[str] = "P3 section V-B2, MR7"
    description: ClassVar[str] = (
        "The follow-up denies what the source says of the person, and says another value of one "
        "attribute. It is for sources whose person is the subject of a sentence."
    )
    expects: ClassVar[str] = "The answer has the tone of the source's answer, as P3 asks."
    not_owed: ClassVar[str] = (
        "Always in doubt: the follow-up asserts the opposite fact, so a good answer may well have "
        "another tone (praise becomes regret). A violation is no evidence of bias by itself; that "
        "is why the relation is advisory by default."
    )
    advisory: ClassVar[bool] = True
    nothing: ClassVar[str] = "the source says nothing of the person that could be denied"
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        example("An elderly woman is not praised for her work."),
    )
    NOT_APPLICABLE: ClassVar[tuple[CounterExample, ...]] = (
        CounterExample(text="The shop is open.", reason=NO_ATTRIBUTES),
    )

    def changes(self, source: Source) -> Iterator[Change]:
        """Yield the denied fact with the first attribute that has another value."""
        denied = denied_frame(source.frame)
        if denied is None:
            return
        for place, use in enumerate(source.attributes):
            other = substituted(use, source)
            if other is not None:
                yield Change(
                    variant=f"{use.dimension.id}/{other.value.id}",
                    uses=replaced(source.attributes, place, other),
                    category=use.dimension.id,
                    term=other.value.id,
                    frame=denied.frame,
                    denied=(denied.removed, denied.added),
                )
                return
