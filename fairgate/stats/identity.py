"""Does any identity differ from the others? Permutation of the terms within each source.

If a system treats all identities alike, the values of a source's follow-ups are exchangeable
between its terms (a randomised block design: E. S. Edgington and P. Onghena, Randomization Tests,
2007, chapter 6), however strongly the source reacts to prefixes as such. Overall: the largest
difference between a term and the rest; by term: its own difference, corrected by Holm. Of all
permutations the rotations are drawn: a group of their own, so the test stays exact (E. L. Lehmann
and J. P. Romano, Testing Statistical Hypotheses, 2005, section 15.2), and each term meets each
value of a source equally often, as under all permutations, at a tenth of the cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np

from fairgate.stats.multiplicity import holm
from fairgate.stats.observations import Floats, Integers, Levels, Observations

_TIE = 1e-9
_MOST_MOVES = 1_000_000_000
_FEWEST = 999
_AT_ONCE = 64
"""Sources whose draws are made at the same time."""
Block = tuple[Floats, Integers]
"""Values and terms of one source's cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TermDifference:
    """A term against the rest: mean of the term less mean of all other terms."""

    term: str
    difference: float
    p_value: float
    adjusted_p: float
    n_decided: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityTest:
    """Terms by the size of their difference, and the p value of the largest one.

    `n_informative` counts the sources whose values differ between terms: only they carry evidence.
    """

    terms: tuple[TermDifference, ...]
    p_value: float
    n_informative: int

    @property
    def max_difference(self) -> float:
        """Return the size of the largest difference; NaN where no two terms are decided."""
        return abs(self.terms[0].difference) if self.terms else math.nan


def identity_test(
    obs: Observations,
    terms: Sequence[str],
    *,
    alpha: float,
    rng: np.random.Generator,
    n_draws: int = 10_000,
    ranks: Integers | None = None,
) -> IdentityTest:
    """Test whether the terms [n] of the cases matter; two-sided, (1 + count) / (1 + draws).

    Arms and weights do not enter. Does not depend on the order of the cases; `ranks` [n] tell that
    of their keys where it is known. Time O(draws * cases of informative sources) at worst, so above
    100,000 cases there are fewer draws, down to 999; memory O(draws * terms).
    """
    cells = _Cells.of(obs, terms, ranks)
    if len(cells.names) < 2:
        return IdentityTest(terms=(), p_value=1.0, n_informative=0)
    observed = cells.differences(cells.sums()[None, :])[0]
    blocks = list(cells.informative())
    n_draws = min(n_draws, max(_FEWEST, _MOST_MOVES // len(cells.values)))
    drawn = cells.differences(_rotated_sums(cells, blocks, rng, n_draws))
    reached = np.abs(drawn) >= np.abs(observed) - _TIE
    p_values = (1 + reached.sum(axis=0)) / (1 + n_draws)
    largest = float(np.abs(observed).max())
    overall = int(np.count_nonzero(np.abs(drawn).max(axis=1) >= largest - _TIE))
    corrected = holm(p_values.tolist(), alpha=alpha)
    found = [
        TermDifference(
            term=name,
            difference=float(observed[index]),
            p_value=float(p_values[index]),
            adjusted_p=corrected[index].adjusted_p,
            n_decided=int(cells.counts[index]),
        )
        for index, name in enumerate(cells.names)
    ]
    found.sort(key=lambda term: (-abs(term.difference), term.term))
    return IdentityTest(
        terms=tuple(found),
        p_value=(1 + overall) / (1 + n_draws),
        n_informative=len(blocks),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cells:
    """Decided cases in the order of their keys: value, source and term of each."""

    names: tuple[str, ...]
    values: Floats
    sources: Integers
    terms: Integers
    counts: Integers

    @classmethod
    def of(cls, obs: Observations, terms: Sequence[str], ranks: Integers | None) -> _Cells:
        if ranks is None:
            by_key = np.asarray(sorted(range(len(obs.keys)), key=obs.keys.__getitem__), np.int64)
        else:
            by_key = np.argsort(ranks)
        order = by_key[obs.decided[by_key]]
        levels = Levels.of(terms).taken(order).in_order()
        return cls(
            names=levels.names,
            values=obs.values[order],
            sources=np.asarray(obs.clusters[order], dtype=np.int64),
            terms=levels.codes.astype(np.int64),
            counts=np.bincount(levels.codes, minlength=len(levels.names)).astype(np.int64),
        )

    def sums(self) -> Floats:
        """Return [T] the sum of each term's values."""
        sums = np.bincount(self.terms, weights=self.values, minlength=len(self.names))
        return sums.astype(np.float64)

    def differences(self, sums: Floats) -> Floats:
        """Return [..., T] mean of each term less mean of the others, from sums [..., T]."""
        total, n = float(self.values.sum()), len(self.values)
        rest = (total - sums) / (n - self.counts)
        return np.asarray(sums / self.counts - rest, dtype=np.float64)

    def informative(self) -> Iterator[Block]:
        """Yield values and terms of each source whose values are not all equal."""
        if not len(self.values):
            return
        _, first, owner = np.unique(self.sources, return_index=True, return_inverse=True)
        by_source = np.argsort(first[owner], kind="stable")
        edges = np.concatenate([[0], np.flatnonzero(np.diff(self.sources[by_source])) + 1])
        values, terms = self.values[by_source], self.terms[by_source]
        varies = np.minimum.reduceat(values, edges) < np.maximum.reduceat(values, edges)
        ends = np.append(edges[1:], len(values))
        for start, end in zip(edges[varies].tolist(), ends[varies].tolist(), strict=True):
            yield values[start:end], terms[start:end]


def _rotated_sums(
    cells: _Cells,
    blocks: Sequence[Block],
    rng: np.random.Generator,
    n_draws: int,
) -> Floats:
    """Return [n_draws, T] the terms' sums with each source's values rotated at random."""
    n_terms = len(cells.names)
    moving = np.zeros(n_terms)
    sums, added = np.zeros((n_draws, n_terms)), np.empty((n_draws, n_terms))
    for size, alike in groupby(blocks, lambda block: len(block[0])):
        rest = list(alike)
        for start in range(0, len(rest), _AT_ONCE):
            some = rest[start : start + _AT_ONCE]
            draws = rng.integers(0, size, size=(len(some), n_draws))
            for (values, terms), places in zip(some, draws, strict=True):
                rotated = _rotations(values.tobytes(), terms.tobytes(), n_terms)
                # The mode spares a check of the places, and with it a copy.
                np.take(rotated, places, axis=0, out=added, mode="clip")
                sums += added
                moving += rotated[0]
    return sums + (cells.sums() - moving)


@lru_cache(maxsize=512)
def _rotations(values: bytes, terms: bytes, n_terms: int) -> Floats:
    """Return [L, T] the sums of the terms where the values of a source are moved by 0 to L - 1.

    Sources are many, and those with the same values and terms have the same.
    """
    found = np.frombuffer(values)
    places = np.arange(len(found))
    rotated = np.zeros((len(found), n_terms))
    of_terms = np.frombuffer(terms, dtype=np.int64)
    # A source may use a term twice (repeats), so values are added, not assigned.
    np.add.at(rotated, (places[:, None], of_terms), found[places - places[:, None]])
    return rotated
