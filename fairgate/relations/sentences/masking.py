"""The words that name who asks: masked before answers are compared, in both arms alike.

"The shopper asks …" and "As an elderly man …" both say "the person" then, so that an answer is not
strange for repeating its asker. Masked are the phrase, its plurals, the phrase with another noun
for people, its adjective where it is said of people, and the country of a nationality. An ordinary
word is left alone elsewhere: "white vinegar", "a straight line".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fairgate.relations.clauses import plural_noun
from fairgate.relations.sentences.phrasings import countries, shipped_terms

MASK = "the person"
_PEOPLE = (
    r"(?:persons?|people|individuals?|man|men|woman|women|folks?|adults?|customers?|users?|clients?|"
    r"patients?|communit(?:y|ies)|community members?|speakers?|citizens?|residents?)"
)
_BEFORE = r"(?:\b(?:an?|the|this|that|these|those|our|your|every|each|one|some|any)\s+)?"
_OF_PEOPLE = (
    r"(?<=\b(?:being)\s)|(?<=\bas\s)|(?<=\bare\s)|(?<=['\u2019]re\s)|(?<=\bhe\sis\s)|(?<=\bwho\sis\s)|(?<=\bam\s)"
    r"|(?<=['\u2019]m\s)"
)
_ARTICLES = re.compile(
    r"(?:an?|the|ein|eine|einer|un|une|una|uno|um|uma|een|de|der|die|das|le|la|el|il|o|a)\s+",
    re.IGNORECASE,
)
_SHORTEST = 3
"""Letters of a word by which a group is looked for: "bi" in the plural is a word in German."""
_ANYBODY = re.compile(r"\b(?:an?|the|this|that)\s+(?:person|individual)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Asker:
    """What finds the words that name an asker."""

    exact: re.Pattern[str]
    """As they are spelled: proper adjectives, countries, names."""
    loose: re.Pattern[str]
    """In any case."""

    def mask(self, text: str) -> str:
        """Replace every naming of the asker, and "a person", by `MASK`."""
        masked = self.loose.sub(MASK, self.exact.sub(MASK, text))
        return _ANYBODY.sub(MASK, masked)

    def is_named_in(self, text: str) -> bool:
        """Whether a text names the asker."""
        return bool(self.exact.search(text) or self.loose.search(text))


_NOBODY = re.compile(r"(?!)")
_PERSON_AND_MORE = re.compile(r"(?:person|individual)\s+\S", re.IGNORECASE)


@lru_cache(maxsize=4096)
def asker(noun_phrase: str) -> Asker:
    """Find the namings of the asker whom a noun phrase names: "An elderly person", "Aisha Khan"."""
    phrase = " ".join(noun_phrase.split())
    bare = _ARTICLES.sub("", phrase, count=1) if _ARTICLES.match(phrase) else phrase
    parts = bare.split()
    if not parts:
        return Asker(_NOBODY, _NOBODY)
    if bare == phrase and all(part[:1].isupper() for part in parts):
        names = "|".join(map(re.escape, [bare, *(part for part in parts if len(part) > 2)]))
        return Asker(re.compile(rf"\b(?:{names})\b"), _NOBODY)
    if _PERSON_AND_MORE.match(bare):
        return _said_behind(bare)
    *modifiers, head = parts
    quality = " ".join(modifiers)
    whole, several = _spelled(bare), _spelled(" ".join([*modifiers, plural_noun(head) or head]))
    loose = [rf"{_BEFORE}\b(?:{several}|{whole})(?:en|n|s)?\b"]
    exact: list[str] = []
    if quality:
        adjective = _spelled(quality)
        of_people = rf"{_BEFORE}\b{adjective}\s+{_PEOPLE}\b"
        loose.insert(0, of_people)
        if quality != quality.lower():
            exact += [rf"(?i:{of_people})", rf"{_BEFORE}\b{adjective}s?\b"]
        else:
            # "the elderly", "being gay", "elderlies": said of people, not of things.
            plural = rf"\b{adjective}s\b" if not quality.endswith("s") else r"(?!)"
            alone = (
                r"(?=\s*(?:$|[.,;:!?)]|\b(?:and|or|who|is|are|may|can|should|often|tend|need)\b))"
            )
            loose += [
                rf"\b(?:the|our|as an?)\s+{adjective}\b{alone}",
                rf"(?:{_OF_PEOPLE})\b{adjective}\b{alone}",
                plural,
            ]
        if country := countries().get(quality.lower()):
            exact.append(rf"\b{_spelled(country)}\b")
    return Asker(
        re.compile("|".join(exact)) if exact else _NOBODY,
        re.compile("|".join(loose), re.IGNORECASE),
    )


def _said_behind(bare: str) -> Asker:
    """Find an asker of whom something is said behind the noun: "person whose family is from Asia".

    The whole in the singular and plural, and its proper names: "the Asian community".
    """
    rest = bare.partition(" ")[2]
    proper = "|".join(sorted({re.escape(word) for word in rest.split() if word[:1].isupper()}))
    whole = rf"{_BEFORE}\b{_PEOPLE}\s+{_spelled(rest)}"
    named = rf"(?i:{whole})|{_BEFORE}\b(?:{proper})s?\b(?:\s+{_PEOPLE}\b)?"
    exact = re.compile(named) if proper else _NOBODY
    return Asker(exact, re.compile(whole, re.IGNORECASE))


def _spelled(phrase: str) -> str:
    """Match a phrase however blanks and hyphens stand in it."""
    return r"[\s\-\u2010\u2011]+".join(map(re.escape, re.split(r"[\s-]+", phrase)))


def groups_named(words: Iterable[str], text: str, noun_phrase: str) -> frozenset[str]:
    """List the words of a text by which it names people of shipped sets, but for the asker's own.

    `words` are all of the text's, in lower case. Other words for the asker are the asker's own.
    """
    by_word = _phrases_by_word()
    return frozenset(
        word
        for word in by_word.keys() & words
        if any(
            asker(phrase).is_named_in(text)
            for phrase, of_term in by_word[word]
            if noun_phrase not in of_term
        )
    )


@lru_cache(maxsize=1)
def _phrases_by_word() -> Mapping[str, list[tuple[str, Sequence[str]]]]:
    """Map words of identities that no control phrase has, and their plurals, to where they stand.

    That is a phrase, with all phrases of its term.
    """
    identities, controls = shipped_terms()
    usual = {word for phrases in controls for p in phrases for word in p.lower().split()}
    by_word: dict[str, list[tuple[str, Sequence[str]]]] = {}
    for phrases in identities:
        for phrase in phrases:
            words = {word for word in phrase.lower().split() if len(word) >= _SHORTEST} - usual
            for form in {form for word in words for form in (word, plural_noun(word) or word)}:
                by_word.setdefault(form, []).append((phrase, phrases))
    return by_word
