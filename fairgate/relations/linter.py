"""The perturbation linter: a follow-up differs from its source only as its relation declares.

What fails is not executed and counts as `invalid` with the reason. Rules about a noun
phrase are judged once per set, rules about a text once per follow-up: it is its source with
other attributes (`edit_faults`), or a prompt that was written beside it (`pair_fault`); or what its
relation says itself.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from fairgate.domain.cases import Pair
from fairgate.relations.english import (
    CASES,
    PRONOUNS,
    TITLE,
    article_fault,
    holds,
    new_english_fault,
    pieces,
    words_of,
)
from fairgate.relations.perturbation_sets import PerturbationSet, Term
from fairgate.relations.relation import Edit, FollowUp

MAX_PHRASE = 80
"""Longest noun phrase in characters: a phrase only names a speaker."""
MOST_CHARACTERS = 8_000
"""Longest prompt of a pair: comparing two word by word takes the square of their length."""

_EMPTY_WORDS = frozenset({"a", "an", "the", "of", "and", "or", "person", "people", "with", "in"})
_SURPLUS = re.compile(r"\s{2,}|\s[,.;:?!]")
_AGREEING = frozenset({"a", "an", "the", "who", ",", "and", *PRONOUNS})
"""Words that may change beside what is edited, because they must agree with it in English."""
_CLASSES = (
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


class Linter:
    """Judges follow-ups of one relation and one choice of sets."""

    def __init__(
        self, fault: Callable[[str, FollowUp], str | None], sets: Sequence[PerturbationSet]
    ) -> None:
        """Judge every noun phrase of the sets; `fault` is the relation's own rule about texts."""
        self._fault = fault
        demographic: dict[str, str] = {}
        """Every word of a demographic term, with the term."""
        for group in sets:
            for term in () if group.control else group.terms:
                for word in pieces(term.term.lower()):
                    if word[0].isalnum() and word not in _EMPTY_WORDS:
                        demographic.setdefault(word, f"{group.id}/{term.term}")
        self._phrases = {
            (group.id, term.term): {
                phrase: next(
                    _phrase_faults(term, phrase, demographic if group.control else {}), None
                )
                for phrase in term.phrases
            }
            for group in sets
            for term in group.terms
        }

    def rejections(self, source_text: str, follow_ups: Sequence[FollowUp]) -> list[str | None]:
        """Return for each follow-up the reason why it is invalid, or None where it is valid.

        Of several follow-ups with the same key or wording the first is valid, and none that says
        what the source does; wordings that differ in case or blanks alone are the same. Terms that
        are in no perturbation set have no noun phrase of a set: the relation's own rule decides on
        them.
        """
        variants: set[str] = set()
        texts: dict[str, str] = {_folded(source_text): "the source"}
        reasons: list[str | None] = []
        for follow_up in follow_ups:
            of_term = self._phrases.get((follow_up.category, follow_up.term), {"": None})
            reason = of_term.get(follow_up.noun_phrase, next(iter(of_term.values())))
            reason = reason or self._fault(source_text, follow_up)
            if reason is None and follow_up.variant in variants:
                reason = "the same term occurs twice in its set"
            folded = _folded(follow_up.conversation)
            if reason is None and folded in texts:
                reason = f"the text is the same as that of {texts[folded]}"
            if reason is None:
                variants.add(follow_up.variant)
                texts[folded] = follow_up.variant
            reasons.append(reason)
        return reasons


