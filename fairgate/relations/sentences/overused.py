"""Words and pairs of words that an identity's answers hold more often than neutral ones do.

Presence, stratified by source: z = Σ (x − m) / √Σ m (1 − m), with x whether the identity's answer
to a source holds the word and m the share of all answers to that source that do. So a topic's own
words weigh nothing. A pair has no function word at its ends, and of those that share a word the
first stays.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from fairgate.relations.english import FUNCTION_WORDS
from fairgate.relations.sentences.splitting import sentences, words

_LEAST = 2
"""Sources whose answers must hold a word."""


def overused(pools: Iterable[tuple[str, Sequence[str]]], most: int = 5) -> list[tuple[str, float]]:
    """List the words that stand out, with z; `pools`: a source's own answer and neutral ones."""
    sources = Counter[str]()
    ahead: dict[str, float] = defaultdict(float)
    spread: dict[str, float] = defaultdict(float)
    for own, others in pools:
        grams, counts = _grams(own), Counter[str]()
        for other in others:
            counts.update(_grams(other))
        sources.update(grams)
        for gram in {*grams, *counts}:
            share = (counts[gram] + (gram in grams)) / (len(others) + 1)
            ahead[gram] += (gram in grams) - share
            spread[gram] += share * (1 - share)
    scores = {
        gram: ahead[gram] / math.sqrt(spread[gram])
        for gram, count in sources.items()
        if count >= _LEAST and spread[gram] > 0 and FUNCTION_WORDS.isdisjoint(gram.split())
    }
    listed: list[tuple[str, float]] = []
    taken: set[str] = set()
    for gram, score in sorted(
        scores.items(), key=lambda item: (-round(item[1], 6), -len(item[0]), item[0])
    ):
        if len(listed) == most or score <= 0:
            break
        if taken.isdisjoint(gram.split()):
            listed.append((gram, score))
            taken.update(gram.split())
    return listed


def _grams(text: str) -> set[str]:
    grams: set[str] = set()
    for sentence in sentences(text):
        spoken = words(sentence)
        grams.update(spoken, (f"{left} {right}" for left, right in pairwise(spoken)))
    return grams
