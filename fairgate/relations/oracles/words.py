"""The words by which answers say, deny and conclude: `data/reading`, a file for each language.

A kind holds words, and phrases that begin with a word and go on as a regular expression. What one
language takes for a word of denial is one in all: in doubt nothing is read. A sentence is read as
its words' tags, one character for each word or sign.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

from fairgate.relations.oracles.text import fold

BEFORE = {
    "contrast": "b", "unknown": "u", "denied": "n", "loose": "x", "open": "o", "though": "t",
    "copula": "c", "answer": "A", "conclusion": "C", "joiner": "j", "lead": "l",
}  # fmt: skip
"""Tags of words before a label; of a word's kinds the first one counts. Others have "w"."""
BEHIND = {
    "contrast": "b", "unknown": "n", "denied": "n", "loose": "n", "joiner": "j", "open": "o",
    "aside": "a", "copula": "c", "lead": "l", "answer": "l", "conclusion": "l",
}  # fmt: skip
"""Tags of words behind a label."""
_BOTH_BEFORE = {("j", "lead"): "J"}
_BOTH_BEHIND = {("n", "copula"): "N", ("a", "lead"): "A", ("a", "copula"): "A"}
"""Tags of words that are of another kind, too; "K" denies in a script without spaces."""
KINDS = frozenset({*BEFORE, *BEHIND})
CJK = "\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
"""Scripts whose words need no spaces around them, for a class of characters."""
_BAR = re.compile(r"\s\|(?=\s|$)")
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_LATIN = r"[a-z0-9\u00df-\u00f6\u00f8-\u024f]+(?:'[a-z0-9\u00df-\u00f6\u00f8-\u024f]+)*(?!'?[^\W_])"
"""Most words of most answers: a class that is looked up quickly."""
_SPACED = rf"[^\W_{CJK}]+(?:'[^\W_]+)*"
_SINGLE = (
    rf"[{CJK}]|[,:;\n、]|\((?!\w\))|</?[a-z][^<>\s]{{0,20}}>|(?<!\.)\.(?=\s)|<\||\|>|[-=]>|[=→—―]|--|"
    r"(?<=\s)-(?=\s)|\[ ?\]|[!¬](?=[^\W_])"
)
"""A character of a script without spaces, or a sign that parts clauses, leads or denies."""
_SIGNS = {
    **dict.fromkeys([".", "。", ";", "\n", "、", "<|", "|>"], ";;"),
    **dict.fromkeys([":", "=", "->", "=>", "→", "—", "―", "-", "--"], "::"),
    **dict.fromkeys(["[]", "[ ]", "!", "¬"], "nn"),
    ",": ",,",
    "(": "w(",
}
_UNKNOWN = {"<": "ll", **dict.fromkeys("0123456789", "wd")}
"""Tags of other words and signs, by their first character."""


class Token(NamedTuple):
    """A word, phrase or sign of a folded text."""

    start: int
    end: int
    before: str
    """Its tag for a label behind it."""
    behind: str
    """Its tag for a label before it."""


Phrases = dict[str, tuple[str, tuple[str, ...]]]
"""By its first word: phrases as groups, the longest first, and both tags of each."""
_compiled = cache(re.compile)
"""Most answers have few of the words that phrases begin with."""


@cache
def _lexicon() -> tuple[re.Pattern[str], dict[str, str], Phrases]:
    """Return what matches a word or sign, both tags of each word, and the phrases."""
    kinds, phrases = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    inside = set[str]()
    for language in _languages():
        for kind in KINDS:
            for phrase in _phrases(language, kind):
                first = WORD.match(phrase)
                kinds[phrase].add(kind)
                if not language.get("spaced", True):
                    inside.add(phrase)
                elif first is not None and first[0] != phrase:
                    phrases[first[0]].add(phrase)
    tags = {phrase: _tags(each, is_inside=phrase in inside) for phrase, each in kinds.items()}
    listed = {word: _longest_first(each) for word, each in phrases.items()}
    return (
        re.compile(
            f"{_LATIN}|(?! )(?:{_SPACED}|(?=[^\x00-\u024f])(?:{'|'.join(_longest_first(inside))})|"
            f"{_SINGLE})"
        ),
        _SIGNS | tags,
        {
            word: (
                "|".join(rf"({phrase})(?![^\W_])" for phrase in each),
                tuple(tags[phrase] for phrase in each),
            )
            for word, each in listed.items()
        },
    )


def _longest_first(phrases: Collection[str]) -> list[str]:
    return sorted(phrases, key=lambda phrase: (-len(phrase), phrase))


def _tags(kinds: Collection[str], *, is_inside: bool) -> str:
    """Return both tags of a word of some kinds."""
    tags = ""
    for table, both in ((BEFORE, _BOTH_BEFORE), (BEHIND, _BOTH_BEHIND)):
        tag = next((table[kind] for kind in table if kind in kinds), "w")
        tags += next(
            (each for (one, kind), each in both.items() if one == tag and kind in kinds), tag
        )
    return f"{tags[0]}K" if is_inside and tags[1] in "noN" else tags


def tokens(text: str, begin: int = 0, end: int = sys.maxsize) -> list[Token]:
    """List the words, phrases and signs between two positions of a folded text, in their order."""
    pattern, known, phrases = _lexicon()
    listed, phrase_end = list[Token](), begin
    for match in pattern.finditer(text, begin, end):
        start, stop = match.span()
        if start < phrase_end:
            continue
        word = match[0]
        tags = known.get(word)
        if word in phrases:
            longer, each = phrases[word]
            phrase = _compiled(longer).match(text, start, end)
            if phrase is not None and phrase.lastindex is not None:
                tags, stop = each[phrase.lastindex - 1], phrase.end()
        if tags is None:
            tags = known["n't"] if word.endswith("n't") else _UNKNOWN.get(word[0], "ww")
        listed.append(Token(start, stop, *tags))
        phrase_end = stop
    return listed


@cache
def retractions() -> re.Pattern[str]:
    """Match what takes back what an answer said, at the beginning of a clause of folded text."""
    return re.compile(r"(?:[^\w\s']|\n)[^\w\n]{0,3}(?:[^\W_]{1,9} )?" + _any_of("retraction"))


@cache
def evasions() -> re.Pattern[str]:
    """Match, in folded text, what leaves a question without one answer."""
    return re.compile(_any_of("evasion"))


def _any_of(kind: str) -> str:
    """Return a pattern of the phrases of a kind that is no tag."""
    spaced, inside = list[str](), list[str]()
    for language in _languages():
        phrases = spaced if language.get("spaced", True) else inside
        phrases += _phrases(language, kind)
    return rf"(?:(?<![^\W_])(?:{'|'.join(spaced)})(?![^\W_])|{'|'.join(inside)})"


def _phrases(language: Mapping[str, str], kind: str) -> Iterator[str]:
    """Yield the folded words and phrases of a kind in a language's file."""
    return filter(None, map(str.strip, _BAR.split(fold(language.get(kind, "")))))


@cache
def _languages() -> tuple[dict[str, str], ...]:
    from ruamel.yaml import YAML

    folder = resources.files("fairgate").joinpath("data", "reading")
    files = sorted(folder.iterdir(), key=lambda each: str(each.name))
    return tuple(YAML(typ="safe", pure=True).load(file.read_text("utf-8")) for file in files)
