"""Which attributes a text mentions, by the words of a catalogue, and how edits change them.

A text is read as a row of items: mentions (the longest words of the catalogue that stand there) and
single words and signs between them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

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


class EditKind(StrEnum):
    """How a follow-up is made of its source: GenFair's MR1 to MR8, in order (P3 section V-B2)."""

    REMOVE_ONE = "remove-one"
    REMOVE_ALL = "remove-all"
    NEGATE_ONE = "negate-one"
    NEGATE_ALL = "negate-all"
    SUBSTITUTE_ALL = "substitute-all"
    SUBSTITUTE_ONE = "substitute-one"
    COUNTERFACTUAL = "counterfactual"
    PERMUTE = "permute"


def edit_kind(name: str) -> EditKind | None:
    """Return the kind that a name means: `remove-one`, or `genfair/mr1-removal-one` for it."""
    number = re.fullmatch(r"genfair/mr([1-8])(?:-[a-z0-9-]+)?", name)
    if number is not None:
        return tuple(EditKind)[int(number.group(1)) - 1]
    return EditKind(name) if name in set(EditKind) else None


_Mentions = Sequence[Mention]


def mention_fault(
    kind: EditKind, before: Sequence[Mention], after: Sequence[Mention]
) -> str | None:
    """Return how the mentions of two texts differ otherwise than the edit allows."""
    if not before:
        return "the source mentions no attribute that could be edited"
    removed = _difference(before, after)
    added = _difference(after, before)
    if len(removed) == len(added) or not added:  # one edit in several places is one
        removed, added = _distinct(removed), _distinct(added)
    return _RULES[kind](removed, added, before, after)


def _distinct(mentions: _Mentions) -> list[Mention]:
    return list({mention.key: mention for mention in reversed(mentions)}.values())[::-1]


def _difference(one: Sequence[Mention], other: Sequence[Mention]) -> list[Mention]:
    left = Counter(mention.key for mention in other)
    found = []
    for mention in one:
        if left[mention.key]:
            left[mention.key] -= 1
        else:
            found.append(mention)
    return found


def _remove_one(removed: _Mentions, added: _Mentions, *_: _Mentions) -> str | None:
    if added:
        return f"'{added[0].words}' is added where an attribute is to be removed"
    if len(removed) != 1:
        return f"{len(removed)} attributes are removed, not one"
    return None


def _remove_all(
    removed: _Mentions, added: _Mentions, before: _Mentions, after: _Mentions
) -> str | None:
    del removed, added, before
    return f"'{after[0].words}' is still there" if after else None


def _negate_one(removed: _Mentions, added: _Mentions, *_: _Mentions) -> str | None:
    if len(removed) != 1 or len(added) != 1:
        return f"{len(removed)} attributes are taken away and {len(added)} added, not one denied"
    if not _denies(removed[0], added[0]):
        return f"'{added[0].words}' does not deny '{removed[0].words}'"
    return None


def _denies(old: Mention, new: Mention) -> bool:
    if old.dimension.id != new.dimension.id:
        return False
    if old.value.id == new.value.id:
        return (old.manner is Manner.NEGATED) != (new.manner is Manner.NEGATED)
    return new.value.id == old.value.opposite and new.manner is old.manner


def _negate_all(
    removed: _Mentions, added: _Mentions, before: _Mentions, after: _Mentions
) -> str | None:
    del removed, added
    stated = {mention.dimension.id: mention for mention in after}
    for old in before:
        new = stated.get(old.dimension.id)
        if new is None:
            return f"'{old.words}' is left out, not denied"
        if new.key == old.key:
            return f"'{old.words}' is not denied"
    return None if len(after) == len(before) else "an attribute is added"


def _substitute_one(removed: _Mentions, added: _Mentions, *rows: _Mentions) -> str | None:
    if len(removed) != 1 or len(added) != 1:
        return f"{len(removed)} attributes are taken away and {len(added)} added, not one replaced"
    was, now = ([mention.key for mention in row] for row in rows)
    if (added[0].key, removed[0].key) in zip(was, now, strict=False):
        return f"'{added[0].words}' becomes '{removed[0].words}' as well as the other way"
    return _replaces(removed[0], added[0])


def _replaces(old: Mention, new: Mention) -> str | None:
    if old.dimension.id != new.dimension.id:
        return f"'{old.words}' ({old.dimension.id}) becomes '{new.words}' ({new.dimension.id})"
    if old.value.id == new.value.id:
        return f"'{new.words}' says the same attribute as '{old.words}'"
    if (old.manner is Manner.NEGATED) != (new.manner is Manner.NEGATED):
        return f"'{new.words}' denies where '{old.words}' is to be replaced"
    if old.plural is not None and new.plural is not None and old.plural != new.plural:
        return f"'{old.words}' becomes '{new.words}': the number disagrees"
    return None


def _substitute_all(
    removed: _Mentions, added: _Mentions, before: _Mentions, after: _Mentions
) -> str | None:
    del removed, added
    stated = {mention.dimension.id: mention for mention in after}
    if len(after) != len(before):
        return f"the source mentions {len(before)} attributes, the follow-up {len(after)}"
    for old in before:
        new = stated.get(old.dimension.id)
        if new is None:
            return f"'{old.words}' is left out, not replaced"
        if fault := _replaces(old, new):
            return fault
    return None


def _counterfactual(removed: _Mentions, added: _Mentions, *rows: _Mentions) -> str | None:
    if not removed and not added:
        return None
    return _substitute_one(removed, added, *rows)


def _permute(
    removed: _Mentions, added: _Mentions, before: _Mentions, after: _Mentions
) -> str | None:
    if removed:
        return f"'{removed[0].words}' is lost"
    if added:
        return f"'{added[0].words}' is added"
    same = [mention.key for mention in before] == [mention.key for mention in after]
    return "the attributes stand in the same order" if same else None


_RULES: Mapping[EditKind, Callable[[_Mentions, _Mentions, _Mentions, _Mentions], str | None]] = {
    EditKind.REMOVE_ONE: _remove_one,
    EditKind.REMOVE_ALL: _remove_all,
    EditKind.NEGATE_ONE: _negate_one,
    EditKind.NEGATE_ALL: _negate_all,
    EditKind.SUBSTITUTE_ALL: _substitute_all,
    EditKind.SUBSTITUTE_ONE: _substitute_one,
    EditKind.COUNTERFACTUAL: _counterfactual,
    EditKind.PERMUTE: _permute,
}
