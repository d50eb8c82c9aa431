"""Permutation tests, whose p values need no distribution, and Holm's correction for several tests.

*Sign flips* test "nothing changed" since an earlier run. If run and baseline are exchangeable
within each source (an unchanged system), the sign of every source's change is a fair coin: R. A.
Fisher, The Design of Experiments, 1935, section 21; E. S. Edgington and P. Onghena, Randomization
Tests, 2007, chapter 3. Exact wherever that is affordable. The statistic is the sum of the sources'
changes; given their absolute values it rejects for the same sign vectors as Student's t, so
studentising would not change a single decision. Monte Carlo p values count the observed
arrangement: B. Phipson and G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010) article 39.

*Rotations* test whether any identity differs from the others. If a system treats all identities
alike, the values of a source's follow-ups are exchangeable between its terms (a randomised block
design: Edgington and Onghena, chapter 6), however strongly the source reacts to prefixes as such.
Overall: the largest difference between a term and the rest; by term: its own difference, corrected
by Holm. Of all permutations the rotations are drawn: a group of their own, so the test stays exact
(E. L. Lehmann and J. P. Romano, Testing Statistical Hypotheses, 2005, section 15.2), and each term
meets each value of a source equally often, as under all permutations, at a tenth of the cost.
Where enough neutral phrases are asked, what they lie apart by themselves is added to what is drawn
(`stats/phrases.py`): that a term is worded otherwise than another is no finding.
The rotations also give what the largest difference is by chance among as many terms: their mean,
times the spread of neutral phrases where they are few. It is M. Friedman's statistic for them over
its degrees of freedom (J. Amer. Statist. Assoc. 32 (1937) 675-701): above 1 as far as wording alone
matters, which no exchange of the terms' own values shows.

*Names* that carry identities are few and differ, too: a second test exchanges whole names within
their pool, and the larger p counts (H. H. Clark, J. Verbal Learn. Verbal Behav. 12 (1973) 335-59).

*Holm's correction*: S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J.
Statist. 6 (1979) 65-70: the chance of any false rejection stays at alpha, whatever the dependence.
Weights are his own (section 4): whatever they are, as long as no p value decides them, the
guarantee is the same. A test that could reject for no arrangement of its data leaves the family: R.
E. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46 (1990) 515-522. That is
known without the arrangement that was observed, so the guarantee stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import groupby

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import DataError
from fairgate.stats.observations import Floats, Integers, Levels, Observations, decided_counts

ENUMERATE_UP_TO = 20
_FINEST_LATTICE = 10**9
_CONVOLUTION_CELLS = 20_000_000
ALL_SUBSETS_UP_TO = 14
_TIE = 1e-10
_TIE_OF_RATES = 1e-9
_MOST_MOVES = 1_000_000_000
_FEWEST = 999
_MOST_PARTS = 64
"""Weights are whole numbers divided by at most this one."""
_TAILS = 8
"""Degrees of freedom of Student's t by which phrases are taken to differ: excess kurtosis 1.5."""
_AT_ONCE = 64
"""Sources whose draws are made at the same time."""
SourceBlock = tuple[Floats, Integers]
"""Values and terms of one source's cases."""


def changed_sources_needed(level: float) -> int:
    """Return how many sources must change before the one-sided test can reject at `level`."""
    return math.ceil(-math.log2(level) - 1e-12)


def lattice_unit(difference: Observations) -> float | None:
    """Return the step of which every source's change is a whole multiple; None if there is none.

    With verdicts (whole numbers) and weights of whole numbers or one over these it is 1 / lcm of
    the arms' decided counts, times what the weights are divided by.
    """
    values = difference.values[difference.decided]
    weights = [Fraction(weight).limit_denominator(_MOST_PARTS) for weight in difference.weights]
    is_whole = all(map(math.isclose, weights, difference.weights))
    if not is_whole or not np.array_equal(values, np.rint(values)):
        return None
    parts = (
        weight.denominator * count
        for weight, count in zip(weights, decided_counts(difference).tolist(), strict=True)
    )
    steps = math.lcm(*parts)
    return 1 / steps if 0 < steps <= _FINEST_LATTICE else None


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

    def p_above(self, shift: float) -> float:
        """Return the one-sided p value of "the change is at most `shift`"."""
        reached = int(self.means.searchsorted(shift, side="right"))
        return (self.always + reached) / self.n_arrangements

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


