"""What an edit of a text takes away and adds, and whether two texts differ by that edit alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from fairgate.relations.english import PRONOUNS, holds, new_english_fault, pieces, words_of

_SURPLUS = re.compile(r"\s{2,}|\s[,.;:?!]")
_AGREEING = frozenset({"a", "an", "the", "who", ",", "and", *PRONOUNS})
"""Words that may change beside what is edited, because they must agree with it in English."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The words that a follow-up takes from its source's text and those that it adds."""

    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Further attributes, which may stand elsewhere: an adjective that is denied is a clause."""
    agreeing: frozenset[str] = frozenset()
    """Further words, lower case, that agree with what is edited: both forms of a verb, say."""
    pronoun: str = ""
    """`she`, `he` or `they`, as the follow-up's person wants; empty where it is not known."""
    untouched: str = ""
    """The words around what can be edited: pronouns in them are somebody else's."""


def edit_fault(source_text: str, text: str, edit: Edit) -> str | None:
    """Return how two texts differ otherwise than by the edit; None where it is the only one.

    What is removed must stand in the source, what is added in the follow-up; every other word that
    differs must be one that agrees with them. Attributes may move, the words around them keep their
    order. The first letter's case is kept, and the English of articles and blanks is looked at.
    """
    return next(_faults(source_text, text, edit), None)


def _faults(source_text: str, text: str, edit: Edit) -> Iterator[str]:
    for phrase in edit.removed:
        if not holds(source_text, phrase):
            yield f"the source does not say '{phrase}', which the follow-up leaves out"
    for phrase in (*edit.added, *edit.kept):
        if not holds(text, phrase):
            yield f"the follow-up does not say '{phrase}'"
    if " ".join(source_text.split()) == " ".join(text.split()):
        yield "the text is the same as that of the source"
    if source_text[:1].islower() != text[:1].islower():
        yield "the first letter is not in the source's case"
    if _SURPLUS.search(text):
        yield "there is a surplus blank"
    english = new_english_fault(source_text, text)
    if english:
        yield f"the follow-up {english}"
    yield from _wrong_pronouns(text, edit)
    yield from _other_words(source_text, text, edit)


def _wrong_pronouns(text: str, edit: Edit) -> Iterator[str]:
    """Yield pronouns of another gender than the person's; "they" may mean others."""
    if not edit.pronoun:
        return
    said, of_others = (Counter(pieces(each.lower())) for each in (text, edit.untouched))
    for form in sorted((said - of_others).keys() & PRONOUNS.keys()):
        if PRONOUNS[form] not in {edit.pronoun, "they"}:
            yield f"the follow-up says '{form}' of a person who is '{edit.pronoun}'"


def _other_words(source_text: str, text: str, edit: Edit) -> Iterator[str]:
    before, after = (pieces(each.lower()) for each in (source_text, text))
    agreeing = _AGREEING | edit.agreeing
    for word in Counter(before) - Counter(after):
        if word not in words_of(*edit.removed) | agreeing:
            yield f"the source's word '{word}' is gone, which is not the attribute"
    for word in Counter(after) - Counter(before):
        if word not in words_of(*edit.added) | agreeing:
            yield f"the word '{word}' is added, which is not the attribute"
    movable = words_of(*edit.removed, *edit.added, *edit.kept) | agreeing
    frames = ([word for word in row if word not in movable] for row in (before, after))
    if next(frames) != next(frames):
        yield "the words around the attributes stand in another order"
