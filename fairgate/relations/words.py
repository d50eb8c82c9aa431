"""The words of a text, as every rule about pairs of texts reads them."""

from __future__ import annotations

import re

FUNCTION_WORDS = frozenset(
    """a an the who and or of to in on at for with by from as is are was were be been has have had
    do does did not will would can may i you he she it we they my your his her its our their this
    that what how why when where there here""".split()  # noqa: SIM905 (reads better so)
)
_PIECE = re.compile(r"[^\W_]+(?:[-'\u2019](?!s\b)[^\W_]+)*|['\u2019]s\b|[^\w\s]")


def pieces(text: str) -> list[str]:
    """Return words and signs in order; a possessive's `'s` is one of its own."""
    return _PIECE.findall(text)


def words_of(*phrases: str) -> frozenset[str]:
    """Return the words and signs of phrases, lower case."""
    return frozenset(word.lower() for phrase in phrases for word in pieces(phrase))


def holds(text: str, phrase: str) -> bool:
    """Return whether a text says a phrase as whole words, whatever the case."""
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.IGNORECASE) is not None
