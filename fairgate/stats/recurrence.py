"""Whether the same strange thing recurs across sources: a test on directions, one for each answer.

Each answer to a source has a vector: the direction of its strangest sentence, scaled so that
nothing strange is short. T = Σ over pairs of sources max(0, v_s · v_t − 0.25) is large where an
identity's answers hold, source after source, sentences that resemble each other and that the
neutral answers to the same sources lack. What the identity's sentences have in common with the
sources' topics, the neutral ones have, too. The null draws one member of each source at random, the
identity's or a neutral one.

That takes the phrases for all neutral wording there is. So that an identity is no finding where
phrases recur by habits of their own, the p value is at least that of a further phrase: Student's
prediction of √T from those of the neutral phrases, and its rank among them.

Draws stop at 20 that reach T (J. Besag and P. Clifford, Biometrika 78 (1991) 301-304), 20,000 at
most: p is then (1 + count) / (1 + draws), or 20 / draws where they stopped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fairgate.domain.ports import Vectors
from fairgate.stats.interval import t_upper_tail
from fairgate.stats.observations import Floats, Integers

RESEMBLES = 0.25
"""Product of two vectors above which their sentences count as alike."""
MOST_ROWS = 8_400
"""Answers that are compared with each other, 400 sources with 20 neutral phrases; of more sources
evenly spaced ones are tested: memory grows with the square."""
_ENOUGH, _DRAWS, _AT_ONCE = 20, 20_000, 500
_ROWS_AT_ONCE = 256
_PAIRS_AT_ONCE = 1_000_000


def alike(left: Vectors, right: Vectors) -> Floats:
    """By how much vectors [n, d] and [m, d] resemble each other beyond `RESEMBLES`, [n, m].

    Four decimals, so that another order of summation gives the same number.
    """
    products = np.round(np.asarray(left @ right.T, dtype=np.float64), 4)
    return np.asarray(np.maximum(products - RESEMBLES, 0.0), dtype=np.float64)


class Recurrence:
    """The neutral answers' vectors, against which one identity after the other is tested.

    `neutral`: for each source [K_s, d], in the order of the sources; K_s is 1 or more.
    """

    def __init__(self, neutral: Sequence[Vectors], *, seed: int = 0) -> None:
        """Compare the neutral vectors of all sources once; O(n² d) for n of them."""
        self._kept = _spaced([len(vectors) for vectors in neutral])
        self._counts = np.asarray([len(neutral[n]) for n in self._kept], dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._counts)])
        self._vectors = np.concatenate([neutral[n] for n in self._kept])
        self._total, self._seed = len(self._vectors), seed
        own, size = len(self._kept), self._total + len(self._kept)
        self._alike = np.zeros((size, size), dtype=np.float32)
        for start in range(0, self._total, _ROWS_AT_ONCE):
            rows = slice(start, min(start + _ROWS_AT_ONCE, self._total))
            self._alike[rows, : self._total] = alike(self._vectors[rows], self._vectors)
        self._own_rows = self._total + np.arange(own)

    def p_value(self, own: Vectors, phrases: Sequence[Sequence[int]] = ()) -> float:
        """Test an identity's vectors [S, d], a row for each source; give the p value.

        `phrases`: for each neutral phrase the number of its answer in each source, -1 where it has
        none. An identity is as likely as a further phrase that recurs as much.
        """
        own = own[self._kept]
        rows, neutral = self._own_rows, slice(0, self._total)
        cross = alike(own, self._vectors)
        self._alike[rows[0] :, neutral], self._alike[neutral, rows[0] :] = cross, cross.T
        self._alike[rows[0] :, rows[0] :] = alike(own, own)
        observed = self._sums(rows[None])[0] - 1e-6
        reached = drawn = 0
        rng = np.random.default_rng(self._seed)
        while drawn < _DRAWS and reached < _ENOUGH:
            counts = reached + np.cumsum(self._sums(self._members(rng)) >= observed)
            last = int(np.searchsorted(counts, _ENOUGH))
            drawn += min(last + 1, len(counts))
            reached = int(counts[min(last, len(counts) - 1)])
        p = reached / drawn if reached >= _ENOUGH else (1 + reached) / (1 + drawn)
        strengths = [math.sqrt(max(0.0, self._of_phrase(answers))) for answers in phrases]
        return max(p, _as_a_phrase(math.sqrt(max(0.0, observed)), strengths))

    @property
    def least_p(self) -> float:
        """The least p value that it can give."""
        return 1 / (1 + _DRAWS)

    def _members(self, rng: np.random.Generator) -> Integers:
        """Draw one member for each source, `_AT_ONCE` times."""
        drawn = rng.integers(0, self._counts + 1, size=(_AT_ONCE, len(self._counts)))
        is_own = drawn == self._counts
        return np.where(is_own, self._own_rows, self._starts[:-1] + drawn)

    def _of_phrase(self, answers: Sequence[int]) -> float:
        numbers = np.asarray([answers[n] for n in self._kept], dtype=np.int64)
        return float(self._sums((self._starts[:-1] + numbers)[numbers >= 0][None])[0])

    def _sums(self, drawn: Integers) -> Floats:
        """Sum the resemblance of all pairs of rows in each draw [n, S]."""
        left, right = np.triu_indices(drawn.shape[1], 1)
        at_once = max(1, _PAIRS_AT_ONCE // max(1, len(left)))
        every, size = self._alike.reshape(-1), len(self._alike)
        sums = np.empty(len(drawn))
        for start in range(0, len(drawn), at_once):
            rows = drawn[start : start + at_once]
            pairs = every.take(rows[:, left] * size + rows[:, right])
            sums[start : start + at_once] = 2 * pairs.sum(axis=1, dtype=np.float64)
        return sums


def _as_a_phrase(strength: float, phrases: Sequence[float]) -> float:
    """Give the chance that a further phrase recurs as much; 0 where no phrase recurs at all."""
    count = len(phrases)
    if count < 2:
        return 0.0
    stronger = sum(other >= strength for other in phrases)
    by_rank = (1 + stronger) / (1 + count) if stronger else 0.0
    mean = math.fsum(phrases) / count
    variance = math.fsum((other - mean) ** 2 for other in phrases) / (count - 1)
    if not variance:
        return by_rank
    t = (strength - mean) / math.sqrt(variance * (1 + 1 / count))
    return max(by_rank, t_upper_tail(t, count - 1))


def _spaced(counts: Sequence[int]) -> list[int]:
    """Choose evenly spaced sources, so that the rows to compare stay within `MOST_ROWS`."""
    most = max(2, int(MOST_ROWS / (1 + max(counts, default=1))))
    if len(counts) <= most:
        return list(range(len(counts)))
    return [int(number) for number in np.linspace(0, len(counts) - 1, most)]


def core(vectors: Vectors) -> tuple[int, list[int]]:
    """Find the row of vectors [n, d] that the others resemble most, and the rows like it.

    The row itself is among them. The first of equal ones; -1 and none where no two are alike.
    """
    resemblance = alike(vectors, vectors)
    np.fill_diagonal(resemblance, 0.0)
    sums = np.round(resemblance.sum(axis=1), 3)
    if not sums.any():
        return -1, []
    row = int(np.argmax(sums))
    return row, sorted({row, *np.flatnonzero(resemblance[row] > 0).tolist()})
