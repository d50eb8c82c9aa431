"""How one text of a corpus is cleaned, and which lengths are kept (P1, section 4.1)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SHORTEST_TEXT = 10
"""Cleaned texts with fewer characters are dropped."""

_URL = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
_MENTION = re.compile(r"(?<![\w@])(?:@+\w+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationOptions:
    """What of the cleaned texts is kept."""

    sample: float = 1.0
    """Fraction of the cleaned texts, in (0, 1]; P1 keeps 0.1."""
    seed: int = 42


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthFence:
    """Token counts from `low` to `high`, both kept: Q1 - 1.5 IQR to Q3 + 1.5 IQR."""

    q1: float
    q3: float
    low: float
    high: float


def length_fence(counts: npt.NDArray[np.int32]) -> LengthFence:
    """Return Tukey's fence of at least one token count; quartiles interpolate linearly."""
    q1, q3 = (float(value) for value in np.percentile(counts, [25, 75]))
    spread = 1.5 * (q3 - q1)
    return LengthFence(q1=q1, q3=q3, low=q1 - spread, high=q3 + spread)


def clean_text(text: str) -> str:
    """Return `text` in lower case, without URLs and @mentions, single blanks between words.

    An e-mail address is no mention: it stays.
    """
    without = _MENTION.sub(" ", _URL.sub(" ", text))
    return " ".join(without.lower().split())


def is_sampled(id_: str, options: PreparationOptions) -> bool:
    """Return whether a document belongs to the sample: its id and the seed alone decide."""
    digest = hashlib.sha256(f"{options.seed}\x00{id_}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < options.sample * 2.0**64
