"""The words of an answer as numbers: for comparing which words and pairs of words answers hold.

A number is the CRC-32 of a word in lower case; of two words that follow each other it is a mixture
of both; "three" is "3". A word of denial is a word of its own ("can't" is "can not", "keine" is "nicht eine"), so
that what a sentence says without it can be looked for in other answers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fairgate.relations.sentences.number_words import DIGITS_OF
from fairgate.relations.sentences.splitting import words

Codes = npt.NDArray[np.uint32]
_BEGIN = np.uint32(1)
"""Stands before the first word of a sentence."""
_DENIALS = frozenset(
    ("not", "no", "never", "nor", "neither", "without", "nicht", "nie", "niemals", "ohne", "nunca",
     "jamás", "sin", "non", "mai", "senza", "pas", "jamais", "sans", "niet", "nooit", "não", "sem")
)  # fmt: skip
_HELPERS = frozenset(("do", "does", "did"))
"""Stand before "not" alone: "do not go" denies "go"."""
_MIX = np.uint32(0x9E3779B1)


@dataclass(frozen=True, slots=True)
class Tokens:
    """What an answer holds, in codes."""

    held: Codes
    """Its words, and its pairs of words that follow each other."""
    denied: Codes
    """Pairs of words with a denial between them."""


def tokens(sentences: Iterable[str]) -> Tokens:
    """Read the sentences of an answer, in time linear in their length."""
    of_answer = [code for sentence in sentences for code in (1, *_codes(sentence))]
    codes = np.asarray(of_answer, dtype=np.uint32)
    if not len(codes):
        return Tokens(codes, codes)
    is_word = codes != _BEGIN
    pairs = _pairs(codes[:-1], codes[1:])[is_word[1:]]
    is_denial = np.isin(codes, _codes_of(_DENIALS))
    is_left_out = is_denial.copy()
    is_left_out[:-1] |= np.isin(codes[:-1], _codes_of(_HELPERS)) & is_denial[1:]
    kept = np.flatnonzero(~is_left_out)
    before = np.cumsum(is_denial)[kept]
    has_denial = (np.diff(before) > 0) & is_word[kept[1:]]
    denied = _pairs(codes[kept[:-1]], codes[kept[1:]])[has_denial]
    return Tokens(np.concatenate([codes[is_word], pairs]), denied)


def _pairs(left: Codes, right: Codes) -> Codes:
    mixed = left * _MIX ^ (right + (left >> np.uint32(7)))
    return np.asarray(mixed, dtype=np.uint32)


def _codes(sentence: str) -> list[int]:
    return [code for word in words(sentence) for code in _code(word)]


@lru_cache(maxsize=1 << 16)
def _code(word: str) -> tuple[int, ...]:
    """Give the codes of a word: several where a denial is part of it."""
    word = word.replace("\u2019", "'")
    parts: tuple[str, ...] = (word,)
    if word.endswith("n't"):
        bare = {"ca": "can", "wo": "will", "sha": "shall"}.get(word[:-3], word[:-3])
        parts = ("not",) if bare in _HELPERS else (bare, "not")
    elif word == "cannot":
        parts = ("can", "not")
    elif word.startswith("kein"):
        parts = ("nicht", word[1:])
    forms = (DIGITS_OF.get(part, part) for part in parts)
    return tuple(zlib.crc32(form.encode("utf-8", "surrogatepass")) for form in forms)


@lru_cache(maxsize=8)
def _codes_of(some: frozenset[str]) -> Codes:
    return np.asarray(sorted(zlib.crc32(word.encode()) for word in some), dtype=np.uint32)
