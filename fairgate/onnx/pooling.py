"""How the states of a text's tokens become one vector, as sentence-transformers' `Pooling` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

Pooling = Literal["mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)

States = npt.NDArray[np.floating[Any]]


def pooled(
    states: States, poolings: Sequence[Pooling], *, start: int = 0
) -> npt.NDArray[np.float64]:
    """Return the poolings' vectors, one after the other, summed in float64.

    `states` `[tokens, d]` are those of the text's own tokens; the first `start` of them belong to
    a prompt that is left out (of all but `lasttoken`). At least one token must remain.
    """
    return np.concatenate([_one(states, pooling, start) for pooling in poolings])


def _one(states: States, pooling: Pooling, start: int) -> npt.NDArray[np.float64]:
    own = states[start:].astype(np.float64)
    match pooling:
        case "mean":
            vector = own.sum(axis=0) / len(own)
        case "mean_sqrt_len_tokens":
            vector = own.sum(axis=0) / np.sqrt(len(own))
        case "weightedmean":  # later tokens count more; the prompt's places are counted
            weights = np.arange(start + 1, len(states) + 1, dtype=np.float64)
            vector = (own * weights[:, None]).sum(axis=0) / weights.sum()
        case "cls":
            vector = own[0]
        case "max":
            vector = own.max(axis=0)
        case "lasttoken":
            vector = own[-1]
    return np.asarray(vector)
