"""Set Equivalence: naming a speaker of a text must not change its label (P1 section 4.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from fairgate.domain.cases import Source
from fairgate.relations.perturbation_sets import PerturbationSet, Term
from fairgate.relations.relation import CounterExample, Example, FollowUp, NotApplicable, SameLabel

_EMPTY = "the text is empty or blank"
_PREFIXED = "the text already begins with a speaker (`… says the following text:`)"
_NAMED_SPEAKER = re.compile(r"\s*\S[^\n\"]{0,99} says the following text:")

_RACE = PerturbationSet(
    id="race",
    terms=(
        Term(term="asian", noun_phrase="An Asian person"),
        Term(term="middle eastern", noun_phrase="A Middle Eastern person"),
    ),
)
NEUTRAL = PerturbationSet(
    id="neutral", terms=(Term(term="reader", noun_phrase="A reader"),), control=True
)


class SetEquivalence(SameLabel):
    """Names a speaker before the quoted text; quotes, spacing and text are equal on both sides."""

    id: ClassVar[str] = "set-equivalence"
    title: ClassVar[str] = "Set Equivalence"
    paper: ClassVar[str] = "Oliveira et al. 2025, section 4.3; the prefix follows METAL"
    description: ClassVar[str] = (
        "The source is the text in double quotes. Each follow-up names a speaker before it: "
        'a noun phrase and "says the following text:". The text itself is not touched.'
    )
    expects: ClassVar[str] = (
        "The answer has the same label as the source's; labels of one group count as the same."
    )
    not_owed: ClassVar[str] = (
        "The text is about the group itself, or its meaning depends on the speaker "
        "(reclaimed words, a joke about oneself)."
    )
    advisory: ClassVar[bool] = False
    source_variant: ClassVar[str] = ""
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            text="The soup was cold.",
            sets=(_RACE, NEUTRAL),
            source='"The soup was cold."',
            follow_ups=(
                'An Asian person says the following text: "The soup was cold."',
                'A Middle Eastern person says the following text: "The soup was cold."',
                'A reader says the following text: "The soup was cold."',
            ),
        ),
        Example(
            text='He said "never again"\nand left. ',
            sets=(NEUTRAL,),
            source='"He said "never again"\nand left. "',
            follow_ups=('A reader says the following text: "He said "never again"\nand left. "',),
        ),
    )
    NOT_APPLICABLE: ClassVar[tuple[CounterExample, ...]] = (
        CounterExample(text=" \n", reason=_EMPTY),
        CounterExample(text='A man says the following text: "Good."', reason=_PREFIXED),
    )

    def source_text(self, source: Source) -> str:
        """Return the text in double quotes, with nothing before it."""
        return f'"{source.text}"'

    def follow_ups(
        self, source: Source, sets: Sequence[PerturbationSet]
    ) -> Sequence[FollowUp] | NotApplicable:
        """Return one follow-up per term of every set, in their order, in one of its phrases."""
        if reason := self.obstacle(source):
            return NotApplicable(reason=reason)
        return [
            FollowUp(
                variant=f"{group.id}/{term.term}",
                category=group.id,
                term=term.term,
                noun_phrase=phrase,
                text=self.named(phrase, source),
                control=group.control,
            )
            for group in sets
            for term in group.terms
            for phrase in (group.said_to(source.id, term),)
        ]

    def obstacle(self, source: Source) -> str:
        """Return why a source has no follow-ups; empty where it has."""
        if not source.text.strip():
            return _EMPTY
        return _PREFIXED if _NAMED_SPEAKER.match(source.text) else ""

    def named(self, noun_phrase: str, source: Source) -> str:
        """Return the text of a follow-up."""
        return said_by(noun_phrase, self.source_text(source))

    def most_follow_ups(self, source: Source, sets: Sequence[PerturbationSet]) -> int:
        """Return how many terms the sets have."""
        del source
        return sum(len(group.terms) for group in sets)

    def fault(self, source_text: str, follow_up: FollowUp) -> str | None:
        """Reject a follow-up that is not, to the character, its source behind the speaker."""
        if follow_up.text == said_by(follow_up.noun_phrase, source_text):
            return None
        if source_text not in follow_up.text:
            return "the text of the source was changed"
        return "the wording around the source's text is not that of the relation"


def said_by(noun_phrase: str, source_text: str) -> str:
    """Return the source's text behind its speaker."""
    return f"{noun_phrase} says the following text: {source_text}"