def _random_subset_sums(columns: Floats, n_draws: int, rng: np.random.Generator) -> Floats:
    """Return [n_draws, 2] the sums of both columns [G, 2] over random subsets of the rows."""
    drawn = np.zeros((n_draws, columns.shape[1]))
    for start in range(0, len(columns), 8):
        eight = columns[start : start + 8]
        # One random byte picks the subset of eight sources: a table look-up instead of 8 coins.
        table = _subsets(len(eight)) @ eight
        coins = np.frombuffer(rng.bytes(n_draws), dtype=np.uint8)
        drawn += table.take(coins & (len(table) - 1), axis=0)
    return drawn


def sign_flip_test(
    changes: Floats, values: TypicalValues, *, unit: float | None = None, reach: float | None = None
) -> tuple[float, bool]:
    """Return P(sum of the changes [G] of G sources as large as observed) if nothing changed.

    And whether it is exact. `unit` (1 / common denominator of the changes, where they have one)
    makes the exact convolution possible and ties exact. `reach` is the sum that counts as "as large
    as observed", by default the observed sum. `values` holds the Monte Carlo draws used where
    exactness costs too much.
    """
    moved = changes[changes != 0]
    if not len(moved):
        return 1.0, True
    target = math.fsum(moved.tolist()) if reach is None else reach
    sizes = np.sort(np.abs(moved))
    steps = None if unit is None else np.rint(sizes / unit).astype(np.int64)
    if unit and steps is not None and len(sizes) * int(steps.sum()) <= _CONVOLUTION_CELLS:
        sums, chances = _convolution(steps, unit)
        tolerance = unit / 2
    elif len(sizes) <= ENUMERATE_UP_TO:
        sums = np.zeros(1)
        for size in sizes.tolist():
            sums = np.concatenate([sums - size, sums + size])
        sums, chances = np.sort(sums), np.full(len(sums), 1 / len(sums))
        tolerance = 1e-10 * float(sizes.sum())
    else:
        return values.p_reach(target), False
    # Sums within the tolerance are ties and count.
    start = int(sums.searchsorted(target - tolerance))
    return min(1.0, math.fsum(chances[start:].tolist())), True


def _convolution(steps: Integers, unit: float) -> tuple[Floats, Floats]:
    """Return all sums under sign flips, ascending, and the probability of each."""
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
    return np.arange(-total, total + 1, 2, dtype=np.float64) * unit, chances


