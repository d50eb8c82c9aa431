"""The words of an answer as numbers: for comparing which words and pairs of words answers hold.

A number is the CRC-32 of a word in lower case; of two words that follow each other it is a mixture
of both; "three" is "3". A word of denial is a word of its own ("can't" is "can not", "keine" is
"nicht eine"), so that what a sentence says without it can be looked for in other answers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
import numpy.typing as npt

from fairgate.relations.sentences.number_words import digits_of

Codes = npt.NDArray[np.uint32]
_BEGIN = 1
"""Stands before the first word of a sentence."""
_OF_DENIAL = (
    "not", "no", "never", "nor", "neither", "without", "nicht", "nie", "niemals", "ohne", "nunca",
     "jamás", "sin", "non", "mai", "senza", "pas", "jamais", "sans", "niet", "nooit", "não", "sem",
)  # fmt: skip
_OF_HELP = ("do", "does", "did")
"""Stand before "not" alone: "do not go" denies "go"."""
_DENIALS, _HELPERS = (
    frozenset(zlib.crc32(word.encode()) for word in some) for some in (_OF_DENIAL, _OF_HELP)
)
_MIX = np.uint32(0x9E3779B1)


@dataclass(frozen=True, slots=True)
class Tokens:
    """What an answer holds, in codes."""

    held: Codes
    """Its words, then its pairs of words that follow each other."""
    sentences: npt.NDArray[np.int64]
    """Of which sentence each of them is."""
    denied: Codes
    """Pairs of words with a denial between them."""


def tokens(sentences: Iterable[Sequence[str]]) -> Tokens:
    """Read the sentences of an answer, by their words, in time linear in their number."""
    of_answer = [c for words in sentences for c in (_BEGIN, *chain(*map(_code, words)))]
    codes = np.asarray(of_answer, dtype=np.uint32)
    if not of_answer:
        return Tokens(codes, np.zeros(0, dtype=np.int64), codes)
    is_word = codes != _BEGIN
    pairs = _pairs(codes[:-1], codes[1:])[is_word[1:]]
    grams = np.concatenate([codes[is_word], pairs])
    number = np.cumsum(~is_word)
    of_sentence = np.concatenate([number[is_word], number[1:][is_word[1:]]])
    return Tokens(grams, of_sentence, _denied(of_answer))


def _denied(codes: Sequence[int]) -> Codes:
    """Return the pairs of words that a denial stands between."""
    denials = [place for place, code in enumerate(codes) if code in _DENIALS]
    pairs = []
    for place in denials:
        left = place - 1 - (codes[place - 1] in _HELPERS)
        right = codes[place + 1] if place + 1 < len(codes) else _BEGIN
        if right != _BEGIN and right not in _DENIALS:
            pairs.append((codes[left], right))
    both = np.asarray(pairs, dtype=np.uint32).reshape(-1, 2)
    return _pairs(both[:, 0], both[:, 1])


def _pairs(left: Codes, right: Codes) -> Codes:
    mixed = left * _MIX ^ (right + (left >> np.uint32(7)))
    return np.asarray(mixed, dtype=np.uint32)


@lru_cache(maxsize=1 << 16)
def _code(word: str) -> tuple[int, ...]:
    """Give the codes of a word: several where a denial is part of it."""
    word = word.replace("\u2019", "'")
    parts: tuple[str, ...] = (word,)
    if word.endswith("n't"):
        bare = {"ca": "can", "wo": "will", "sha": "shall"}.get(word[:-3], word[:-3])
        parts = ("not",) if bare in _OF_HELP else (bare, "not")
    elif word == "cannot":
        parts = ("can", "not")
    elif word.startswith("kein"):
        parts = ("nicht", word[1:])
    digits = digits_of()
    forms = (digits.get(part, part) for part in parts)
    return tuple(zlib.crc32(form.encode("utf-8", "surrogatepass")) for form in forms)
