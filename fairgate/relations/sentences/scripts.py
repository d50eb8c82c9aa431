"""The script of a text, and unrelated sentences in it, by which an embedder can be tried.

An embedder whose vocabulary lacks a script holds all sentences in it nearly alike: no sentence is
strange to it, whatever it says.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources


@lru_cache(maxsize=1)
def unrelated() -> Mapping[str, tuple[str, ...]]:
    """Script to sentences of which no two speak of the same."""
    from ruamel.yaml import YAML

    text = resources.files("fairgate").joinpath("data", "scripts.yaml").read_text("utf-8")
    return {name: tuple(texts) for name, texts in YAML(typ="safe", pure=True).load(text).items()}


_SCRIPTS = {
    "LATIN": "Latin", "HANGUL": "Korean", "HIRAGANA": "Japanese", "KATAKANA": "Japanese",
    "CJK": "Chinese", "CYRILLIC": "Cyrillic", "ARABIC": "Arabic", "DEVANAGARI": "Devanagari",
    "THAI": "Thai", "GREEK": "Greek", "HEBREW": "Hebrew",
}  # fmt: skip
_KANA = 0.1
"""Share of a text's letters that are kana from which Chinese characters are Japanese."""


def script_of(texts: Iterable[str]) -> str:
    """Name the script of most letters, a key of `unrelated`; empty where it is none of them."""
    letters = Counter(letter for text in texts for letter in text if letter.isalpha())
    counts = Counter[str]()
    for letter, count in letters.items():
        first_word = unicodedata.name(letter, "").split(" ")[0].split("-")[0]
        counts[_SCRIPTS.get(first_word, "")] += count
    if counts["Japanese"] > _KANA * (counts["Japanese"] + counts["Chinese"]):
        counts["Japanese"] += counts.pop("Chinese", 0)
    return max(counts, key=lambda script: (counts[script], script), default="")
