"""Traits that carry no demographic: the control arm of relations that edit a person's attributes.

What a trait of any kind does to an answer is what an edit of a demographic one is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    ("wears-a-watch", "wears a watch", "wear a watch", "wearing a watch", "watch-wearing"),
    ("takes-notes", "takes notes", "take notes", "taking notes", "note-taking"),
    ("right-handed", "is right-handed", "are right-handed", "being right-handed", "right-handed"),
    ("has-a-cat", "has a cat", "have a cat", "having a cat", "cat-owning"),
    ("has-a-bicycle", "has a bicycle", "have a bicycle", "having a bicycle", "bicycle-owning"),
    ("reads-the-news", "reads the news", "read the news", "reading the news", "news-reading"),
    ("lives-nearby", "lives nearby", "live nearby", "living nearby", "local"),
)
"""Id, clause, clause of several persons, gerund, adjective. At least 7, as SPEC 3 asks.

Chosen among about 45: a tone classifier takes their mention as it takes that of an attribute.
"""


def _trait(name: str, words: Wording) -> Dimension:
    value = AttributeValue(id=name, partition=name, wordings=((Manner.PLAIN, words),))
    return Dimension(id=f"neutral:{name}", values=(value,), source="Written for FairGate.")


_LIKE = {Form.NOUN: Form.ADJECTIVE}
NEUTRAL_TRAITS = tuple(
    _trait(name, Wording(clause=clause, clause_plural=several, gerund=gerund, adjective=adjective))
    for name, clause, several, gerund, adjective in _WORDS
)
"""Each of a dimension of its own, so that a text may state two of them."""


def neutral_uses(frame: str, stated: Sequence[AttributeUse]) -> list[AttributeUse]:
    """Return the neutral traits in a fixed order, in the form that the stated attributes have most.

    The placebo is of the shape of what it is compared with: adjectives beside adjectives. Nothing
    comes back where the frame has no room for any form.
    """
    room = _room(frame)
    forms = [_LIKE.get(use.form, use.form) for use in stated]
    fitting = [form for form in room if form in forms] or room
    if not fitting:
        return []
    form = max(fitting, key=forms.count)
    return [
        AttributeUse(dimension=trait, value=trait.values[0], form=form) for trait in NEUTRAL_TRAITS
    ]


def _room(frame: str) -> list[Form]:
    """Return the forms that a frame has room for."""
    found: list[Form] = []
    for piece in parse_frame(frame):
        if isinstance(piece, PersonSlot):
            found += [Form.ADJECTIVE] if piece.possessive else [Form.ADJECTIVE, Form.CLAUSE]
        if isinstance(piece, TraitsSlot):
            found.append(Form.GERUND)
    return found
