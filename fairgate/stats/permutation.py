"""Permutation tests, whose p values need no distribution, and Holm's correction for several tests.

*Sign flips* test "nothing changed" since an earlier run. If run and baseline are exchangeable
within each source (an unchanged system), the sign of every source's change is a fair coin: R. A.
Fisher, The Design of Experiments, 1935, section 21; E. S. Edgington and P. Onghena, Randomization
Tests, 2007, chapter 3. Exact wherever that is affordable. The statistic is the sum of the sources'
changes; given their absolute values it rejects for the same sign vectors as Student's t, so
studentising would not change a single decision. Monte Carlo p values count the observed
arrangement: B. Phipson and G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010) article 39.

*Holm's correction*: S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J.
Statist. 6 (1979) 65-70: the chance of any false rejection stays at alpha, whatever the dependence.
A test that could reject for no arrangement of its data leaves the family: R. E. Tarone, "A modified
Bonferroni method for discrete data", Biometrics 46 (1990) 515-522. That is known without the
arrangement that was observed, so the guarantee stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairgate.stats.observations import Floats

ALL_SUBSETS_UP_TO = 14
_TIE = 1e-10
_DRAWS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TypicalValues:
    """Sums of the change over non-empty subsets of sources, and its means, ascending.

    `n_arrangements` counts the subsets drawn (or all of them) and the observed arrangement;
    `always` of these count against every hypothesis: the observed one and empty draws.

    J. A. Hartigan, "Using subsample values as typical values", JASA 64 (1969) 1303-1317: shifting
    every source's change by -x, the sign-flip test counts a flip of the sources F against "the
    change is x" exactly where the mean change over F is <= x. So the sorted means over random
    subsets F are at once the p value for every x and the bounds at every level: a bound excludes x
    if and only if the test of x rejects, and "significant" and "the bound excludes 0" are one
    statement.
    """

    sums: Floats
    means: Floats
    total: float
    n_arrangements: int
    always: int
    tolerance: float

    @classmethod
    def of(cls, changes: Floats, shares: Floats, *, rng: np.random.Generator) -> TypicalValues:
        """Draw subsets of the sources with `changes` [G] (they add up to the change).

        `shares` [G] is how a uniform change would spread over the sources (adds up to 1). All
        subsets where there are at most 14 sources, else random ones. The result does not depend on
        the order of the sources. Time O(draws * G), memory O(draws + G).
        """
        order = np.lexsort((shares, changes))
        columns = np.stack([changes[order], shares[order]], axis=1)
        scale = float(np.abs(columns[:, 0]).sum())
        exact = np.stack([_on_grid(columns[:, 0]), _on_grid(columns[:, 1])], axis=1)
        if len(changes) <= ALL_SUBSETS_UP_TO:
            drawn = _subsets(len(changes))[1:] @ exact
        else:
            drawn = _random_subset_sums(exact, rng)
        empty = drawn[:, 1] <= 0
        nonempty = drawn[~empty]
        tolerance = _TIE * scale
        sums = np.where(np.abs(nonempty[:, 0]) <= tolerance, 0.0, nonempty[:, 0])
        return cls(
            sums=sums,
            means=np.sort(sums / nonempty[:, 1]),
            total=math.fsum(changes.tolist()),
            n_arrangements=len(drawn) + 1,
            always=int(np.count_nonzero(empty)) + 1,
            tolerance=tolerance,
        )

    def p_reach(self, target: float) -> float:
        """Return P(sum under sign flips >= target) if nothing changed."""
        # Flipping F takes the sum from total to total - 2 * sum over F.
        allowed = (self.total - target) / 2 + self.tolerance
        reached = int(np.count_nonzero(self.sums <= allowed))
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


def _random_subset_sums(columns: Floats, rng: np.random.Generator) -> Floats:
    """Return [draws, 2] the sums of both columns [G, 2] over random subsets of the rows."""
    drawn = np.zeros((_DRAWS, columns.shape[1]))
    for start in range(0, len(columns), 8):
        eight = columns[start : start + 8]
        # One random byte picks the subset of eight sources: a table look-up instead of 8 coins.
        table = _subsets(len(eight)) @ eight
        coins = np.frombuffer(rng.bytes(_DRAWS), dtype=np.uint8)
        drawn += table.take(coins & (len(table) - 1), axis=0)
    return drawn


def sign_flip_test(changes: Floats, values: TypicalValues, reach: float) -> tuple[float, bool]:
    """Return P(sum under sign flips of the changes [G] >= `reach`) if nothing changed.

    And whether it is exact, as it is where at most 14 sources changed; `values` has draws for more.
    """
    moved = np.sort(changes[changes != 0])
    if len(moved) > ALL_SUBSETS_UP_TO:
        return values.p_reach(reach), False
    sums = math.fsum(moved.tolist()) - 2 * (_subsets(len(moved)) @ moved)
    # Sums within the tolerance are ties and count.
    return float(np.mean(sums >= reach - values.tolerance)), True


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """One test of a family: adjusted p, the level its own p is compared with, and the verdict.

    `rejected`, `adjusted_p <= alpha` and `p <= level` are equivalent.
    """

    p_value: float
    adjusted_p: float
    level: float
    rejected: bool


def holm(
    p_values: Sequence[float], *, alpha: float, least: Sequence[float] | None = None
) -> list[Corrected]:
    """Return the tests in the given order, corrected step by step from the smallest p.

    A test that the steps do not reach is compared with its part of the level at which they stopped.
    `least` are the least p values that each test can have: where that is above `alpha`, the others
    share the whole level, and the test is shown with the part that it would have among all.
    """
    if least is not None and any(p > alpha for p in least):
        return _holm_of_able(p_values, alpha, least)
    values = np.asarray(p_values, dtype=np.float64)
    size = len(p_values)
    order = np.argsort(values, kind="stable")
    ordered, remaining = values[order], np.arange(size, 0, -1)
    adjusted = np.minimum(np.maximum.accumulate(ordered * remaining), 1.0)
    # The first p above its own level stops the steps, for itself and all larger ones.
    rejected = np.logical_and.accumulate(ordered <= alpha / remaining)
    steps = np.minimum(np.arange(size), int(rejected.sum()))
    levels = alpha / remaining[np.minimum(steps, size - 1)]
    # Rounding in a product may not contradict the comparison that was made.
    levels = np.where(rejected | (ordered > levels), levels, np.nextafter(ordered, 0.0))
    above = np.nextafter(alpha, np.inf)
    adjusted = np.where(rejected, np.minimum(adjusted, alpha), np.maximum(adjusted, above))
    return [
        Corrected(
            p_value=float(ordered[position]),
            adjusted_p=float(adjusted[position]),
            level=float(levels[position]),
            rejected=bool(rejected[position]),
        )
        for position in np.argsort(order).tolist()
    ]


def _holm_of_able(
    p_values: Sequence[float], alpha: float, least: Sequence[float]
) -> list[Corrected]:
    """Return the tests corrected over those that can reject; the others never do."""
    able = [number for number, p in enumerate(least) if p <= alpha]
    corrected = [
        Corrected(
            p_value=p,
            adjusted_p=max(p, math.nextafter(alpha, math.inf)),
            level=alpha / len(p_values),
            rejected=False,
        )
        for p in p_values
    ]
    among = holm([p_values[number] for number in able], alpha=alpha)
    for number, test in zip(able, among, strict=True):
        corrected[number] = test
    return corrected
