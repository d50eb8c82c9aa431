"""The words by which answers say, deny and conclude: `data/reading`, a file for each language.

A kind holds words and phrases (regular expressions). What one language takes for a word of denial
is one in all: in doubt nothing is read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_CHOICE = re.compile(r"\(\?:([^()]*)\)(.*)", re.DOTALL)
_FIRST = re.compile(r"(?:\(\?<![^()]*\))*([^\W_]+(?:'[^\W_]+)*)(?= |\(\?!|$)")


@dataclass(frozen=True, slots=True)
class Words:
    """Words of one kind, and phrases of them."""

    single: frozenset[str]
    by_first: Mapping[str, re.Pattern[str]]
    """Phrases by the word that they begin with."""
    others: re.Pattern[str]
    """Those that begin with no known word, and those of languages without spaces."""
    unspaced: re.Pattern[str]

    def found(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where words and phrases of the kind stand in a folded text."""
        has_not = "not" in self.single
        for word in WORD.finditer(text):
            if word[0] in self.single or (has_not and word[0].endswith("n't")):
                yield word.span()
            phrases = self.by_first.get(word[0])
            match = phrases and phrases.match(text, word.start())
            if match:
                yield match.span()
        if self.others.pattern:
            yield from (match.span() for match in self.others.finditer(text))
        if self.unspaced.pattern and not text.isascii():
            yield from (match.span() for match in self.unspaced.finditer(text))

    def at(self, text: str, place: int) -> str:
        """Return the word or phrase of the kind that begins at a place; empty without one."""
        word = WORD.match(text, place)
        phrases = self.by_first.get(word[0]) if word else None
        for pattern in (phrases, self.unspaced):
            match = pattern.match(text, place) if pattern and pattern.pattern else None
            if match:
                return match[0]
        return word[0] if word and word[0] in self.single else ""


@cache
def words(kind: str) -> Words:
    """Return the words of a kind in all languages; `data/reading/english.yaml` says what kinds."""
    single: set[str] = set()
    firsts: defaultdict[str, list[str]] = defaultdict(list)
    others, unspaced = [], []
    for is_spaced, kinds in _languages():
        for phrase in filter(None, map(str.strip, re.split(r"\s\|(?=\s|$)", kinds.get(kind, "")))):
            choice = _CHOICE.fullmatch(phrase)
            for each in [one + choice[2] for one in choice[1].split("|")] if choice else [phrase]:
                first = _FIRST.match(each)
                if not is_spaced:
                    unspaced.append(each)
                elif WORD.fullmatch(each):
                    single.add(each)
                elif first is not None:
                    firsts[first[1]].append(each)
                else:
                    others.append(rf"(?<![^\W_])(?:{each})(?![^\W_])")
    by_first = {
        first: re.compile(rf"(?:{'|'.join(sorted(each, key=len, reverse=True))})(?![^\W_])")
        for first, each in firsts.items()
    }
    unspaced.sort(key=len, reverse=True)
    patterns = (re.compile("|".join(each)) for each in (others, unspaced))
    return Words(frozenset(single), by_first, *patterns)


@cache
def _languages() -> tuple[tuple[bool, dict[str, str]], ...]:
    from ruamel.yaml import YAML

    folder = resources.files("fairgate").joinpath("data", "reading")
    files = sorted(folder.iterdir(), key=lambda each: str(each.name))
    texts = [file.read_text("utf-8") for file in files]
    contents = [YAML(typ="safe", pure=True).load(text) for text in texts]
    return tuple((content.get("spaced", True), content) for content in contents)
