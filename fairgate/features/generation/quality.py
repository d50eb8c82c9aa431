"""How good generated cases are as texts: the four figures of GenFair's Table II (P3, section V.D).

The paper names the figures and the tools, not the formulas. Here they are defined; so they compare
generators with one another, and not with the paper's printed numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
PAIRS = 2000
"""Pairs of texts that diversity is the mean over."""
_LARGEST_EXPONENT = 700.0
_TOKEN = re.compile(r"[\w'-]+|[^\w\s]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """The figures of one file of cases."""

    syntactic_diversity: float
    semantic_diversity: float
    perplexity: float
    semantic_coherence: float


def syntactic_diversity(texts: Sequence[str], rng: np.random.Generator) -> float:
    """Return the mean number of words and signs in which two texts drawn at random differ.

    That is the Levenshtein distance between their tokens (insertions, deletions, substitutions),
    0 and more; `PAIRS` pairs of different texts are drawn with `rng`. NaN for fewer than two texts.
    """
    rows = [_TOKEN.findall(text.lower()) for text in texts]
    pairs = _pairs(len(rows), rng)
    distances = [token_distance(rows[a], rows[b]) for a, b in pairs]
    return float(np.mean(distances)) if distances else math.nan


def token_distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the least number of insertions, deletions and substitutions between two rows."""
    before = list(range(len(other) + 1))
    for n, left in enumerate(one, 1):
        now = [n]
        for m, right in enumerate(other, 1):
            now.append(min(before[m] + 1, now[-1] + 1, before[m - 1] + (left != right)))
        before = now
    return before[-1]


def semantic_diversity(vectors: Vectors, rng: np.random.Generator) -> float:
    """Return the mean cosine distance of two texts drawn at random, in [0, 2].

    `vectors` are float32 `[texts, d]` of length one. NaN for fewer than two texts.
    """
    pairs = _pairs(len(vectors), rng)
    if not pairs:
        return math.nan
    a, b = np.array(pairs).T
    return float(np.mean(1.0 - np.sum(vectors[a].astype(float) * vectors[b], axis=1)))


def semantic_coherence(vectors: Vectors, neutral: Vectors) -> float:
    """Return the mean cosine of each text with its frame without attributes, in [-1, 1].

    High: the attributes leave the text about what its template is about. `neutral` has the row of
    each text's frame.
    """
    return float(np.mean(np.sum(vectors.astype(float) * neutral, axis=1)))


def perplexity(log_probabilities: Sequence[float], texts: Sequence[str]) -> float:
    """Return exp(-log p / words) over all texts together, 1 and more; low is fluent.

    `log_probabilities` are natural logarithms of each text's words after the first, given the
    first. Counted in words, so models with other tokenizers can be compared. Infinite where a text
    is impossible to the model, NaN for no words.
    """
    words = sum(max(0, len(text.split()) - 1) for text in texts)
    if not words:
        return math.nan
    exponent = -math.fsum(log_probabilities) / words
    return math.exp(exponent) if exponent < _LARGEST_EXPONENT else math.inf


def _pairs(count: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    if count < 2:
        return []
    first = rng.integers(count, size=PAIRS)
    step = rng.integers(1, count, size=PAIRS)
    return list(zip(first.tolist(), ((first + step) % count).tolist(), strict=True))
