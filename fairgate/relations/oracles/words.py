"""The words by which answers say, deny and conclude: `data/reading`, a file for each language.

A kind holds words, and phrases that begin with a word and go on as a regular expression. What one
language takes for a word of denial is one in all: in doubt nothing is read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Words:
    """Words of one kind, and phrases of them."""

    single: frozenset[str]
    phrases: Mapping[str, re.Pattern[str]]
    """By the word that they begin with."""
    firsts: frozenset[str]
    """The words with which they begin: a cheap look."""
    unspaced: re.Pattern[str]
    """Those of languages without spaces, which stand inside other words."""

    def found(self, text: str) -> list[tuple[int, int]]:
        """Return where words and phrases of the kind stand in a folded text, in no order."""
        places: list[tuple[int, int]] = []
        if "n't" in text or not self.firsts.isdisjoint(WORD.findall(text)):
            for word in WORD.finditer(text):
                phrase = self.phrases.get(word[0])
                match = phrase and phrase.match(text, word.start())
                if match:
                    places.append(match.span())
                elif word[0] in self.single or (word[0].endswith("n't") and "n't" in self.single):
                    places.append(word.span())
        if not text.isascii():
            places += [match.span() for match in self.unspaced.finditer(text)]
        return places

    def at(self, text: str, place: int) -> str:
        """Return the word or phrase of the kind that begins at a place; empty without one."""
        word = WORD.match(text, place)
        phrase = self.phrases.get(word[0]) if word is not None else None
        match = (phrase and phrase.match(text, place)) or self.unspaced.match(text, place)
        return match[0] if match else word[0] if word and word[0] in self.single else ""

    def blanked(self, text: str) -> str:
        """Replace the words and phrases of the kind by spaces."""
        for start, end in self.found(text):
            text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
        return text

    def covers(self, text: str) -> bool:
        """Tell whether a text has no other words than those of the kind."""
        return self.single.issuperset(WORD.findall(self.unspaced.sub(" ", text)))


@cache
def words(*kinds: str) -> Words:
    """Return the words of some kinds in all languages: `data/reading/english.yaml`."""
    single, unspaced = set[str](), list[str]()
    phrases: defaultdict[str, list[str]] = defaultdict(list)
    for language in _languages():
        listed = " | ".join(language.get(kind, "") for kind in kinds)
        for phrase in filter(None, map(str.strip, re.split(r"\s\|(?=\s|$)", listed))):
            first = WORD.match(phrase)
            if not language.get("spaced", True):
                unspaced.append(phrase)
            elif first is None or first[0] == phrase:
                single.add(phrase)
            else:
                phrases[first[0]].append(phrase)
    longest_first = {first: sorted(each, key=len, reverse=True) for first, each in phrases.items()}
    return Words(
        frozenset(single),
        {f: re.compile(rf"(?:{'|'.join(each)})(?![^\W_])") for f, each in longest_first.items()},
        frozenset([*single, *phrases]),
        re.compile("|".join(sorted(unspaced, key=len, reverse=True)) or r"(?!)"),
    )


@cache
def _languages() -> tuple[dict[str, str], ...]:
    from ruamel.yaml import YAML

    folder = resources.files("fairgate").joinpath("data", "reading")
    files = sorted(folder.iterdir(), key=lambda each: str(each.name))
    return tuple(YAML(typ="safe", pure=True).load(file.read_text("utf-8")) for file in files)
