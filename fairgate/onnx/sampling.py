"""Chooses the next token: greedy, or drawn after temperature, top-k and top-p.

The warpers are applied in the order of `transformers` (temperature, top-k, top-p) and keep the
same tokens. One uniform number is drawn per token, so an answer depends on its seed alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.executions import Decoding

Floats = npt.NDArray[np.float64]


def token_probabilities(logits: npt.NDArray[Any], decoding: Decoding) -> Floats:
    """Return `[vocabulary]` probabilities that sum to 1; dropped tokens have exactly 0.

    Top-k keeps ties with the k-th; top-p keeps the smallest set of most probable tokens whose
    mass reaches `top_p`, ties by lower token id, always at least one. Greedy puts all mass on
    the first maximum.
    """
    scores = logits.astype(np.float64)
    if decoding.is_greedy:
        chosen = np.zeros_like(scores)
        chosen[scores.argmax()] = 1.0
        return chosen
    scores /= decoding.temperature
    kept = np.arange(scores.size)
    if 0 < decoding.top_k < scores.size:
        cut = scores.size - decoding.top_k
        kept = np.flatnonzero(scores >= np.partition(scores, cut)[cut])
    weights = np.exp(scores[kept] - scores[kept].max())
    if decoding.top_p < 1.0:
        # By score: weights of scores that differ in the last bits are equal.
        order = np.argsort(-scores[kept], kind="stable")
        mass = np.cumsum(weights[order]) / weights.sum()
        number = int(np.searchsorted(mass, decoding.top_p, side="left")) + 1
        inside = np.sort(order[:number])
        kept, weights = kept[inside], weights[inside]
    result = np.zeros_like(scores)
    result[kept] = weights / weights.sum()
    return result


def choose_token(logits: npt.NDArray[Any], decoding: Decoding, rng: np.random.Generator) -> int:
    """Return a token id; draws one number from `rng` unless greedy."""
    if decoding.is_greedy:
        return int(logits.argmax())
    probabilities = token_probabilities(logits, decoding)
    kept = np.flatnonzero(probabilities)
    mass = np.cumsum(probabilities[kept])
    place = int(np.searchsorted(mass, rng.random() * mass[-1], side="right"))
    return int(kept[min(place, kept.size - 1)])