def _phrase_faults(term: Term, phrase: str, demographic: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with a noun phrase; a control shares no word with a demographic term."""
    if not phrase.strip():
        yield "the noun phrase is empty"
    if len(phrase) > MAX_PHRASE:
        yield f"the noun phrase is longer than {MAX_PHRASE} characters"
    if not phrase.isprintable():
        yield "the noun phrase holds a line end or another character that is not printed"
    if any(mark in phrase for mark in '"\u201c\u201d'):
        yield "the noun phrase holds a double quote, which would end the quoted text"
    if phrase != " ".join(phrase.split()):
        yield "the noun phrase has surplus blanks"
    if not (phrase[:1].isupper() or phrase[:1].isdigit()):
        yield "the noun phrase does not begin with a capital letter"
    if not (term.note or phrase in term.also or holds(phrase, term.term)):
        yield "the noun phrase does not name its term; add a `note` if that is intended"
    if fault := article_fault(phrase):
        yield f"the noun phrase {fault}"
    for word in pieces(f"{term.term} {phrase}".lower()):
        for part in (word, *word.split("-")):
            if part in demographic:
                yield f"the control holds the word '{part}' of the term '{demographic[part]}'"


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def edit_faults(source_text: str, text: str, edit: Edit) -> Iterator[str]:
    """Yield how two texts differ otherwise than by the edit.

    What is removed must stand in the source, what is added in the follow-up; every other word that
    differs must be one that agrees with them. Attributes may move, the words around them keep their
    order. The first letter's case is kept, and the English of articles and blanks is looked at.
    """
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
    if english := new_english_fault(source_text, text):
        yield f"the follow-up {english}"
    before, after = (pieces(text_compared.lower()) for text_compared in (source_text, text))
    of_person = Counter(after) - Counter(pieces(edit.untouched.lower()))
    for form in sorted(of_person.keys() & PRONOUNS.keys()) if edit.pronoun else ():
        if PRONOUNS[form] not in {edit.pronoun, "they"}:  # "they" may mean others
            yield f"the follow-up says '{form}' of a person who is '{edit.pronoun}'"
    agreeing = _AGREEING | edit.agreeing
    for own_words, other_words, edited, which, what in (
        (before, after, edit.removed, "source's word", "gone"),
        (after, before, edit.added, "word", "added"),
    ):
        for word in Counter(own_words) - Counter(other_words):
            if word not in words_of(*edited) | agreeing:
                yield f"the {which} '{word}' is {what}, which is not the attribute"
    movable = words_of(*edit.removed, *edit.added, *edit.kept) | agreeing
    frames = ([word for word in row if word not in movable] for row in (before, after))
    if next(frames) != next(frames):
        yield "the words around the attributes stand in another order"


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
        if fault := article_fault(text):
            return f"the {name} {fault}"
    if pair.dimension == "gender" and (title := TITLE.search(source_text)):
        return f"the source says '{title.group()}', which is of one gender"
    return next(_other_words(source_text, follow_up_text, pair), None)


def _places(words: Sequence[str], attribute: str) -> frozenset[int]:
    """Return at which places of a prompt its attribute stands."""
    parts, lower = pieces(attribute.lower()), [word.lower() for word in words]
    starts = (n for n in range(len(words)) if parts and lower[n : n + len(parts)] == parts)
    return frozenset(n for start in starts for n in range(start, start + len(parts)))


def _other_words(source_text: str, follow_up_text: str, pair: Pair) -> Iterator[str]:
    """Yield what differs beside the attributes and does not agree with them, run by run."""
    before, after = pieces(source_text), pieces(follow_up_text)
    own, other = _places(before, pair.source_attribute), _places(after, pair.attribute)
    # Beside a title no pronoun may change: it would have to agree with the title.
    classes = _CLASSES[: -len(CASES)] if TITLE.search(source_text) else _CLASSES
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            continue
        is_apart = own.isdisjoint(range(i - 1, j + 1)) and other.isdisjoint(range(k - 1, m + 1))
        gone, left = [], [after[n] for n in range(k, m) if n not in other]
        for word in (before[n] for n in range(i, j) if n not in own):
            twin = next((candidate for candidate in left if _agree(word, candidate, classes)), None)
            if twin is None:
                gone.append(word)
            else:
                left.remove(twin)
        for word in (*gone, *left):
            if is_apart or word.lower() not in _BESIDE:
                yield f"source and follow-up differ in '{word}', which is not the attribute"


def _agree(old: str, new: str, classes: Iterable[frozenset[str]]) -> bool:
    """Return whether two words are of one class, and both or neither begin with a capital."""
    is_one_class = any({old.lower(), new.lower()} <= group for group in classes)
    return is_one_class and old[:1].isupper() == new[:1].isupper()
