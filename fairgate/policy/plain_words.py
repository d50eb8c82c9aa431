"""Whether a phrase is written so that its words can be compared, and which words it has.

Many letters look like others: `Muslim` with a Cyrillic letter, in small capitals or with a digit is
no word of any list, and a reader sees none of it. So letters that are variants of others count as
these, and what has no such reading is refused. Source: Unicode Technical Standard 39, section 5.2
(one script for a text, the East Asian ones together and with Latin ones).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_LATIN = "LATIN"
_TOGETHER = frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"})
_OF_ALPHABETS = str.maketrans({
    "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ŋ": "n",
    "\u0131": "i",
})  # fmt: skip
"""Letters of European alphabets that are no variant of another one by Unicode, in lower case."""
_NUMBER = re.compile(r"\d+(?:st|nd|rd|th|s)?|[^\W\d]+")
_EAST_ASIAN = (
    "[\u1100-\u11ff\u3005-\u3007\u3040-\u318f\u31a0-\u31ff\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff]"
)
_AMONG_LATIN = re.compile(
    rf"(?<=[A-Za-z]){_EAST_ASIAN}(?!{_EAST_ASIAN})|(?<!{_EAST_ASIAN}){_EAST_ASIAN}(?=[A-Za-z])"
)
"""A single sign beside Latin letters, which may stand for one of them."""
_MARKS = frozenset(" '’-\u2010\u2011–,.")
_JOINING = "\u200c\u200d"
"""Invisible, and part of how words of some languages are written, of none in Latin letters."""


def words_of(text: str) -> list[str]:
    """Return the words in lower case and plain letters, whatever hides in them."""
    return re.findall(r"\w+", "".join(_plain(text)).translate(_OF_ALPHABETS))


def _plain(text: str) -> Iterator[str]:
    for character in unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold()):
        category = unicodedata.category(character)
        if category != "Cf" and not category.startswith("M"):
            yield character


def why_unclear(text: str) -> str:
    """Return why the words of a text cannot be compared with others; empty where they can."""
    scripts = _scripts(text)
    for character in text:
        kind = unicodedata.category(character)[0]
        is_joining = character in _JOINING and _LATIN not in scripts
        if kind not in "LMN" and character not in _MARKS and not is_joining:
            return f"has the character {_named(character)}"
    return odd_letters(text)


def odd_letters(text: str) -> str:
    """Say why the letters of a text cannot be compared; empty where they can."""
    scripts, composed = _scripts(text), unicodedata.normalize("NFKC", text)
    if len(scripts) > 1 and (not scripts - {_LATIN} <= _TOGETHER or _AMONG_LATIN.search(composed)):
        return f"mixes letters of {' and '.join(sorted(script.capitalize() for script in scripts))}"
    if _LATIN in scripts:
        plain = re.sub(_EAST_ASIAN, "", "".join(_plain(text)).translate(_OF_ALPHABETS))
        odd = next((letter for letter in plain if letter.isalpha() and not letter.isascii()), "")
        if odd:
            return f"has the letter {_named(odd)}, which is of no common alphabet"
    mixed = next((word for word in words_of(text) if not _NUMBER.fullmatch(word)), "")
    return f"writes {mixed!r} with digits" if mixed else ""


def _scripts(text: str) -> set[str]:
    letters = [letter for letter in unicodedata.normalize("NFKC", text) if letter.isalpha()]
    return {unicodedata.name(letter, "?").split()[0] for letter in letters}


def _named(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'without a name')}"
