"""Frames: sentences with slots for a person's attributes, and how they become correct English.

A frame is text with slots in braces:

- `{a candidate}`, `{the candidate}`, `{plural candidates}` (capitalised at the beginning of a
  sentence: `{A candidate}`): the person. Adjectives stand before the noun, an occupation in its
  place, clauses after it: "a middle-aged Hispanic engineer who has no children". A gender takes the
  place of "person": "a Hispanic woman".
- `{a candidate's}`: the same as a possessive; it holds no clause.
- `{traits|your background}`: a list of gerunds, else the words after the bar.
- `{they}`, `{them}`, `{their}`, `{theirs}`, `{themselves}`: the pronoun of the person's
  gender; `{wants/want}`: the verb that agrees with it.

Realising is pure: equal frames and attributes give equal text and equal spans.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from fairgate.domain.attributes import AttributeUse, Form, Manner
from fairgate.domain.errors import DataError
from fairgate.domain.wording import quoted
from fairgate.relations.english import FORMS, TITLE, articles_for, pronoun_of_noun

_SLOT = re.compile(r"\{([^{}]*)\}")
_PERSON = re.compile(r"([Aa]n?|[Tt]he|[Pp]lural) ([^\W\d_][\w' -]*)")
_ANYBODY = ("person", "people")
"""Heads that give way to the noun of an adjective that has one: "a man", no "male person"."""
_VERB = re.compile(r"([A-Za-z]?[a-z']+)/([A-Za-z]?[a-z']+)")
SLOT_FORMS = (
    "`{a person}`, `{the person}`, `{plural people}`, `{a person's}`, "
    "`{traits|your background}`, `{they}`, `{them}`, `{their}`, `{theirs}`, `{themselves}`, "
    "`{wants/want}` or `{Is/Are}`"
)


@dataclass(frozen=True, slots=True)
class PersonSlot:
    """Where the person is named."""

    article: str
    """`a`, `the`, or empty for several persons."""
    capital: bool
    head: str
    """The noun where no attribute gives one."""
    possessive: bool

    @property
    def plural(self) -> bool:
        """Return whether the slot names several persons."""
        return not self.article


@dataclass(frozen=True, slots=True)
class TraitsSlot:
    """Where gerunds are listed."""

    fallback: str


@dataclass(frozen=True, slots=True)
class PronounSlot:
    """A pronoun that agrees with the person."""

    kind: str
    capital: bool


@dataclass(frozen=True, slots=True)
class VerbSlot:
    """A verb whose subject is a pronoun slot."""

    singular: str
    plural: str


FramePiece = str | PersonSlot | TraitsSlot | PronounSlot | VerbSlot


@dataclass(frozen=True, slots=True, kw_only=True)
class Realised:
    """A frame as text, and its attributes with their spans, in the order given."""

    text: str
    attributes: tuple[AttributeUse, ...]


@lru_cache(maxsize=1024)
def parse_frame(frame: str) -> tuple[FramePiece, ...]:
    """Return the pieces of a frame. Raises DataError (without a path) for an unknown slot."""
    pieces: list[FramePiece] = []
    end = 0
    for match in _SLOT.finditer(frame):
        pieces += [frame[end : match.start()], _slot(match.group(1))]
        end = match.end()
    pieces.append(frame[end:])
    stray = next((p for p in pieces if isinstance(p, str) and re.search("[{}]", p)), None)
    if stray is not None:
        raise DataError(f"a brace without its partner near {quoted(stray.strip())}; close the slot")
    for kind in (PersonSlot, TraitsSlot):
        if sum(isinstance(piece, kind) for piece in pieces) > 1:
            raise DataError(f"two slots for one person in {quoted(frame)}; expected one of a kind")
    return tuple(piece for piece in pieces if piece)


def _slot(content: str) -> FramePiece:
    traits, _, fallback = content.partition("|")
    if traits == "traits" and fallback.strip():
        return TraitsSlot(fallback)
    if content.lower() in FORMS:
        return PronounSlot(content.lower(), content[0].isupper())
    if (verb := _VERB.fullmatch(content)) is not None:
        return VerbSlot(*verb.groups())
    person = _PERSON.fullmatch(content)
    if person is None:
        raise DataError(f"unknown slot {quoted('{' + content + '}')}; expected {SLOT_FORMS}")
    word, head = person.groups()
    article = {"an": "a", "plural": ""}.get(word.lower(), word.lower())
    possessive = head.endswith(("'s", "s'"))
    bare = re.sub(r"'s$|'$", "", head) if possessive else head
    return PersonSlot(article, word[0].isupper(), bare, possessive)


def realise(frame: str, attributes: Sequence[AttributeUse]) -> Realised | str:
    """Return the frame's text with these attributes, in this order, or why English has none.

    An adjective or noun that has no such form in its manner ("not middle-aged") becomes a clause.
    Raises DataError for a frame that cannot be parsed.
    """
    pieces = parse_frame(frame)
    if (fault := _misplaced(pieces, attributes)) is not None:
        return fault
    pronoun = pronoun_of(frame, attributes)
    text = ""
    spans: dict[int, tuple[int, int]] = {}
    for piece in pieces:
        for words, index in _words(piece, attributes, pronoun):
            if index is not None:
                spans[index] = (len(text), len(text) + len(words))
            text += words
    placed = tuple(
        replace(use, start=spans[n][0], end=spans[n][1]) for n, use in enumerate(attributes)
    )
    return Realised(text=text, attributes=placed)


def pronoun_of(frame: str, attributes: Sequence[AttributeUse]) -> str:
    """Return `she`, `he` or `they`: what a frame calls a person of these attributes."""
    person = next((piece for piece in parse_frame(frame) if isinstance(piece, PersonSlot)), None)
    if person is not None and person.plural:
        return "they"
    pronouns = (
        a.value.pronoun for a in attributes if a.value.pronoun and a.manner != Manner.NEGATED
    )
    return next(pronouns, "") or (person and pronoun_of_noun(person.head)) or "they"


def _misplaced(pieces: Sequence[FramePiece], attributes: Sequence[AttributeUse]) -> str | None:
    """Return the first reason why the pieces cannot hold the attributes."""
    person = next((piece for piece in pieces if isinstance(piece, PersonSlot)), None)
    has_traits = any(isinstance(piece, TraitsSlot) for piece in pieces)
    title = TITLE.search("\0".join(piece for piece in pieces if isinstance(piece, str)))
    gendered = title.group() if title else ""
    if person is not None and pronoun_of_noun(person.head):
        gendered = person.head
    seen: set[str] = set()
    for use in attributes:
        name = use.dimension.id
        if name in seen:
            return f"the attribute {quoted(name)} occurs twice"
        seen.add(name)
        if not (has_traits if use.form is Form.GERUND else person is not None):
            return f"the frame has no slot for {quoted(name)} as {use.form}"
        if _form(use) is None:
            return f"{quoted(f'{name}/{use.value.id}')} cannot be {use.manner} as {use.form}"
        if gendered and use.value.pronoun:
            return f"the frame's {quoted(gendered)} states a gender already"
        if person is not None and person.possessive and _form(use) is Form.CLAUSE:
            return f"a possessive takes no clause, which {quoted(name)} needs"
    if sum(_form(use) is Form.NOUN for use in attributes) > 1:
        return "two attributes need to be the noun"
    return None


def _form(use: AttributeUse) -> Form | None:
    """Return the form that an attribute takes; None where it has none."""
    if use.words():
        return use.form
    falls_back = use.form in (Form.ADJECTIVE, Form.NOUN) and use.words(Form.CLAUSE)
    return Form.CLAUSE if falls_back else None


def _words(
    piece: FramePiece, attributes: Sequence[AttributeUse], pronoun: str
) -> Iterator[tuple[str, int | None]]:
    """Yield words and, where they are an attribute's, its index."""
    match piece:
        case str():
            yield piece, None
        case PronounSlot():
            word = FORMS[piece.kind][pronoun]
            yield (word.capitalize() if piece.capital else word), None
        case VerbSlot():
            yield (piece.plural if pronoun == "they" else piece.singular), None
        case TraitsSlot():
            traits = [(a.words(), n) for n, a in enumerate(attributes) if a.form is Form.GERUND]
            yield from _listed(traits or [(piece.fallback, None)])
        case PersonSlot():
            yield from _person(piece, attributes)


