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
most: p is then (1 + count) / (1 + draws), or 20 / draws where they stopped. The draws are the same
for all identities, so that the pairs of neutral answers are summed once for all of them. Many
sources are cut into blocks of successive ones, and T is over the pairs within a block: time grows
with the sources, not with their square, and memory is that of one block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from fairgate.domain.ports import Vectors
from fairgate.stats.interval import t_upper_tail
from fairgate.stats.observations import Integers

RESEMBLES = 0.25
"""Product of two vectors above which their sentences count as alike."""
MOST_ROWS = 8_400
"""Answers in a block, 400 sources with 20 neutral phrases and an identity."""
_ENOUGH, _DRAWS, _AT_ONCE = 20, 20_000, 500
_ROWS_AT_ONCE = 256
_UNITS = 10_000
LEAST_P = 1 / (1 + _DRAWS)
"""The least p value that draws can give."""


def alike(left: Vectors, right: Vectors, repeats: int = 1) -> npt.NDArray[np.int32]:
    """By how much vectors [n, d] and [m, d] resemble each other beyond `RESEMBLES`, [n, m].

    Of several repeats a row holds their vectors, one behind the other: the sum over all their
    pairs. Whole ten-thousandths: sums are the same in whatever order.
    """
    width = left.shape[1] // repeats
    rows, columns = left.reshape(-1, width), right.reshape(-1, width)
    products = np.rint(np.asarray(rows @ columns.T, dtype=np.float64) * _UNITS)
    beyond = np.asarray(np.maximum(products - _UNITS * RESEMBLES, 0.0), dtype=np.int32)
    if repeats == 1:
        return beyond
    paired = beyond.reshape(len(left), repeats, len(right), repeats)
    return np.asarray(paired.sum(axis=(1, 3)), dtype=np.int32)


