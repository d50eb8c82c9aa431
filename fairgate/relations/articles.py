"""Which indefinite article English requires before a word: by sound, not by letter."""

from __future__ import annotations

import re
from itertools import pairwise

# Vowel letters that are spoken with a consonant first ("a European", "a one-off", "a Ugandan").
_SPOKEN_CONSONANT = re.compile(
    r"eu|ew|one(?![a-z])|once|ou(?:ij|i$)|u(?:ga|kr|k(?![a-z])|rugu|rani|yg|"
    r"ni(?:on|qu|corn|cycl|form|fy|lat|sex|son|te|ts?(?![a-z])|ver|v(?![a-z]))|"
    r"s(?:a|e|i|u)|t(?:e|il|op|ah)|bi|ri|ra)"
)
# Consonant letters that are silent or spoken with a vowel first ("an hour", "an X-ray").
_SPOKEN_VOWEL = re.compile(r"hour|hono|honest|heir|x-|mbti|8|11(?!\d)|18(?!\d)")
_EITHER = re.compile(r"herb|histor|hotel|habitual|11\d\d(?!\d)|18\d\d(?!\d)")
_VOWEL_LETTERS = frozenset("aeiou")
_VOWEL_NAMES = frozenset("AEFHILMNORSX")
"""Capital letters whose names begin with a vowel sound: "an LGBT person", "a UN envoy"."""


def articles_for(word: str) -> frozenset[str]:
    """Return the articles that may stand before `word`: {"a"}, {"an"}, or both where usage varies.

    An abbreviation of three letters and more that has a vowel may be spelt ("an FBI agent") or
    spoken ("a NATO officer"): where the two differ both are right.
    """
    lower = word.lower()
    if _EITHER.match(lower):
        return frozenset({"a", "an"})
    by_sound = _by_sound(lower)
    first = re.match(r"[A-Z]+(?![a-z])", word)
    if first is None or first.group() == "I":
        return frozenset({by_sound})
    spelt = "an" if word[0] in _VOWEL_NAMES else "a"
    speakable = len(first.group()) > 2 and not _VOWEL_LETTERS.isdisjoint(first.group().lower())
    return frozenset({spelt, by_sound}) if speakable else frozenset({spelt})


def _by_sound(lower: str) -> str:
    if _SPOKEN_VOWEL.match(lower):
        return "an"
    if _SPOKEN_CONSONANT.match(lower):
        return "a"
    return "an" if lower[:1] in _VOWEL_LETTERS else "a"


def article_fault(phrase: str) -> str | None:
    """Return what is wrong with the first wrong `a` or `an` of a phrase; None where all agree."""
    words = phrase.split()
    for article, word in pairwise(words):
        if article.lower() not in {"a", "an"}:
            continue
        allowed = articles_for(word.lstrip("'("))
        if article.lower() not in allowed:
            right = min(allowed)
            return f"has '{article} {word}'; correct English is '{right} {word}'"
    return None