def _person(
    slot: PersonSlot, attributes: Sequence[AttributeUse]
) -> Iterator[tuple[str, int | None]]:
    by_form: dict[Form | None, list[tuple[str, int | None]]] = {}
    for n, use in enumerate(attributes):
        if use.form is not Form.GERUND:
            form = _form(use)
            by_form.setdefault(form, []).append((use.words(form, plural=slot.plural), n))
    noun = by_form.get(Form.NOUN, [(slot.head, None)])
    adjectives = by_form.get(Form.ADJECTIVE, [])
    if noun[0][0] in _ANYBODY:
        heads: list[tuple[str, int | None]] = [
            (use.words(Form.NOUN, plural=slot.plural), n)
            for n, use in enumerate(attributes)
            if _form(use) is Form.ADJECTIVE
        ]
        noun = [head for head in heads if head[0]][:1] or noun
        adjectives = [adjective for adjective in adjectives if adjective[1] != noun[0][1]]
    phrase = [*adjectives, *noun]
    if slot.article:
        first = phrase[0][0].split(" ", 1)[0]
        article = min(articles_for(first)) if slot.article == "a" else slot.article
        yield (article.capitalize() if slot.capital else article) + " ", None
    for n, (words, index) in enumerate(phrase):
        if n:
            yield " ", None
        starts = n == 0 and slot.plural and slot.capital
        yield (words[:1].upper() + words[1:] if starts else words), index
    if slot.possessive:
        yield ("'" if slot.plural and phrase[-1][0].endswith("s") else "'s"), None
    clauses = by_form.get(Form.CLAUSE, [])
    if clauses:
        yield " who ", None
        yield from _listed(clauses)


def _listed(parts: Sequence[tuple[str, int | None]]) -> Iterator[tuple[str, int | None]]:
    for n, part in enumerate(parts):
        if n:
            yield (" and " if n == len(parts) - 1 else ", "), None
        yield part
