"""Confidence bounds for a change that invert the sign-flip test, from means of random subsets.

J. A. Hartigan, "Using subsample values as typical values", JASA 64 (1969) 1303-1317: shifting
every source's change by -x, the sign-flip test counts a flip of the sources F against "the change
is x" exactly where the mean change over F is <= x. So the sorted means over random subsets F are
at once the p value for every x and the bounds at every level: a bound excludes x if and only if
the test of x rejects, and "significant" and "the bound excludes 0" are one statement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairgate.stats.observations import Floats

ALL_SUBSETS_UP_TO = 14
_TIE = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TypicalValues:
    """Sums and means of the change over non-empty subsets of sources, each ascending.

    `n_arrangements` counts the subsets drawn (or all of them) and the observed arrangement;
    `always` of these count against every hypothesis: the observed one and empty draws.
    """

    sums: Floats
    means: Floats
    total: float
    n_arrangements: int
    always: int
    tolerance: float

    @classmethod
    def of(
        cls, changes: Floats, shares: Floats, *, rng: np.random.Generator, n_draws: int = 20_000
    ) -> TypicalValues:
        """Draw subsets of the sources with `changes` [G] (they add up to the change).

        `shares` [G] is how a uniform change would spread over the sources (adds up to 1). All
        subsets where there are at most 14 sources, else `n_draws` random ones. The result does not
        depend on the order of the sources. Time O(n_draws * G), memory O(n_draws + G).
        """
        order = np.lexsort((shares, changes))
        columns = np.stack([changes[order], shares[order]], axis=1)
        scale = float(np.abs(columns[:, 0]).sum())
        exact = np.stack([_on_grid(columns[:, 0]), _on_grid(columns[:, 1])], axis=1)
        if len(changes) <= ALL_SUBSETS_UP_TO:
            drawn = _subsets(len(changes))[1:] @ exact
        else:
            drawn = _random_subset_sums(exact, n_draws, rng)
        empty = drawn[:, 1] <= 0
        known = drawn[~empty]
        tolerance = _TIE * scale
        sums = np.where(np.abs(known[:, 0]) <= tolerance, 0.0, known[:, 0])
        return cls(
            sums=np.sort(sums),
            means=np.sort(sums / known[:, 1]),
            total=math.fsum(changes.tolist()),
            n_arrangements=len(drawn) + 1,
            always=int(np.count_nonzero(empty)) + 1,
            tolerance=tolerance,
        )

    @property
    def smallest_p(self) -> float:
        """Return the smallest p value that these draws can give."""
        return self.always / self.n_arrangements

    def p_above(self, shift: float) -> float:
        """Return the one-sided p value of "the change is at most `shift`"."""
        reached = int(self.means.searchsorted(shift, side="right"))
        return (self.always + reached) / self.n_arrangements

    def p_reach(self, target: float) -> float:
        """Return P(sum under sign flips >= target) if nothing changed."""
        # Flipping F takes the sum from total to total - 2 * sum over F.
        allowed = (self.total - target) / 2 + self.tolerance
        reached = int(self.sums.searchsorted(allowed, side="right"))
        counted = self.always if target <= self.total + self.tolerance else 1
        return (counted + reached) / self.n_arrangements

    def bounds(self, level: float) -> tuple[float, float]:
        """Return the lower and the upper bound of the change, each one-sided at `level`.

        Infinite where no arrangement is rare enough. The lower bound is above x if and only if
        `p_above(x) <= level`.
        """
        rank = math.floor(level * self.n_arrangements + 1e-9) - self.always + 1
        if rank < 1 or rank > len(self.means):
            return -math.inf, math.inf
        return float(self.means[rank - 1]), float(self.means[-rank])


def _on_grid(column: Floats) -> Floats:
    """Round to a binary grid on which every subset sum is exact, whatever the order of adding."""
    total = float(np.abs(column).sum())
    if not total:
        return column
    grid = 2.0 ** (51 - math.ceil(math.log2(total)))
    return np.asarray(np.rint(column * grid) / grid, dtype=np.float64)


def _subsets(n_sources: int) -> Floats:
    members = np.arange(2**n_sources)[:, None] >> np.arange(n_sources)
    return (members & 1).astype(np.float64)


def _random_subset_sums(columns: Floats, n_draws: int, rng: np.random.Generator) -> Floats:
    """Return [n_draws, 2] the sums of both columns [G, 2] over random subsets of the rows."""
    drawn = np.zeros((n_draws, columns.shape[1]))
    for start in range(0, len(columns), 8):
        eight = columns[start : start + 8]
        # One random byte picks the subset of eight sources: a table look-up instead of 8 coins.
        table = _subsets(len(eight)) @ eight
        coins = np.frombuffer(rng.bytes(n_draws), dtype=np.uint8)
        drawn += table[coins & (len(table) - 1)]
    return drawn
