"""Relations whose follow-ups are written beforehand: people or a model wrote both prompts (P4).

Nothing is generated here, so only the data can be wrong: the linter checks whether a pair
differs only by the attribute that it declares.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import ClassVar

from fairgate.domain.cases import Pair, Source
from fairgate.relations.articles import article_fault
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.relations.relation import FollowUp, NotApplicable

NOT_WRITTEN = "no follow-up was written for the source (`relation`, `follow_up`)"

MOST_CHARACTERS = 8_000
"""Longest prompt of a pair: comparing two word by word takes the square of their length."""

_PIECE = re.compile(r"[^\W_]+(?:[-'\u2019][^\W_]+)*|[^\w\s]")
_AGREEING = frozenset(
    """a an the this that these those who whose is are was were has have with of in from at into
    he him his she her hers they them their theirs himself herself themselves
    person people individual somebody someone""".split()  # noqa: SIM905 (a list of words reads better so)
)
"""Words that may change beside the attribute, because they must agree with it in English."""


class WrittenPair:
    """The transformation of relations whose follow-ups stand in the data."""

    reads_task: ClassVar[bool] = False
    takes_pairs: ClassVar[bool] = True
    expects_one_answer: ClassVar[bool] = False
    source_variant: ClassVar[str] = ""

    def shown(self, prompt: str, source: Source) -> str:
        """Return what is put to the system for one of the source's two prompts."""
        del source
        return prompt

    def source_text(self, source: Source) -> str:
        """Return the source's prompt as it is shown."""
        return self.shown(source.text, source)

    def follow_up_text(self, pair: Pair, source: Source) -> str:
        """Return the text of the follow-up, as it was written and is shown."""
        return self.shown(pair.follow_up, source)

    def follow_ups(
        self, source: Source, sets: Sequence[PerturbationSet]
    ) -> Sequence[FollowUp] | NotApplicable:
        """Return the one follow-up that was written for the source."""
        del sets
        pair = source.pair
        if pair is None:
            return NotApplicable(reason=NOT_WRITTEN)
        return [
            FollowUp(
                variant=f"{pair.dimension}/{pair.term}",
                category=pair.dimension,
                term=pair.term,
                text=self.follow_up_text(pair, source),
                pair=pair,
            )
        ]

    def most_follow_ups(self, source: Source, sets: Sequence[PerturbationSet]) -> int:
        """Return 1: a pair has one follow-up."""
        del source, sets
        return 1

    def fault(self, source_text: str, follow_up: FollowUp) -> str | None:
        """Reject a pair that differs in more than its attribute (SPEC 7)."""
        if follow_up.pair is None:
            return NOT_WRITTEN
        return pair_fault(source_text, follow_up.text, follow_up.pair)


def pair_fault(source_text: str, follow_up_text: str, pair: Pair) -> str | None:
    """Return why two prompts are no pair of one declared edit; None where they are one.

    Each names its attribute; what else differs, word by word, are articles, pronouns and other
    words that agree with it. Case and punctuation are kept.
    """
    if max(len(source_text), len(follow_up_text)) > MOST_CHARACTERS:
        return f"a prompt of the pair is longer than {MOST_CHARACTERS:,} characters"
    for name, text, attribute in (
        ("source", source_text, pair.source_attribute),
        ("follow-up", follow_up_text, pair.attribute),
    ):
        if attribute and not _names(text, attribute):
            return f"the {name} does not hold its attribute '{attribute}'"
        fault = article_fault(text)
        if fault:
            return f"the {name} {fault}"
    before, after = _PIECE.findall(source_text), _PIECE.findall(follow_up_text)
    own = _words(pair.source_attribute) | _AGREEING
    others = _words(pair.attribute) | _AGREEING
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            continue
        for word, allowed in (
            *((word, own) for word in before[i:j]),
            *((word, others) for word in after[k:m]),
        ):
            if word.lower() not in allowed:
                return f"source and follow-up differ in '{word}', which is not the attribute"
    return None


def _names(text: str, attribute: str) -> bool:
    form = rf"(?<!\w){re.escape(attribute)}(?!\w)"
    return re.search(form, text, re.IGNORECASE) is not None


def _words(attribute: str) -> frozenset[str]:
    return frozenset(piece.lower() for piece in _PIECE.findall(attribute))
