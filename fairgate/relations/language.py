"""Whether a text is English, and whether two lists of phrases are in one language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairgate.relations.english import FUNCTION_WORDS, pieces

_LEAST_ENGLISH = 0.2
_SHARED = frozenset(
    """a an as at do he i in is me no not on or so was we will""".split()  # noqa: SIM905 (reads better so)
)
"""Words that other languages have too."""
_OF_QUESTIONS = FUNCTION_WORDS | frozenset(
    """be being could should might must which who whose whom if than then them these those
    about into please name list give tell top three most more some any each between
    describe rank choose write scale""".split()  # noqa: SIM905 (reads better so)
)
_ARTICLES = frozenset(
    """ein eine einer der die das un une le la les una uno el los las um uma os as il lo gli een het
    en ett bir""".split()  # noqa: SIM905 (reads better so)
)
"""First words of noun phrases in German, Romance and Nordic languages, Dutch and Turkish."""


def is_english(text: str) -> bool:
    """Tell whether a fifth of the words are English function words, and the letters are Latin.

    One of them at least must be a word that other languages do not have. A rule of thumb for whole
    sentences that a model wrote, where what is not clearly English is left out.
    """
    words = [word.lower() for word in pieces(text) if word[0].isalpha()]
    latin = all(ord(sign) < 0x250 for word in words for sign in word if sign.isalpha())
    function_words = [word for word in words if word in _OF_QUESTIONS]
    return (
        latin
        and len(function_words) >= _LEAST_ENGLISH * len(words)
        and not _SHARED.issuperset(function_words)
    )


def language_of_phrases(phrases: Sequence[str]) -> str:
    """Say in which language most noun phrases begin; empty where their first words do not tell.

    `English`, `not English`, or `another script`: enough to see that two lists differ.
    """
    language, count = Counter(map(_of_phrase, phrases)).most_common(1)[0] if phrases else ("", 0)
    return language if 2 * count > len(phrases) else ""


def _of_phrase(phrase: str) -> str:
    letters = [sign for sign in phrase if sign.isalpha()]
    if sum(sign > "\u024f" for sign in letters) * 2 > len(letters):
        return "another script"
    first = phrase.lower().split()[0] if phrase.split() else ""
    if first in ("a", "an", "the"):
        return "English"
    return "not English" if first in _ARTICLES else ""
