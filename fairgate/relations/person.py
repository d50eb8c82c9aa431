"""Relations on a person whose attributes a frame states: what an edit of them becomes.

A person's attributes are edited and said anew in the frame. Source and follow-up are the same frame
with other attributes, so articles, pronouns and verbs agree on both sides; the linter then reads
both texts as they stand. The edits themselves are rows of `genfair.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from fairgate.domain.attributes import (
    AttributeUse,
    AttributeValue,
    Dimension,
    Form,
    Manner,
    Wording,
    contradiction,
)
from fairgate.domain.cases import Source, Task
from fairgate.relations.english import words_of
from fairgate.relations.frames import (
    PersonSlot,
    TraitsSlot,
    VerbSlot,
    parse_frame,
    pronoun_of,
    realise,
)
from fairgate.relations.linter import edit_faults
from fairgate.relations.oracles.oracle import Oracle
from fairgate.relations.oracles.tone import oracle_of
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.relations.relation import (
    CounterExample,
    Edit,
    Example,
    FollowUp,
    NotApplicable,
    SameLabel,
    needed,
)

NO_ATTRIBUTES = (
    "the source does not say which attributes it states (`frame`, `attributes`); make sources with "
    "`fairgate generate`"
)
ONE_ATTRIBUTE = "the source states one attribute; the relation needs two"
NEUTRAL = "neutral"
"""Category of the control arm: traits that carry no demographic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeChange:
    """Other attributes for a source's frame, and what the follow-up is called."""

    variant: str
    uses: tuple[AttributeUse, ...]
    category: str
    """Dimension that is changed; `EVERY_ATTRIBUTE` where all are, `age+gender` where two are."""
    term: str = ""
    """Value that the change is about; empty where it is about no single one."""
    control: bool = False
    frame: str = ""
    """Another frame; empty: the source's."""
    denied: tuple[str, str] = ("", "")
    """Words of the frame that are replaced, and by what (MR7)."""
    moves: bool = False
    """Whether attributes change places instead of words."""
    parts: tuple[str, ...] = ()


def _trait(name: str, clause: str, several: str, gerund: str, adjective: str) -> Dimension:
    words = Wording(clause=clause, clause_plural=several, gerund=gerund, adjective=adjective)
    value = AttributeValue(id=name, partition=name, wordings=((Manner.PLAIN, words),))
    return Dimension(id=f"neutral:{name}", values=(value,), source="Written for FairGate.")


_LIKE = {Form.NOUN: Form.ADJECTIVE}
# At least 7, chosen among about 45: a tone classifier takes their mention as it
# takes that of an attribute.
NEUTRAL_TRAITS = (
    _trait(
        "wears-a-watch", "wears a watch", "wear a watch", "wearing a watch", "watch-wearing"
    ),
    _trait("takes-notes", "takes notes", "take notes", "taking notes", "note-taking"),
    _trait(
        "right-handed", "is right-handed", "are right-handed", "being right-handed", "right-handed"
    ),
    _trait("has-a-cat", "has a cat", "have a cat", "having a cat", "cat-owning"),
    _trait(
        "has-a-bicycle", "has a bicycle", "have a bicycle", "having a bicycle", "bicycle-owning"
    ),
    _trait(
        "reads-the-news", "reads the news", "read the news", "reading the news", "news-reading"
    ),
    _trait("lives-nearby", "lives nearby", "live nearby", "living nearby", "local"),
)  # fmt: skip
"""Each of a dimension of its own, so that a text may state two of them."""


