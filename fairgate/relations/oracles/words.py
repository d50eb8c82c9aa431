"""The words by which answers say, deny and conclude: `data/reading`, a file for each language.

A kind holds words, and phrases that begin with a word and go on as a regular expression. What one
language takes for a word of denial is one in all: in doubt nothing is read.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

KINDS = (
    "copula", "lead", "answer", "conclusion", "contrast", "joiner", "aside", "denied", "loose",
    "open", "though", "unknown",
)  # fmt: skip
COPULA, LEAD, ANSWER, CONCLUSION, CONTRAST, JOINER, ASIDE, DENIED, LOOSE, OPEN, THOUGH, UNKNOWN = (
    1 << number for number in range(len(KINDS))
)
COMMA, COLON, BREAK, _MORE = (1 << number for number in range(len(KINDS), len(KINDS) + 4))
LEADS = COPULA | LEAD | ANSWER | CONCLUSION | CONTRAST
"""What may stand before a label that is said."""
CJK = "\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
"""Scripts whose words need no spaces around them, for a class of characters."""
_BAR = re.compile(r"\s\|(?=\s|$)")
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_LATIN = r"[a-z0-9\u00df-\u00f6\u00f8-\u024f]+(?:'[a-z0-9\u00df-\u00f6\u00f8-\u024f]+)*(?!'?[^\W_])"
"""Most words of most answers: a class that is looked up quickly."""
_SPACED = rf"[^\W_{CJK}]+(?:'[^\W_]+)*"
_SINGLE = (
    rf"[{CJK}]|[,:;\n、]|\((?!\w\))|</?[a-z][^<>\s]{{0,20}}>|(?<!\.)\.(?=\s)|\|>|[-=]>|[=→—―]|--|"
    r"(?<=\s)-(?=\s)|\[ ?\]|[!¬](?=[^\W_])"
)
"""A character of a script without spaces, or a sign that parts clauses, leads or denies."""
_SIGNS = {
    **dict.fromkeys([".", "。", ";", "(", "\n", "、", "|>"], BREAK),
    **dict.fromkeys([":", "=", "->", "=>", "→", "—", "―", "-", "--"], COLON),
    **dict.fromkeys(["[]", "[ ]", "!", "¬"], DENIED),
    ",": _MORE,
}
_NEVER = r"(?!)"
_KEY = re.compile(r"\s*[\"'][^\"'\n]{1,40}[\"']\s*:")
"""What follows the comma before a key in JSON."""


class Token(NamedTuple):
    """A word, phrase or sign of a folded text."""

    start: int
    end: int
    flags: int
    """The kinds that it is of; 0: of none."""


@dataclass(frozen=True, slots=True)
class _Lexicon:
    tokens: re.Pattern[str]
    kinds: dict[str, int]
    """Of a word or sign."""
    phrases: dict[str, tuple[str, tuple[int, ...]]]
    """Those that begin with a word, as groups, the longest first, and their kinds."""
    inside: tuple[tuple[re.Pattern[str], int], ...]
    """Phrases that stand inside other words and are regular expressions, and their kinds."""

    def more(self, match: re.Match[str], end: int) -> tuple[int, int]:
        """Return the kinds and the end of what begins a phrase, or is no known word."""
        word, text = match[0], match.string
        if word == ",":
            return BREAK if _KEY.match(text, match.end()) else COMMA, match.end()
        if word[0] == "<":
            return LEAD, match.end()
        longer, kinds = self.phrases.get(word, (_NEVER, ()))
        phrase = _compiled(longer).match(text, match.start(), end)
        if phrase is not None and phrase.lastindex is not None:
            return kinds[phrase.lastindex - 1], phrase.end()
        if word.endswith("n't"):
            word = "n't"
        flags = self.kinds.get(word, 0) & ~_MORE
        if not flags and word[0] > "\u024f":
            flags = next((kinds for each, kinds in self.inside if each.fullmatch(word)), 0)
        return flags, match.end()


_compiled = cache(re.compile)
"""Most answers have few of the words that phrases begin with."""


@cache
def _lexicon() -> _Lexicon:
    """Return the words of all languages."""
    kinds, inside = defaultdict[str, int](int), defaultdict[str, int](int)
    phrases = defaultdict[str, defaultdict[str, int]](lambda: defaultdict(int))
    for language in _languages():
        for number, kind in enumerate(KINDS):
            for phrase in filter(None, map(str.strip, _BAR.split(language.get(kind, "")))):
                first = WORD.match(phrase)
                if not language.get("spaced", True):
                    inside[phrase] |= 1 << number
                elif first is None or first[0] == phrase:
                    kinds[phrase] |= 1 << number
                else:
                    phrases[first[0]][phrase] |= 1 << number
    longest_first = sorted(inside, key=len, reverse=True)
    every = "|".join(longest_first)
    grouped = {word: sorted(each, key=len, reverse=True) for word, each in phrases.items()}
    return _Lexicon(
        re.compile(f"{_LATIN}|(?! )(?:{_SPACED}|(?=[^\x00-\u024f])(?:{every})|{_SINGLE})"),
        {**kinds, **inside, **_SIGNS, **{word: kinds[word] | _MORE for word in phrases}},
        {
            word: (
                "|".join(rf"({phrase})(?![^\W_])" for phrase in each),
                tuple(phrases[word][phrase] for phrase in each),
            )
            for word, each in grouped.items()
        },
        tuple((re.compile(phrase), inside[phrase]) for phrase in longest_first if "(" in phrase),
    )


def tokens(text: str, begin: int = 0, end: int = sys.maxsize) -> list[Token]:
    """List the words, phrases and signs between two positions of a folded text, in their order."""
    lexicon = _lexicon()
    listed, phrase_end, kinds = list[Token](), begin, lexicon.kinds
    for match in lexicon.tokens.finditer(text, begin, end):
        start, stop = match.span()
        if start < phrase_end:
            continue
        flags = kinds.get(match[0], _MORE)
        if flags & _MORE:
            flags, stop = lexicon.more(match, end)
        listed.append(Token(start, stop, flags))
        phrase_end = stop
    return listed


@cache
def _languages() -> tuple[dict[str, str], ...]:
    from ruamel.yaml import YAML

    folder = resources.files("fairgate").joinpath("data", "reading")
    files = sorted(folder.iterdir(), key=lambda each: str(each.name))
    return tuple(YAML(typ="safe", pure=True).load(file.read_text("utf-8")) for file in files)