def recurrence_p(
    neutral: Sequence[Vectors],
    identities: Sequence[Vectors],
    phrases: Sequence[Sequence[int]] = (),
    *,
    repeats: int = 1,
    seed: int = 0,
) -> list[float]:
    """Test identities, one after the other, beside the neutral answers; give their p values.

    `neutral`: for each source [K_s, d], in the order of the sources; K_s is 1 or more.
    `identities`: for each [S, d], a row for each source. `phrases`: for each neutral phrase the
    number of its answer in each source, -1 where it has none: an identity is as likely as a further
    phrase that recurs as much. Of `repeats`, a row holds all vectors of an answer. Deterministic.
    """
    blocks = _blocks([len(vectors) for vectors in neutral])
    observed, of_phrases = [0] * len(identities), [0] * len(phrases)
    first = np.zeros((len(identities), _AT_ONCE), dtype=np.int64)
    block: _Block | None = None
    for number, sources in enumerate(blocks):
        block = _Block(neutral[sources], repeats=repeats, seed=seed + number)
        own = [vectors[sources] for vectors in identities]
        for n, vectors in enumerate(own):
            observed[n] += int(_among(vectors, repeats).sum(dtype=np.int64))
        for n, answers in enumerate(phrases):
            of_phrases[n] += block.of_answers(answers[sources])
        for sums in block.draw(own, 0, 1):
            first += sums
    reached = [row >= least for row, least in zip(first, observed, strict=True)]
    undecided = [n for n, row in enumerate(reached) if row.sum() < _ENOUGH]
    rest = np.zeros((len(undecided), _DRAWS - _AT_ONCE), dtype=np.int64)
    for number, sources in enumerate(blocks if undecided else []):
        if len(blocks) > 1 or block is None:
            block = _Block(neutral[sources], repeats=repeats, seed=seed + number)
        own = [identities[n][sources] for n in undecided]
        for batch, sums in enumerate(block.draw(own, 1, _DRAWS // _AT_ONCE)):
            rest[:, batch * _AT_ONCE : (batch + 1) * _AT_ONCE] += sums
    for row, n in zip(rest, undecided, strict=True):
        reached[n] = np.concatenate([reached[n], row >= observed[n]])
    strengths = [math.sqrt(strength / _UNITS) for strength in of_phrases]
    return [
        max(_stopped(row), _as_a_phrase(math.sqrt(strength / _UNITS), strengths))
        for row, strength in zip(reached, observed, strict=True)
    ]


def _among(vectors: Vectors, repeats: int) -> npt.NDArray[np.int32]:
    """By how much vectors [n, d] resemble each other, [n, n]; none resembles itself."""
    resemblance = alike(vectors, vectors, repeats)
    np.fill_diagonal(resemblance, 0)
    return resemblance


def _stopped(reached: npt.NDArray[np.bool_]) -> float:
    """Give the p value of draws, of which those that reach T are marked, in their order."""
    counts = np.cumsum(reached)
    if counts[-1] < _ENOUGH:
        return float((1 + counts[-1]) / (1 + len(reached)))
    return _ENOUGH / (1 + int(np.searchsorted(counts, _ENOUGH)))


def _blocks(counts: Sequence[int]) -> list[slice]:
    """Cut the sources into blocks of as many as possible, successive ones, of equal size."""
    most = max(2, MOST_ROWS // (1 + max(counts, default=1)))
    parts = np.array_split(np.arange(len(counts)), max(1, math.ceil(len(counts) / most)))
    return [slice(int(part[0]), int(part[-1]) + 1) for part in parts if len(part)]


class _Block:
    """How much the neutral answers to some sources resemble each other, in all pairs."""

    def __init__(self, neutral: Sequence[Vectors], *, repeats: int, seed: int) -> None:
        self._counts = np.asarray([len(vectors) for vectors in neutral], dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._counts)])[:-1]
        self._vectors = np.concatenate(neutral)
        self._repeats, self._seed = repeats, seed
        self._none = len(self._vectors)
        """Number of a row that resembles nothing: it stands for an identity's answer."""
        self._alike = np.zeros((self._none + 1, self._none + 1), dtype=np.int32)
        at_once = max(1, _ROWS_AT_ONCE // repeats**2)
        for start in range(0, self._none, at_once):
            rows = slice(start, min(start + at_once, self._none))
            self._alike[rows, : self._none] = alike(self._vectors[rows], self._vectors, repeats)

    def of_answers(self, numbers: Sequence[int]) -> int:
        """Sum over the pairs of a phrase's answers, by their numbers in each source; -1: none."""
        chosen = np.asarray(numbers, dtype=np.int64)
        return int(self._sums((self._starts + chosen)[chosen >= 0][None])[0])

    def draw(self, identities: Sequence[Vectors], first: int, last: int) -> Iterator[Integers]:
        """Yield the sums of draws [identities, `_AT_ONCE`], for batches `first` to `last` - 1.

        A draw takes one member of each source, the identity's or a neutral one.
        """
        rng = np.random.default_rng(self._seed)
        none, width = np.zeros((len(self._counts), 1), dtype=np.int32), self._none + 1
        beside = [
            (
                np.hstack([alike(own, self._vectors, self._repeats), none]),
                _among(own, self._repeats).astype(np.float64),
            )
            for own in identities
        ]
        for batch in range(last):
            drawn = rng.integers(0, self._counts + 1, size=(_AT_ONCE, len(self._counts)))
            if batch < first:
                continue
            is_own = drawn == self._counts
            rows = np.where(is_own, self._none, self._starts + drawn)
            draws, sources = np.nonzero(is_own)
            own, crossed = is_own.astype(np.float64), sources[:, None] * width + rows[draws]
            sums = np.tile(self._sums(rows), (len(identities), 1))
            for number, (to_neutral, among) in enumerate(beside):
                between = np.einsum("ns,ns->n", own @ among, own)
                of_own = to_neutral.take(crossed).sum(axis=1)
                between += 2 * np.bincount(draws, of_own, minlength=_AT_ONCE)
                sums[number] += between.astype(np.int64)
            yield sums

    def _sums(self, drawn: Integers) -> Integers:
        """Sum the resemblance of all pairs of rows in each draw [n, S]."""
        every, size = self._alike.reshape(-1), len(self._alike)
        sums = np.zeros(len(drawn), dtype=np.int64)
        for source in range(drawn.shape[1] - 1):
            pairs = drawn[:, source, None] * size + drawn[:, source + 1 :]
            sums += 2 * every.take(pairs).sum(axis=1, dtype=np.int64)
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


def core(vectors: Vectors, repeats: int = 1) -> tuple[int, list[int]]:
    """Find the row of vectors [n, d] that the others resemble most, and the rows like it.

    The row itself is among them. The first of equal ones; -1 and none where no two are alike.
    """
    resemblance = _among(vectors, repeats)
    sums = np.rint(resemblance.sum(axis=1) / 10)  # a difference beyond three decimals is none
    if not sums.any():
        return -1, []
    row = int(np.argmax(sums))
    return row, sorted({row, *np.flatnonzero(resemblance[row] > 0).tolist()})
