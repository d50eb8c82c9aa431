"""The linter of written pairs (P4): whether two prompts differ only by the declared attribute."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairgate.domain.cases import Pair
from fairgate.relations.english import CASES, article_fault, holds, pieces

MOST_CHARACTERS = 8_000
"""Longest prompt of a pair: comparing two word by word takes the square of their length."""

_AGREEING = (
    frozenset({"a", "an"}),
    frozenset({"this", "these"}),
    frozenset({"that", "those"}),
    frozenset({"is", "are"}),
    frozenset({"was", "were"}),
    frozenset({"has", "have"}),
    frozenset({"does", "do"}),
    frozenset({"person", "people", "individual", "somebody", "someone"}),
    *CASES,
)
"""Words of one class may stand for one another: number, gender and articles agree in English."""
_BESIDE = frozenset(
    """a an the who whose is are has have with of in from at into
    person people individual somebody someone""".split()  # noqa: SIM905 (reads better so)
)
"""Words that may come or go right beside an attribute: "a deaf man", "a man who is deaf"."""


def pair_fault(source_text: str, follow_up_text: str, pair: Pair) -> str | None:
    """Return why two prompts are no pair of one declared edit; None where they are one.

    Each names its attribute. What else differs is exchanged within a class (a pronoun of the same
    case, a verb of another number), or is an article, a preposition, "who is" or a head noun right
    beside the attribute. Tense, case and punctuation are kept.
    """
    if max(len(source_text), len(follow_up_text)) > MOST_CHARACTERS:
        return f"a prompt of the pair is longer than {MOST_CHARACTERS:,} characters"
    for name, text, attribute in (
        ("source", source_text, pair.source_attribute),
        ("follow-up", follow_up_text, pair.attribute),
    ):
        if attribute and not holds(text, attribute):
            return f"the {name} does not hold its attribute '{attribute}'"
        fault = article_fault(text)
        if fault:
            return f"the {name} {fault}"
    return next(_other_words(source_text, follow_up_text, pair), None)


@dataclass(frozen=True, slots=True)
class _Row:
    """The words and signs of a prompt, and at which places its attribute stands."""

    words: Sequence[str]
    places: frozenset[int]

    def others(self, start: int, end: int) -> list[str]:
        """Return the words of a run that are not the attribute."""
        return [self.words[n] for n in range(start, end) if n not in self.places]

    def touches(self, start: int, end: int) -> bool:
        """Return whether the attribute stands in a run or right beside it."""
        return not self.places.isdisjoint(range(start - 1, end + 1))


def _row(text: str, attribute: str) -> _Row:
    words, parts = pieces(text), pieces(attribute.lower())
    lower = [word.lower() for word in words]
    starts = (n for n in range(len(words)) if parts and lower[n : n + len(parts)] == parts)
    places = (n for start in starts for n in range(start, start + len(parts)))
    return _Row(words, frozenset(places))


def _other_words(source_text: str, follow_up_text: str, pair: Pair) -> Iterator[str]:
    """Yield what differs beside the attributes and does not agree with them, run by run."""
    before = _row(source_text, pair.source_attribute)
    after = _row(follow_up_text, pair.attribute)
    matcher = difflib.SequenceMatcher(None, before.words, after.words, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            continue
        beside = before.touches(i, j) or after.touches(k, m)
        for word in _unmatched(before.others(i, j), after.others(k, m)):
            if not beside or word.lower() not in _BESIDE:
                yield f"source and follow-up differ in '{word}', which is not the attribute"


def _unmatched(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the words of two runs without those that stand for one of the other run."""
    left = list(new)
    gone: list[str] = []
    for word in old:
        twin = next((other for other in left if _agree(word, other)), None)
        if twin is None:
            gone.append(word)
        else:
            left.remove(twin)
    return [*gone, *left]


def _agree(old: str, new: str) -> bool:
    """Return whether two words are of one class, and both or neither begin with a capital."""
    if old[:1].isupper() != new[:1].isupper():
        return False
    return any(old.lower() in group and new.lower() in group for group in _AGREEING)
