"""The form in which answers, labels and options are compared: spelling variants are one text.

Full case folding, compatibility normalisation (NFKC), one hyphen, one apostrophe, no invisible
characters; the Turkish dotted and dotless i are i. White space is one space, or one line end where
it holds any. A beginning of a text folds to the beginning of the folded text, up to its last
character, so what was read of an unfinished answer still holds when the answer goes on.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_INVISIBLE = dict.fromkeys(
    [
        0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0,
        *range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x202A, 0x202F),
        *range(0x2060, 0x2070), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000),
    ]
)  # fmt: skip
"""Characters that Unicode tells renderers to ignore, soft hyphens and zero-width joiners too."""
_ONE_FORM = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-")
    | dict.fromkeys("\u2019\u2018\u02bc\u0060\u00b4\u2032", "'")
    | {"\u0131": "i"}
)
_DOTTED = re.compile("i\u0307")
_SPACE = re.compile(r"\s{2,}|[^\S ]")
"""All white space but single spaces, which stay."""
_UNSPACED = ("CJK", "HANGUL", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC")


def fold(text: str) -> str:
    """Return the comparable form of `text`; neither end is stripped."""
    if text.isascii():
        plain = text.lower().translate(_ONE_FORM)
    else:
        # Accents like U+00B4 would decompose into a space and a mark, so they are replaced first.
        plain = text.translate(_INVISIBLE).translate(_ONE_FORM)
        plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", plain).casefold())
        plain = _DOTTED.sub("i", plain.translate(_ONE_FORM))
    return _SPACE.sub(_one_space, plain)


def _one_space(found: re.Match[str]) -> str:
    return "\n" if any(end in found.group() for end in "\n\r\v\f\x85\u2028\u2029") else " "


@lru_cache(maxsize=4096)
def folded(text: str) -> str:
    """Return a whole text as it is compared with another one: without outer space and full stop."""
    return fold(text).replace("\n", " ").strip().rstrip(".")


def is_word(character: str) -> bool:
    """Return whether a character is part of a word: a letter, a digit, or a mark upon one."""
    return character.isalnum() or is_mark(character)


def is_mark(character: str) -> bool:
    """Return whether a character belongs to the one before it."""
    return unicodedata.category(character).startswith("M")


@lru_cache(maxsize=4096)
def is_unspaced(character: str) -> bool:
    """Return whether a character belongs to a script whose words need no spaces around them."""
    return unicodedata.name(character, "").startswith(_UNSPACED)
