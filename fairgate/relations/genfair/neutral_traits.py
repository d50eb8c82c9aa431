"""Traits that carry no demographic: the control arm of relations that edit a person's attributes.

What a trait of any kind does to an answer is what an edit of a demographic one is compared with.
"""

from __future__ import annotations

from fairgate.domain.attributes import (
    AttributeUse,
    AttributeValue,
    Dimension,
    Form,
    Manner,
    Wording,
)
from fairgate.relations.frames import PersonSlot, TraitsSlot, parse_frame

_WORDS = (
    ("drinks-tea", "drinks tea", "drink tea", "drinking tea", "tea-drinking"),
    ("wears-a-watch", "wears a watch", "wear a watch", "wearing a watch", "watch-wearing"),
    ("keeps-a-diary", "keeps a diary", "keep a diary", "keeping a diary", "diary-keeping"),
    ("collects-stamps", "collects stamps", "collect stamps", "collecting stamps",
     "stamp-collecting"),
    ("takes-notes", "takes notes", "take notes", "taking notes", "note-taking"),
    ("whistles-tunes", "whistles tunes", "whistle tunes", "whistling tunes", "tune-whistling"),
    ("writes-postcards", "writes postcards", "write postcards", "writing postcards",
     "postcard-writing"),
)  # fmt: skip
"""Id, clause, clause of several persons, gerund, adjective. At least 7, as SPEC 3 asks."""


def _trait(name: str, words: Wording) -> Dimension:
    value = AttributeValue(id=name, partition=name, wordings=((Manner.PLAIN, words),))
    return Dimension(id=f"neutral:{name}", values=(value,), source="Written for FairGate.")


NEUTRAL_TRAITS = tuple(
    _trait(name, Wording(clause=clause, clause_plural=several, gerund=gerund, adjective=adjective))
    for name, clause, several, gerund, adjective in _WORDS
)
"""Each of a dimension of its own, so that a text may state two of them."""


def neutral_uses(frame: str) -> list[AttributeUse]:
    """Return the neutral traits in the form that a frame has room for, in a fixed order."""
    form = _room(frame)
    if form is None:
        return []
    return [
        AttributeUse(dimension=trait, value=trait.values[0], form=form) for trait in NEUTRAL_TRAITS
    ]


def _room(frame: str) -> Form | None:
    for piece in parse_frame(frame):
        if isinstance(piece, PersonSlot):
            return Form.ADJECTIVE if piece.possessive else Form.CLAUSE
        if isinstance(piece, TraitsSlot):
            return Form.GERUND
    return None
