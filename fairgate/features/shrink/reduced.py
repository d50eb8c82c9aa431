"""Smaller sources of a finding: words and attributes left out, the same follow-ups made anew.

The elements of a source are the words of its frame (a slot with what touches it is one word) and
its attributes; a source without a frame has the words of its text. A sentence keeps its capital and
its end sign. Pure; what the linter refuses, or English cannot say, is no smaller source.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fairgate.domain.cases import Source
from fairgate.domain.errors import DataError
from fairgate.domain.keys import follow_up_key
from fairgate.domain.units import Unit
from fairgate.relations.english import new_english_fault
from fairgate.relations.frames import Unrealisable, realise
from fairgate.relations.linter import Linter
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.relations.relation import MetamorphicRelation, NotApplicable
from fairgate.suites.metamorphic.plan import SOURCE

_WORD = re.compile(r"(\s*)((?:\{[^{}]*\}|[^\s{}])+)")
_END = re.compile(r"([.?!]+)[\"')\u201d]*$")
_PERSON = re.compile(r"\{(?:an?|the|plural) |\{(?:they|them|their|theirs|themselves)\}")


class Element(NamedTuple):
    """One thing that can be left out of a source."""

    kind: str
    """`word` or `attribute`."""
    place: int


@dataclass(frozen=True, slots=True)
class _Word:
    blank: str
    """What stands before it."""
    text: str


def elements_of(source: Source) -> list[Element]:
    """Return what can be left out: the words in order, then the attributes."""
    words = [Element("word", n) for n in range(len(_words(source)))]
    return words + [Element("attribute", n) for n in range(len(source.attributes))]


def reduced(source: Source, kept: Collection[Element]) -> Source | None:
    """Return the source with these elements alone; None where that is no correct text."""
    text = _joined(_words(source), [e.place for e in sorted(kept) if e.kind == "word"])
    if not text:
        return None
    if not source.frame:
        smaller = Source(id=source.id, text=text)
    else:
        uses = [use for n, use in enumerate(source.attributes) if Element("attribute", n) in kept]
        try:
            found = realise(text, uses)
        except DataError:
            return None
        if isinstance(found, Unrealisable):
            return None
        smaller = Source(id=source.id, text=found.text, frame=text, attributes=found.attributes)
    return None if new_english_fault(source.text, smaller.text) else smaller


def texts_of(
    source: Source, relation: MetamorphicRelation, unit: Unit, sets: Sequence[PerturbationSet]
) -> Mapping[str, str] | None:
    """Return the text of every case that a unit asks, made of this source.

    None where the relation makes no such follow-up of it, or the linter refuses one of them.
    """
    own = relation.source_text(source)
    found = relation.follow_ups(source, sets)
    if isinstance(found, NotApplicable):
        return None
    made = {follow_up_key(source.id, relation.id, each.variant): each for each in found}
    wanted = [key for role, key in unit.asks.items() if role != SOURCE]
    chosen = [made[key] for key in wanted if key in made and not made[key].inapplicable]
    if len(chosen) < len(wanted):
        return None
    if any(Linter(relation.fault, sets).rejections(own, chosen)):
        return None
    follow_ups = zip(wanted, chosen, strict=True)
    return {unit.asks[SOURCE]: own, **{key: each.text for key, each in follow_ups}}


def _words(source: Source) -> list[_Word]:
    return [_Word(*found.groups()) for found in _WORD.finditer(source.frame or source.text)]


def _joined(words: Sequence[_Word], kept: Sequence[int]) -> str:
    """Return the kept words as text: each sentence keeps its capital and its end sign."""
    sentence, sentences = 0, []
    for each in words:
        sentences.append(sentence)
        sentence += _END.search(each.text) is not None
    text = ""
    for n, place in enumerate(kept):
        word = words[place].text
        begins = n == 0 or sentences[kept[n - 1]] != sentences[place]
        first = sentences.index(sentences[place])
        if begins and place != first and _is_capital(words[first].text):
            word = _capitalised(word)
        if n + 1 == len(kept) or sentences[kept[n + 1]] != sentences[place]:
            last = len(sentences) - 1 - sentences[::-1].index(sentences[place])
            end = _END.search(words[last].text)
            if end is not None and place != last:
                word = word.rstrip(",;:") + end.group(1)
        text += (words[place].blank if n else "") + word
    return text


def _is_capital(word: str) -> bool:
    return next((sign.isupper() for sign in word if sign.isalpha()), False)


def _capitalised(word: str) -> str:
    """Return a word or slot as it begins a sentence; a verb slot has no such form."""
    if not word.startswith("{"):
        return word[:1].upper() + word[1:]
    return f"{{{word[1].upper()}{word[2:]}" if _PERSON.match(word) else word