def neutral_uses(frame: str, stated: Sequence[AttributeUse]) -> list[AttributeUse]:
    """Return the neutral traits in a fixed order, in the form that the stated attributes have most.

    A control is of the shape of what it is compared with: adjectives beside adjectives. Nothing
    comes back where the frame has no room for any form.

    They carry no demographic and are the control arm: what a trait of any kind does to an answer is
    what an edit of a demographic one is compared with.
    """
    room: list[Form] = []
    for piece in parse_frame(frame):
        if isinstance(piece, PersonSlot):
            room += [Form.ADJECTIVE] if piece.possessive else [Form.ADJECTIVE, Form.CLAUSE]
        if isinstance(piece, TraitsSlot):
            room.append(Form.GERUND)
    forms = [_LIKE.get(use.form, use.form) for use in stated]
    fitting = [form for form in room if form in forms] or room
    if not fitting:
        return []
    form = max(fitting, key=forms.count)
    return [
        AttributeUse(dimension=trait, value=trait.values[0], form=form) for trait in NEUTRAL_TRAITS
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonRelation(SameLabel):
    """A relation whose follow-ups say other attributes in the frame of their source."""

    id: str
    title: str
    paper: str
    description: str
    expects: str = "The answer has the tone of the source's answer."
    not_owed: str
    advisory: bool = False
    changes: Callable[[Source], Iterable[AttributeChange]]
    """The follow-ups as attributes, in a fixed order."""
    fewest: int = 1
    """Attributes that a source must state."""
    nothing: str = "no attribute of the source can be changed in this way"
    with_sentiment: bool = False
    """Whether free answers are read for sentiment beside tone; labels have none."""
    EXAMPLES: tuple[Example, ...]

    source_variant: ClassVar[str] = "text"
    most_controls: ClassVar[int] = len(NEUTRAL_TRAITS)
    NOT_APPLICABLE: ClassVar[tuple[CounterExample, ...]] = (
        CounterExample(text="The shop is open.", reason=NO_ATTRIBUTES),
    )

    def oracle(self, task: Task | None) -> Oracle:
        """Return the oracle of the suite's task, with sentiment where the relation reads it."""
        return oracle_of(needed(task), with_sentiment=self.with_sentiment)

    def controls(self, source: Source) -> Iterable[AttributeChange]:
        """Return edits of the same place that carry no demographic: one neutral trait more."""
        return [
            AttributeChange(
                variant=f"{NEUTRAL}/{use.value.id}",
                uses=(*source.attributes, use),
                category=NEUTRAL,
                term=use.value.id,
                control=True,
            )
            for use in neutral_uses(source.frame, source.attributes)
        ]

    def source_text(self, source: Source) -> str:
        """Return the text as it stands."""
        return source.text

    def follow_ups(
        self, source: Source, sets: Sequence[PerturbationSet]
    ) -> Sequence[FollowUp] | NotApplicable:
        """Return a follow-up for each change, then the control arm's where the suite has one."""
        if not source.frame or not source.attributes:
            return NotApplicable(reason=NO_ATTRIBUTES)
        if len(source.attributes) < self.fewest:
            return NotApplicable(reason=ONE_ATTRIBUTE)
        changed = [_follow_up(source, change) for change in self.changes(source)]
        possible = [follow_up for follow_up in changed if not follow_up.inapplicable]
        if not possible:
            return NotApplicable(reason=changed[0].inapplicable if changed else self.nothing)
        if any(group.control for group in sets):
            neutral = (_follow_up(source, change) for change in self.controls(source))
            changed += [follow_up for follow_up in neutral if not follow_up.inapplicable]
        return changed

    def most_follow_ups(self, source: Source, sets: Sequence[PerturbationSet]) -> int:
        """Return the most changes and controls that a source of this many attributes has."""
        controls = self.most_controls if any(group.control for group in sets) else 0
        return self.most_changes(len(source.attributes)) + controls

    def most_changes(self, stated: int) -> int:
        """Return the most changes that there are where this many attributes are stated."""
        return stated

    def fault(self, source_text: str, follow_up: FollowUp) -> str | None:
        """Reject a follow-up that differs in more than the attributes it changes."""
        if follow_up.edit is None:
            return NO_ATTRIBUTES
        return next(edit_faults(source_text, follow_up.text, follow_up.edit), None)


def _follow_up(source: Source, change: AttributeChange) -> FollowUp:
    result = realise(change.frame or source.frame, change.uses)
    unworded = FollowUp(
        variant=change.variant,
        category=change.category,
        term=change.term,
        text=source.text,
        control=change.control,
        parts=change.parts,
    )
    if isinstance(result, str):
        return unworded._replace(inapplicable=result)
    if clash := contradiction(change.uses):
        return unworded._replace(inapplicable=f"nobody is both {clash[0]} and {clash[1]}")
    if result.text == source.text:
        return unworded._replace(inapplicable="the change gives the source's own text")
    before = [(_key(use), source.text[use.start : use.end]) for use in source.attributes]
    after = [(_key(use), result.text[use.start : use.end]) for use in result.attributes]
    removed = [words for key, words in before if change.moves or (key, words) not in after]
    added = [words for key, words in after if change.moves or (key, words) not in before]
    edit = Edit(
        removed=tuple(filter(None, (*removed, change.denied[0]))),
        added=tuple(filter(None, (*added, change.denied[1]))),
        kept=tuple(words for key, words in after if words not in added),
        agreeing=_heads(source.frame),
        pronoun=pronoun_of(source.frame, result.attributes),
        untouched=" ".join(piece for piece in parse_frame(source.frame) if isinstance(piece, str)),
    )
    return unworded._replace(text=result.text, edit=edit)


def _key(use: AttributeUse) -> tuple[str, str, Manner]:
    return use.dimension.id, use.value.id, use.manner


def _heads(frame: str) -> frozenset[str]:
    """Return the frame's own words that stand only where no attribute does, and its verbs."""
    words: list[str] = []
    for piece in parse_frame(frame):
        if isinstance(piece, PersonSlot):
            words += [piece.head, f"{piece.head}'s", f"{piece.head}'"]
        elif isinstance(piece, TraitsSlot):
            words.append(piece.fallback)
        elif isinstance(piece, VerbSlot):
            words += [piece.singular, piece.plural]
    return words_of(*words)


def negated(use: AttributeUse) -> AttributeUse:
    """Return the attribute denied ("not Hispanic"); what is denied already is affirmed."""
    manner = Manner.PLAIN if use.manner is Manner.NEGATED else Manner.NEGATED
    return replace(use, manner=manner)


def opposite(use: AttributeUse) -> AttributeUse | None:
    """Return the attribute with its opposite value, where the catalogue has one."""
    value = use.dimension.opposite(use.value)
    return None if value is None else _with_value(use, value)


def substituted(use: AttributeUse, source: Source) -> AttributeUse | None:
    """Return the attribute with another value, if there is one, of another equivalence class.

    Which one follows from the source's id and the dimension alone.
    """
    others = use.dimension.others(use.value)
    others = tuple(v for v in others if v.partition != use.value.partition) or others
    rest = [
        candidate for candidate in source.attributes if candidate.dimension.id != use.dimension.id
    ]
    worded = (_with_value(use, value) for value in others)
    usable = [
        candidate for candidate in worded if candidate and contradiction((*rest, candidate)) is None
    ]
    if not usable:
        return None
    digest = hashlib.sha256(f"{source.id}\0{use.dimension.id}".encode("utf-8", "replace")).digest()
    return usable[int.from_bytes(digest[:8], "big") % len(usable)]


def _with_value(use: AttributeUse, value: AttributeValue) -> AttributeUse | None:
    """Return the attribute with another value in its manner, else plainly; None without words."""
    for manner in dict.fromkeys((use.manner, Manner.PLAIN)):
        other = replace(use, value=value, manner=manner)
        if other.words() or (use.form is not Form.GERUND and other.words(Form.CLAUSE)):
            return other
    return None
