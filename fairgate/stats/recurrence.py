"""Whether the same strange thing recurs across sources: the largest group of answers alike.

Each answer to a source has a vector: the direction of its strangest sentence, scaled so that
nothing strange is short. Answers whose vectors have a product above 0.25 hold sentences that
resemble each other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairgate.domain.ports import Vectors

RESEMBLES = 0.25
"""Product of two vectors above which their sentences count as alike."""
_UNITS = 10_000
_ROWS_AT_ONCE = 1024
"""Rows that are compared with all others together: memory grows with the rows, not their square."""


def alike(vectors: Vectors, others: Vectors, repeats: int = 1) -> npt.NDArray[np.int32]:
    """By how much vectors [n, d] and [m, d] resemble each other beyond `RESEMBLES`, [n, m].

    Of several repeats a row holds their vectors, one behind the other: the sum over all their
    pairs. Whole ten-thousandths: sums are the same in whatever order.
    """
    width = vectors.shape[1] // repeats
    rows, columns = vectors.reshape(-1, width), others.reshape(-1, width)
    products = np.rint(np.asarray(rows @ columns.T, dtype=np.float64) * _UNITS)
    beyond = np.asarray(np.maximum(products - _UNITS * RESEMBLES, 0.0), dtype=np.int32)
    if repeats == 1:
        return beyond
    paired = beyond.reshape(len(vectors), repeats, len(others), repeats)
    return np.asarray(paired.sum(axis=(1, 3)), dtype=np.int32)


def core(vectors: Vectors, repeats: int = 1) -> tuple[int, list[int]]:
    """Find the row of vectors [n, d] that the others resemble most, and the rows like it.

    The row itself is among them. The first of equal ones; -1 and none where no two are alike.
    """
    most, row, like_it = 0.0, -1, set[int]()
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        resemblance = alike(vectors[start : start + _ROWS_AT_ONCE], vectors, repeats)
        np.fill_diagonal(resemblance[:, start:], 0)
        sums = np.rint(resemblance.sum(axis=1) / 10)  # a difference beyond three decimals is none
        first = int(np.argmax(sums))
        if sums[first] > most:
            most, row = float(sums[first]), start + first
            like_it = {row, *np.flatnonzero(resemblance[first] > 0).tolist()}
    return row, sorted(like_it)
