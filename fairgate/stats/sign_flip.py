"""Source-clustered sign-flip test of "nothing changed", and the bounds that invert it.

If run and baseline are exchangeable within each source (an unchanged system), the sign of every
source's change is a fair coin: R. A. Fisher, The Design of Experiments, 1935, section 21; E. S.
Edgington and P. Onghena, Randomization Tests, 2007, chapter 3. Exact wherever that is affordable.
The statistic is the sum of the sources' changes; given their absolute values it rejects for the
same sign vectors as Student's t, so studentising would not change a single decision. Monte Carlo p
values count the observed arrangement: B. Phipson and G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 9
(2010) article 39.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from fairgate.stats.observations import Floats, Integers, Observations, decided_counts

ENUMERATE_UP_TO = 20
_FINEST_LATTICE = 10**9
_CONVOLUTION_CELLS = 20_000_000
ALL_SUBSETS_UP_TO = 14
_TIE = 1e-10


class FlipMethod(Enum):
    """How the p value was obtained; the first three are exact."""

    NOTHING_CHANGED = "nothing changed"
    ENUMERATION = "exact enumeration"
    CONVOLUTION = "exact convolution"
    MONTE_CARLO = "Monte Carlo"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipTest:
    """Evidence against "nothing changed"; `p_worse` for an increase, `p_two_sided` for any.

    `min_attainable_p` is what the test would give if all `n_changed` sources had changed for the
    worse: where it is above the level, the test cannot reject whatever happened.
    """

    p_worse: float
    p_two_sided: float
    min_attainable_p: float
    n_changed: int
    method: FlipMethod


def changed_sources_needed(level: float) -> int:
    """Return how many sources must change before the one-sided test can reject at `level`."""
    return math.ceil(-math.log2(level) - 1e-12)


def lattice_unit(difference: Observations) -> float | None:
    """Return the step of which every source's change is a whole multiple; None if there is none.

    With verdicts (whole numbers) and whole weights it is 1 / lcm of the arms' decided counts.
    """
    values = difference.values[difference.decided]
    whole = all(float(weight).is_integer() for weight in difference.weights)
    if not whole or not np.array_equal(values, np.rint(values)):
        return None
    steps = math.lcm(*decided_counts(difference).tolist())
    return 1 / steps if 0 < steps <= _FINEST_LATTICE else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TypicalValues:
    """Sums and means of the change over non-empty subsets of sources, each ascending.

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


def sign_flip_test(
    changes: Floats, values: TypicalValues, *, unit: float | None = None, reach: float | None = None
) -> FlipTest:
    """Test whether the changes [G] of G sources are symmetric about 0.

    `unit` (1 / common denominator of the changes, where they have one) makes the exact convolution
    possible and ties exact. `reach` is the sum that counts as "as large as observed", by default
    the observed sum. `values` holds the Monte Carlo draws used where exactness costs too much.
    """
    moved = changes[changes != 0]
    if not len(moved):
        method = FlipMethod.NOTHING_CHANGED
        return FlipTest(
            p_worse=1.0, p_two_sided=1.0, min_attainable_p=1.0, n_changed=0, method=method
        )
    total = math.fsum(moved.tolist())
    target = total if reach is None else reach
    method, tail = _null_distribution(moved, unit)
    if tail is None:
        p_worse, p_far = values.p_reach(target), values.p_reach(abs(target))
    else:
        p_worse, p_far = tail.share(target), tail.share(abs(target))
    smallest = 0.5 ** len(moved)
    if method is FlipMethod.MONTE_CARLO:
        smallest = max(smallest, values.smallest_p)
    return FlipTest(
        p_worse=p_worse,
        p_two_sided=min(1.0, 2 * p_far),
        min_attainable_p=smallest,
        n_changed=len(moved),
        method=method,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tail:
    """All sums under sign flips, ascending, and the probability of each."""

    sums: Floats
    probabilities: Floats
    tolerance: float

    def share(self, target: float) -> float:
        """Return P(sum >= target); sums within the tolerance are ties and count."""
        start = int(self.sums.searchsorted(target - self.tolerance))
        return min(1.0, math.fsum(self.probabilities[start:].tolist()))


def _null_distribution(moved: Floats, unit: float | None) -> tuple[FlipMethod, _Tail | None]:
    sizes = np.sort(np.abs(moved))
    if unit is not None:
        steps = np.rint(sizes / unit).astype(np.int64)
        if len(steps) * int(steps.sum()) <= _CONVOLUTION_CELLS:
            return FlipMethod.CONVOLUTION, _convolution(steps, unit)
    if len(sizes) <= ENUMERATE_UP_TO:
        return FlipMethod.ENUMERATION, _enumeration(sizes)
    return FlipMethod.MONTE_CARLO, None


def _convolution(steps: Integers, unit: float) -> _Tail:
    total = int(steps.sum())
    chances = np.zeros(total + 1)
    chances[0] = 1.0
    filled = 0
    for step in steps.tolist():
        chances[: filled + 1] *= 0.5
        moved = chances[: filled + 1].copy()
        chances[step : step + filled + 1] += moved
        filled += step
    # chances[j]: the positive signs carry j steps, so the sum is 2 j - total.
    sums = np.arange(-total, total + 1, 2, dtype=np.float64) * unit
    return _Tail(sums=sums, probabilities=chances, tolerance=unit / 2)


def _enumeration(sizes: Floats) -> _Tail:
    sums = np.zeros(1)
    for size in sizes.tolist():
        sums = np.concatenate([sums - size, sums + size])
    probabilities = np.full(len(sums), 1 / len(sums))
    tolerance = 1e-10 * float(sizes.sum())
    return _Tail(sums=np.sort(sums), probabilities=probabilities, tolerance=tolerance)
