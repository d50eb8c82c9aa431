"""Where a text mentions sensitive attributes, found by the words of a catalogue.

A text is read as a row of items: mentions (the longest words of the catalogue that stand there) and
single words and signs between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fairgate.domain.attributes import AttributeValue, Dimension, Manner, Wording
from fairgate.relations.english import negated_clause, pieces, plural_clause

_SENTENCE_END = frozenset('.?!:"\u201c')
_MANY = re.compile(r"men$|women$|people$|children$")


@dataclass(frozen=True, slots=True)
class Token:
    """One word or sign of a text."""

    text: str
    starts: bool
    """Whether a sentence begins with it."""


@dataclass(frozen=True, slots=True)
class Mention:
    """An attribute that a text states."""

    dimension: Dimension
    value: AttributeValue
    manner: Manner
    part: str
    """`M` before or beside a noun, `N` a noun, `C` a clause, `G` a gerund."""
    plural: bool | None
    """Of nouns and clauses: whether they mean several persons."""
    words: str = ""
    """As the text has them."""
    right_case: bool = True

    @property
    def key(self) -> tuple[str, str, Manner]:
        """Return what is said: dimension, value, manner."""
        return self.dimension.id, self.value.id, self.manner


Item = Token | Mention


def tokens(text: str) -> list[Token]:
    """Return the words and signs of a text, in order."""
    found: list[Token] = []
    starts = True
    for sign in pieces(text):
        found.append(Token(sign, starts))
        starts = sign in _SENTENCE_END or (starts and not sign[0].isalnum())
    return found


class Lexicon:
    """The words of a catalogue of attributes, for reading texts."""

    def __init__(self, dimensions: Mapping[str, Dimension]) -> None:
        """Take every wording of every value, denials by rule included."""
        entries: dict[tuple[str, ...], tuple[tuple[str, ...], Mention]] = {}
        for dimension in dimensions.values():
            for value in dimension.values:
                for words, mention in _entries(dimension, value):
                    parts = tuple(token.text for token in tokens(words))
                    entries.setdefault(tuple(part.lower() for part in parts), (parts, mention))
        self._by_first: dict[str, list[tuple[tuple[str, ...], Mention]]] = {}
        for folded in sorted(entries, key=lambda each: (-len(each), each)):
            self._by_first.setdefault(folded[0], []).append(entries[folded])

    def read(self, text: str) -> list[Item]:
        """Return a text as mentions and the words and signs between them."""
        row = tokens(text)
        items: list[Item] = []
        place = 0
        while place < len(row):
            mention = self._at(row, place)
            if mention is None:
                items.append(row[place])
                place += 1
            else:
                items.append(mention[0])
                place += mention[1]
        return items

    def _at(self, row: list[Token], place: int) -> tuple[Mention, int] | None:
        for parts, mention in self._by_first.get(row[place].text.lower(), ()):
            here = row[place : place + len(parts)]
            if len(here) == len(parts) and all(
                token.text.lower() == part.lower() for token, part in zip(here, parts, strict=True)
            ):
                shown = [token.text for token in here]
                right = all(
                    token.text == part
                    or (token.starts and token.text == part[:1].upper() + part[1:])
                    for token, part in zip(here, parts, strict=True)
                )
                found = Mention(
                    mention.dimension,
                    mention.value,
                    mention.manner,
                    mention.part,
                    mention.plural,
                    " ".join(shown),
                    right,
                )
                return found, len(parts)
        return None


def _entries(dimension: Dimension, value: AttributeValue) -> Iterator[tuple[str, Mention]]:
    def mention(manner: Manner, part: str, *, plural: bool | None = None) -> Mention:
        return Mention(dimension, value, manner, part, plural)

    for manner, wording in value.wordings:
        for words, part, plural in _forms(wording):
            yield words, mention(manner, part, plural=plural)
        if manner is Manner.NEGATED:
            continue
        for words, part, plural in _denials(wording):
            yield words, mention(Manner.NEGATED, part, plural=plural)
    for words in value.also:
        is_noun = bool(value.pronoun)
        plural = bool(_MANY.search(words)) if is_noun else None
        yield words, mention(Manner.PLAIN, "N" if is_noun else "M", plural=plural)


def _forms(wording: Wording) -> Iterator[tuple[str, str, bool | None]]:
    if wording.adjective:
        yield wording.adjective, "M", None
        yield f"is {wording.adjective}", "C", False
        yield f"are {wording.adjective}", "C", True
        yield f"being {wording.adjective}", "G", None
    if wording.noun:
        yield wording.noun, "N", False
        yield wording.noun_plural, "N", True
    if wording.clause:
        yield wording.clause, "C", False
        yield wording.clause_plural, "C", True
    if wording.gerund:
        yield wording.gerund, "G", None


def _denials(wording: Wording) -> Iterator[tuple[str, str, bool | None]]:
    clauses = [f"is {wording.adjective}"] if wording.adjective else []
    clauses += [wording.clause] if wording.clause else []
    for clause in clauses:
        denied = negated_clause(clause)
        yield denied, "C", False
        yield plural_clause(denied), "C", True
    if wording.adjective:
        yield f"not being {wording.adjective}", "G", None
    if wording.gerund:
        yield f"not {wording.gerund}", "G", None