@dataclass(frozen=True, slots=True, kw_only=True)
class TermDifference:
    """A term against the rest: mean of the term less mean of all other terms."""

    term: str
    difference: float
    p_value: float
    adjusted_p: float
    n_decided: int
    without: tuple[str, float] | None = None
    """The name without which the difference is smallest, and that difference; None: no names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityTest:
    """Terms by the size of their difference, and the p value of the largest one.

    `n_informative` counts the sources whose values differ between terms: only they carry evidence.
    """

    terms: tuple[TermDifference, ...]
    p_value: float
    n_informative: int
    by_chance: float = 0.0
    """Mean of the largest difference where terms are exchanged within sources."""
    least_p: float = 0.0
    """The least p value that any exchange of the terms could give."""

    @property
    def max_difference(self) -> float:
        """Return the size of the largest difference; NaN where no two terms are decided."""
        return abs(self.terms[0].difference) if self.terms else math.nan


def identity_test(  # noqa: PLR0913 (what is tested, and how; all by name)
    obs: Observations,
    terms: Sequence[str],
    *,
    alpha: float,
    rng: np.random.Generator,
    n_draws: int = 10_000,
    ranks: Integers | None = None,
    names: tuple[Sequence[str], Sequence[str]] | None = None,
    wording: tuple[float, float] | None = None,
) -> IdentityTest:
    """Test whether the terms [n] of the cases matter; two-sided, (1 + count) / (1 + draws).

    Arms and weights do not enter. `wording` is how far phrases lie apart by themselves, beyond the
    noise of their answers (a standard deviation), and with how many degrees of freedom that is
    known: what is drawn is moved as much, by Student's t. `names` are each case's pool [n] and name
    [n] where people's names carry the terms. Does not depend on the order of the cases; `ranks` [n]
    tell that of their keys where it is known. Time O(draws * cases of informative sources) at
    worst, so above 100,000 cases there are fewer draws, down to 999; memory O(draws * terms).
    """
    if ranks is None:
        by_key = np.asarray(sorted(range(len(obs.keys)), key=obs.keys.__getitem__), np.int64)
    else:
        by_key = np.argsort(ranks)
    order = by_key[obs.decided[by_key]]
    levels = Levels.of(terms).taken(order).in_order()
    values, codes, n_terms = obs.values[order], levels.codes.astype(np.int64), len(levels.names)
    if n_terms < 2:
        return IdentityTest(terms=(), p_value=1.0, n_informative=0)
    counts = np.bincount(codes, minlength=n_terms)
    own = np.bincount(codes, weights=values, minlength=n_terms).astype(np.float64)

    def differences(sums: Floats, counts: Integers | Floats = counts) -> Floats:
        """Return [..., T] mean of each term less mean of the others, from sums [..., T]."""
        rest = (float(values.sum()) - sums) / (len(values) - counts)
        return np.asarray(sums / counts - rest, dtype=np.float64)

    observed = differences(own[None, :])[0]
    blocks = list(_informative(values, codes, obs.clusters[order]))
    n_draws = min(n_draws, max(_FEWEST, _MOST_MOVES // len(values)))
    drawn = [differences(_rotated_sums(blocks, own, rng, n_draws))]
    if wording is not None and wording[0]:
        deviation, freedom = wording
        # Effects of phrases have heavy tails; a normal one would call the farthest an identity.
        moved = deviation * rng.standard_t(_TAILS, (n_draws, n_terms))
        moved *= math.sqrt((_TAILS - 2) / _TAILS)
        moved *= np.sqrt(freedom / rng.chisquare(freedom, (n_draws, 1)))
        rest = (moved.sum(axis=1, keepdims=True) - moved) / (n_terms - 1)
        drawn[0] += moved - rest
    without: list[tuple[str, float] | None] = [None] * n_terms
    if names is not None:
        pools, persons = (Levels.of(column).taken(order).in_order() for column in names)
        _, first = np.unique(persons.codes, return_index=True)
        counted = [np.bincount(persons.codes, weights=column) for column in (values, None)]
        totals, of_name, of_pool = np.stack(counted), codes[first], pools.codes[first]
        exchanged = np.tile(of_name.astype(np.int32), (n_draws, 1))
        for pool in np.unique(of_pool):
            own_ones = np.flatnonzero(of_pool == pool)
            exchanged[:, own_ones] = rng.permuted(exchanged[:, own_ones], axis=1)
        by_term = [(exchanged == term) @ totals.T for term in range(n_terms)]
        drawn.append(differences(*np.stack(by_term, axis=-1).transpose(1, 0, 2)))
        is_own = of_name == np.arange(n_terms)[:, None]
        left = np.stack([own, counts])[..., None] - is_own * totals[:, None]
        rest = totals.sum(axis=1)[:, None, None] - totals[:, None] - left
        gaps = left[0] / np.maximum(left[1], 1) - rest[0] / np.maximum(rest[1], 1)
        gaps[np.minimum(left[1], rest[1]) == 0] = np.inf  # nothing is left to compare
        for term, nearest in enumerate(np.abs(gaps).argmin(axis=1).tolist()):
            if np.isfinite(gaps[term, nearest]):
                without[term] = persons.names[nearest], float(gaps[term, nearest])
    reached = [np.abs(differences) >= np.abs(observed) - _TIE_OF_RATES for differences in drawn]
    p_values = np.max(
        [(1 + is_reached.sum(axis=0)) / (1 + n_draws) for is_reached in reached], axis=0
    )
    largest = float(np.abs(observed).max()) - _TIE_OF_RATES
    of_draws = [np.abs(differences).max(axis=1) for differences in drawn]
    overall = max(
        int(np.count_nonzero(largest_of_draws >= largest)) for largest_of_draws in of_draws
    )
    extremes = [
        max(float(largest_of_draws.max()) - _TIE_OF_RATES, largest) for largest_of_draws in of_draws
    ]
    rarest = [int(np.count_nonzero(e >= most)) for e, most in zip(of_draws, extremes, strict=True)]
    corrected = holm(p_values.tolist(), alpha=alpha)
    terms_found = [
        TermDifference(
            term=name,
            difference=float(observed[index]),
            p_value=float(p_values[index]),
            adjusted_p=corrected[index].adjusted_p,
            n_decided=int(counts[index]),
            without=without[index],
        )
        for index, name in enumerate(levels.names)
    ]
    terms_found.sort(key=lambda term: (-abs(term.difference), term.term))
    return IdentityTest(
        terms=tuple(terms_found),
        p_value=(1 + overall) / (1 + n_draws),
        n_informative=len(blocks),
        by_chance=max(float(largest_of_draws.mean()) for largest_of_draws in of_draws),
        least_p=(1 + max(rarest)) / (1 + n_draws),
    )


def spread(obs: Observations, phrases: Sequence[str]) -> float:
    """Return how much more phrases [n] differ than their exchange within sources explains.

    A ratio of standard deviations, 1 or more; 1 where nothing varies.
    """
    values, sources = obs.values[obs.decided], obs.clusters[obs.decided]
    codes = Levels.of(phrases).taken(np.flatnonzero(obs.decided)).codes
    means = np.bincount(sources, weights=values) / np.maximum(np.bincount(sources), 1)
    rest = np.round(values - means[sources], 12)
    own, alone = np.bincount(codes, weights=rest), math.fsum((rest**2).tolist())
    return math.sqrt(max(1.0, math.fsum((own**2).tolist()) / alone)) if alone else 1.0


def _informative(
    values: Floats, terms: Integers, sources: npt.NDArray[np.integer]
) -> Iterator[SourceBlock]:
    """Yield values and terms of each source whose values are not all equal."""
    _, first, owner = np.unique(sources, return_index=True, return_inverse=True)
    by_source = np.argsort(first[owner], kind="stable")
    edges = np.concatenate([[0], np.flatnonzero(np.diff(sources[by_source])) + 1])
    values, terms = values[by_source], terms[by_source]
    varies = np.minimum.reduceat(values, edges) < np.maximum.reduceat(values, edges)
    ends = np.append(edges[1:], len(values))
    for start, end in zip(edges[varies].tolist(), ends[varies].tolist(), strict=True):
        yield values[start:end], terms[start:end]


def _rotated_sums(
    blocks: Sequence[SourceBlock], own: Floats, rng: np.random.Generator, n_draws: int
) -> Floats:
    """Return [n_draws, T] the terms' sums, `own` [T], with each source's values rotated."""
    moving = np.zeros(len(own))
    sums, added = np.zeros((n_draws, len(own))), np.empty((n_draws, len(own)))
    for size, alike in groupby(blocks, lambda block: len(block[0])):
        rest = list(alike)
        for start in range(0, len(rest), _AT_ONCE):
            some = rest[start : start + _AT_ONCE]
            draws = rng.integers(0, size, size=(len(some), n_draws))
            for (values, terms), places in zip(some, draws, strict=True):
                rotated = _rotations(values.tobytes(), terms.tobytes(), len(own))
                # The mode spares a check of the places, and with it a copy.
                np.take(rotated, places, axis=0, out=added, mode="clip")
                sums += added
                moving += rotated[0]
    return sums + (own - moving)


@lru_cache(maxsize=512)
def _rotations(values: bytes, terms: bytes, n_terms: int) -> Floats:
    """Return [L, T] the sums of the terms where the values of a source are moved by 0 to L - 1.

    Sources are many, and those with the same values and terms have the same.
    """
    moved = np.frombuffer(values)
    places = np.arange(len(moved))
    rotated = np.zeros((len(moved), n_terms))
    of_terms = np.frombuffer(terms, dtype=np.int64)
    # A source may use a term twice (repeats), so values are added, not assigned.
    np.add.at(rotated, (places[:, None], of_terms), moved[places - places[:, None]])
    return rotated


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """One test of a family: adjusted p, the level its own p is compared with, and the verdict.

    `rejected`, `adjusted_p <= alpha` and `p <= level` are equivalent.
    """

    p_value: float
    adjusted_p: float
    level: float
    rejected: bool


def _checked(p_values: Sequence[float]) -> Floats:
    values = np.asarray(p_values, dtype=np.float64)
    wrong = ~((values >= 0) & (values <= 1))  # NaN too
    if wrong.any():
        position = int(np.argmax(wrong))
        raise DataError(
            f"p value number {position + 1} of the family is {float(values[position])!r}; "
            "expected a number from 0 to 1: leave rules that were not evaluated out of the family"
        )
    return values


def uncorrected(p_values: Sequence[float], *, alpha: float) -> list[Corrected]:
    """Return every test compared with `alpha` itself."""
    return [
        Corrected(p_value=p, adjusted_p=p, level=alpha, rejected=p <= alpha)
        for p in _checked(p_values).tolist()
    ]


def holm(
    p_values: Sequence[float],
    *,
    alpha: float,
    weights: Sequence[float] | None = None,
    least: Sequence[float] | None = None,
) -> list[Corrected]:
    """Return the tests in the given order, corrected step by step from the smallest p by weight.

    A test that the steps do not reach is compared with its part of the level at which they stopped.
    `weights` (above 0; default: all 1) say how the level is shared out among the tests. `least` are
    the least p values that each test can have: where that is above `alpha`, the others share the
    whole level, and the test is shown with the part that it would have among all.
    """
    if least is not None and any(p > alpha for p in least):
        return _holm_of_able(p_values, alpha, weights or [1.0] * len(p_values), least)
    shares = np.ones(len(p_values)) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (len(p_values),) or not (shares > 0).all():
        raise DataError(f"{len(p_values)} p values need as many weights above 0, not {weights!r}")
    values = _checked(p_values)
    size = len(p_values)
    order = np.argsort(values / shares, kind="stable")
    ordered, own = values[order], shares[order]
    left = np.cumsum(own[::-1])[::-1]
    adjusted = np.minimum(np.maximum.accumulate(ordered * left / own), 1.0)
    # The first p above its own level stops the steps, for itself and all larger ones.
    rejected = np.logical_and.accumulate(ordered <= alpha * own / left)
    steps = np.minimum(np.arange(size), int(rejected.sum()))
    levels = alpha * own / left[np.minimum(steps, size - 1)]
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
    p_values: Sequence[float], alpha: float, weights: Sequence[float], least: Sequence[float]
) -> list[Corrected]:
    """Return the tests corrected over those that can reject; the others never do."""
    able = [number for number, p in enumerate(least) if p <= alpha]
    corrected = [
        Corrected(
            p_value=p,
            adjusted_p=max(p, math.nextafter(alpha, math.inf)),
            level=alpha * weight / math.fsum(weights),
            rejected=False,
        )
        for p, weight in zip(_checked(p_values).tolist(), weights, strict=True)
    ]
    among = holm([p_values[n] for n in able], alpha=alpha, weights=[weights[n] for n in able])
    for number, test in zip(able, among, strict=True):
        corrected[number] = test
    return corrected
