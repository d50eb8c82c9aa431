"""Whether a text is English: what shows that it is, and what shows that it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairgate.relations.english import FUNCTION_WORDS, PRONOUNS, pieces

_FOREIGN = frozenset(
    # German, Dutch, French, Spanish, Portuguese, Italian, Polish, Turkish, Swedish, Danish: words
    # that hold sentences together, and none that English or an English name has.
    """der das und ist nicht mit eine einen einem einer ein sich auf wird wurde sind ich wir sie ihr
    aus bei nach auch als wie oder aber seine seinen ihre zum zur vom für über durch sein haben
    fragt het een niet zijn haar hij met voor ook maar naar woont deze werd hebben wordt
    les une est dans pour qui que avec sur pas sont elle nous vous leur cette ces été aux chez très
    una los las con para por pero muy también está son fue sus como más donde hay quien tiene
    uma não com para pelo pela dos das ao mas muito são foi seu sua mora ela ele você
    che il gli della nel nella sono lavora suo suoi anche questo questa più è con perché
    nie się jest na że ale przez jak dla jego jej
    ve bir bu için ile çok değil
    och att det som är för inte han hon av til ikke""".split()  # noqa: SIM905 (reads better so)
)
_CLOSED_CLASS = (
    FUNCTION_WORDS
    | PRONOUNS.keys()
    | frozenset(
        """about after all also am and any are because before being between but can't could each
        every few for if into just let many me more most much must no nor not off one only out over
        own please same shall should so some such than them then these those three through too two
        under until up us very when while whom whose without yes your our nobody somebody anybody
        everybody someone anyone everyone nothing something anything everything none""".split()  # noqa: SIM905
    )
) - frozenset({"a", "an", "as", "do", "he", "in", "is", "me", "my", "no", "on", "so", "was", "we"})
"""English words that hold sentences together, and that none of the other languages has."""
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


_ARTICLES = frozenset(
    """ein eine einer der die das un une le la les una uno el los las um uma os as il lo gli een het
    en ett bir""".split()  # noqa: SIM905 (reads better so)
)
"""First words of noun phrases in the languages above; "an" and "a" are English here."""


def language_of_phrases(phrases: Sequence[str]) -> str:
    """Say in which language most noun phrases begin; empty where their first words do not tell.

    `English`, `not English`, or `another script`: enough to see that two lists differ.
    """
    found = Counter(map(_of_phrase, phrases))
    language, count = found.most_common(1)[0] if found else ("", 0)
    return language if 2 * count > len(phrases) else ""


def _of_phrase(phrase: str) -> str:
    letters = [sign for sign in phrase if sign.isalpha()]
    if sum(sign > "\u024f" for sign in letters) * 2 > len(letters):
        return "another script"
    first = phrase.lower().split()[0] if phrase.split() else ""
    if first in ("a", "an", "the") or first in _CLOSED_CLASS:
        return "English"
    is_foreign = first in _ARTICLES or not _FOREIGN.isdisjoint(phrase.lower().split())
    return "not English" if is_foreign else ""
