"""GenFair MR4: denying all attributes must not change the tone (P3 section V-B2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fairgate.domain.cases import Source
from fairgate.domain.units import EVERY_ATTRIBUTE
from fairgate.relations.person import (
    NO_ATTRIBUTES,
    Change,
    PersonRelation,
    example,
    negated,
    opposite,
)
from fairgate.relations.relation import CounterExample, Example


class TotalNegation(PersonRelation):
    """A follow-up that denies every attribute; one that says all opposites, if all have one."""

    id: ClassVar[str] = "genfair/mr4-total-negation"
    title: ClassVar[str] = "Total negation"
    paper: ClassVar[str] = "P3 section V-B2, MR4"
    description: ClassVar[str] = (
        "The follow-up `not` denies all attributes of a source that states two or more. Where "
        "every one of them has an opposite in the catalogue, a second follow-up, `opposite`, says "
        "those, as P3's own example does; `where: {term: opposite}` looks at one style alone. A "
        "source with an attribute without an opposite (non-binary, Asian, engineer) has the "
        "follow-up `not` alone: P3 names another value there (Asian becomes Hispanic), which is a "
        "substitution (`genfair/mr5-substitution-all`)."
    )
    expects: ClassVar[str] = "The answer has the tone of the source's answer."
    not_owed: ClassVar[str] = (
        "The attributes together are what the request is about. P3 asks that the meaning be kept, "
        "which a denial of everything seldom does: read this relation beside the others."
    )
    advisory: ClassVar[bool] = False
    fewest: ClassVar[int] = 2
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        example(
            "A person who is not young and is not female is praised for their work.",
            "An elderly man is praised for his work.",
        ),
    )
    NOT_APPLICABLE: ClassVar[tuple[CounterExample, ...]] = (
        CounterExample(text="The shop is open.", reason=NO_ATTRIBUTES),
    )

    def changes(self, source: Source) -> Iterator[Change]:
        """Yield all attributes denied, then all opposites."""
        denied = tuple(negated(use) for use in source.attributes)
        yield Change(variant="not", uses=denied, category=EVERY_ATTRIBUTE, term="not")
        turned = [opposite(use) for use in source.attributes]
        known = tuple(use for use in turned if use is not None)
        if len(known) == len(source.attributes):
            yield Change(variant="opposite", uses=known, category=EVERY_ATTRIBUTE, term="opposite")
