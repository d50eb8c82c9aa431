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
    resemblance = alike(vectors, vectors, repeats)
    np.fill_diagonal(resemblance, 0)
    sums = np.rint(resemblance.sum(axis=1) / 10)  # a difference beyond three decimals is none
    if not sums.any():
        return -1, []
    row = int(np.argmax(sums))
    return row, sorted({row, *np.flatnonzero(resemblance[row] > 0).tolist()})
