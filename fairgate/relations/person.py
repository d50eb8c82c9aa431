"""What GenFair's relations share: edits of a person, their control arm, words for examples.

A person's attributes are edited and said anew in the frame. Source and follow-up are the same frame
with other attributes, so articles, pronouns and verbs agree on both sides; the linter then reads
both texts as they stand.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from fairgate.domain.cases import Source
from fairgate.relations.english import words_of
from fairgate.relations.frames import (
    PersonSlot,
    TraitsSlot,
    Unrealisable,
    VerbSlot,
    parse_frame,
    pronoun_of,
    realise,
)
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.relations.relation import (
    Edit,
    Example,
    FollowUp,
    NotApplicable,
    SameLabel,
    edit_fault,
)

NO_ATTRIBUTES = (
    "the source does not say which attributes it states (`frame`, `attributes`); make sources with "
    "`fairgate generate`"
)
ONE_ATTRIBUTE = "the source states one attribute; the relation needs two"
NEUTRAL = "neutral"
"""Category of the control arm: traits that carry no demographic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
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

    They carry no demographic and are the control arm: what a trait of any kind does to an answer is
    what an edit of a demographic one is compared with.
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


class PersonRelation(SameLabel):
    """A relation whose follow-ups say other attributes in the frame of their source."""

    source_variant: ClassVar[str] = "text"
    fewest: ClassVar[int] = 1
    """Attributes that a source must state."""
    most_controls: ClassVar[int] = len(NEUTRAL_TRAITS)
    nothing: ClassVar[str] = "no attribute of the source can be changed in this way"

    @abstractmethod
    def changes(self, source: Source) -> Iterable[Change]:
        """Return the follow-ups as attributes, in a fixed order."""

    def controls(self, source: Source) -> Iterable[Change]:
        """Return edits of the same place that carry no demographic: one neutral trait more."""
        return [
            Change(
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
        found = [_follow_up(source, change) for change in self.changes(source)]
        possible = [each for each in found if not each.inapplicable]
        if not possible:
            reasons = (each.inapplicable for each in found)
            return NotApplicable(reason=next(reasons, self.nothing))
        if any(group.control for group in sets):
            neutral = (_follow_up(source, change) for change in self.controls(source))
            found += [each for each in neutral if not each.inapplicable]
        return found

    def most_follow_ups(self, source: Source, sets: Sequence[PerturbationSet]) -> int:
        """Return how many changes and controls a source of so many attributes has at most."""
        controls = self.most_controls if any(group.control for group in sets) else 0
        return self.most_changes(len(source.attributes)) + controls

    def most_changes(self, stated: int) -> int:
        """Return how many changes there are at most where so many attributes are stated."""
        return stated

    def fault(self, source_text: str, follow_up: FollowUp) -> str | None:
        """Reject a follow-up that differs in more than the attributes it changes (SPEC 7)."""
        if follow_up.edit is None:
            return NO_ATTRIBUTES
        return edit_fault(source_text, follow_up.text, follow_up.edit)


def _follow_up(source: Source, change: Change) -> FollowUp:
    result = realise(change.frame or source.frame, change.uses)
    named = FollowUp(
        variant=change.variant,
        category=change.category,
        term=change.term,
        text=source.text,
        control=change.control,
        parts=change.parts,
    )
    if isinstance(result, Unrealisable):
        return replace(named, inapplicable=result.reason)
    clash = contradiction(change.uses)
    if clash is not None:
        return replace(named, inapplicable=f"nobody is both {clash[0]} and {clash[1]}")
    if result.text == source.text:
        return replace(named, inapplicable="the change gives the source's own text")
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
        untouched=" ".join(each for each in parse_frame(source.frame) if isinstance(each, str)),
    )
    return replace(named, text=result.text, edit=edit)


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


def one_by_one(
    source: Source, changed: Callable[[int, AttributeUse], tuple[AttributeUse, ...]]
) -> Iterator[Change]:
    """Yield a change for each attribute of a source; `changed` returns the attributes after it."""
    for place, use in enumerate(source.attributes):
        name, value = use.dimension.id, use.value.id
        yield Change(variant=f"{name}/{value}", uses=changed(place, use), category=name, term=value)


def without(uses: Sequence[AttributeUse], place: int) -> tuple[AttributeUse, ...]:
    """Return all attributes but the one at a place."""
    return (*uses[:place], *uses[place + 1 :])


def replaced(
    uses: Sequence[AttributeUse], place: int, use: AttributeUse
) -> tuple[AttributeUse, ...]:
    """Return the attributes with another one at a place."""
    return (*uses[:place], use, *uses[place + 1 :])


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
    rest = [each for each in source.attributes if each.dimension.id != use.dimension.id]
    worded = (_with_value(use, value) for value in others)
    usable = [each for each in worded if each and contradiction((*rest, each)) is None]
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


def _value(
    name: str, *, opposite: str = "", pronoun: str = "", noun: bool = False, head: str = ""
) -> AttributeValue:
    """Return a value; `head` is the noun of an adjective that has one beside."""
    article = "an" if name[0] in "aeiou" else "a"
    wording = f"works as {article} {name}" if noun else f"is {name}"
    many = f"work as {name}s" if noun else f"are {name}"
    denied = f"is not {article} {name}" if noun else f"is not {name}"
    plain = Wording(
        adjective="" if noun else name,
        noun=name if noun else head,
        noun_plural=f"{name}s" if noun else "",
        clause=wording,
        clause_plural=many,
    )
    return AttributeValue(
        id=name,
        partition=name,
        wordings=((Manner.PLAIN, plain), (Manner.NEGATED, Wording(clause=denied))),
        opposite=opposite,
        pronoun=pronoun,
    )


AGE = Dimension(
    id="age", values=(_value("young", opposite="elderly"), _value("elderly", opposite="young"))
)
GENDER = Dimension(
    id="gender",
    values=(
        _value("female", opposite="male", pronoun="she", head="woman"),
        _value("male", opposite="female", pronoun="he", head="man"),
    ),
)
OCCUPATION = Dimension(
    id="occupation", values=(_value("engineer", noun=True), _value("artist", noun=True))
)
YOUNG = AttributeUse(dimension=AGE, value=AGE.values[0], form=Form.ADJECTIVE)
FEMALE = AttributeUse(dimension=GENDER, value=GENDER.values[0], form=Form.ADJECTIVE)
ENGINEER = AttributeUse(dimension=OCCUPATION, value=OCCUPATION.values[0], form=Form.NOUN)
FRAME = "{A person} is praised for {their} work."


def example(*follow_ups: str, uses: tuple[AttributeUse, ...] = (YOUNG, FEMALE)) -> Example:
    """Return an example about a person with these attributes."""
    stated = source(*uses)
    return Example(
        text=stated.text,
        sets=(),
        source=stated.text,
        follow_ups=follow_ups,
        frame=stated.frame,
        attributes=stated.attributes,
    )


def source(*uses: AttributeUse, frame: str = FRAME) -> Source:
    """Return a source that states attributes in a frame which has room for them."""
    found = realise(frame, uses)
    assert not hasattr(found, "reason"), found  # noqa: S101 (an example of our own)
    return Source(id="s1", text=found.text, frame=frame, attributes=found.attributes)
