"""Evidence of a change between run and baseline: estimate, p value, bounds.

`Worse.ABSOLUTE` is for values that are better the nearer they are to 0 (Diff-Bias, amplification):
the change is `|now| - |base|`. Exchanging the two runs within sources keeps the midpoint
m = (now + base) / 2 and turns only the difference d, and
`|m + d/2| - |m - d/2| = sign(m d) min(2 |m|, |d|)`. So the permutation test is exact here too: it
is the one-sided test of d, taken in the direction of m, with `min(d, 2 |m|)` as the sum to reach.
A turn of sign with equal size is no change of size; it is reported apart (`sign_changed`). Where
the side of 0 is in doubt, the bounds are the worst corners of the bounds of m and d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

import numpy as np

from fairgate.stats.interval import standard_error, t_quantile, t_upper_tail
from fairgate.stats.observations import (
    PairedObservations,
    cluster_totals,
    estimate,
)
from fairgate.stats.permutation import TypicalValues, sign_flip_test

_NAN = math.nan
_FEW_SOURCES = 5
"""Below it the sign-flip test cannot reject at 5 % whatever happened, and Student's t, which is
approximate, takes over."""


class Worse(Enum):
    """Which change of the value is a worsening."""

    HIGHER = "higher"
    LOWER = "lower"
    ABSOLUTE = "absolute"


class Method(Enum):
    """Which test gave the p value."""

    EXACT = "exact sign-flip test"
    MONTE_CARLO = "sign-flip test, Monte Carlo"
    STUDENT = "t test with G - 1 degrees of freedom"
    NONE = "no test"


_BY_SIGNS = frozenset({Method.EXACT, Method.MONTE_CARLO, Method.NONE})
"""Tests whose least p value follows from the number of changed sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionEvidence:
    """Everything a regression rule needs to know, from the cases decided in both runs.

    `worsening` is the change with more meaning worse. `lower` and `upper` bound it, each one-sided
    at `level`; `lower` is above 0 if and only if `p_value <= level`. p values are uncorrected.
    Where an arm has no pair, nothing is `evaluated` and the numbers are NaN.
    """

    now: float
    base: float
    worsening: float
    n_pairs: int
    n_discordant: int
    n_sources: int
    n_changed_sources: int = 0
    sign_changed: bool = False
    p_value: float = _NAN
    method: Method = Method.NONE
    level: float = _NAN
    lower: float = _NAN
    upper: float = _NAN

    @property
    def evaluated(self) -> bool:
        """Return whether every arm has a pair, so that there is a change to judge."""
        return not math.isnan(self.worsening)

    @property
    def least_p(self) -> float:
        """Return the least p value that any signs of the sources' changes could give."""
        return 0.5**self.n_changed_sources if self.method in _BY_SIGNS else 0.0

    @property
    def significant(self) -> bool:
        """Return whether the test rejects at `level`."""
        return self.p_value <= self.level


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedRegression:
    """A comparison whose p value is known and whose bounds wait for the corrected level.

    Holm's correction needs the p values of all rules before it gives each rule its level.
    `error` is the standard error of the difference, `midpoint` and `midpoint_error` locate
    (now + base) / 2 in the direction of its own sign.
    """

    worse: Worse
    pairs: PairedObservations
    evidence: RegressionEvidence
    difference: float = _NAN
    """now - base, with the sign that makes more worse."""
    values: TypicalValues | None = None
    error: float = _NAN
    midpoint: float = _NAN
    midpoint_error: float = _NAN

    def at_level(self, level: float) -> RegressionEvidence:
        """Return the evidence with bounds at the corrected `level`."""
        evidence = self.evidence
        if not evidence.evaluated:
            return replace(evidence, level=level)
        lower, upper = self._bounds(level)
        # The exact p and a drawn or cautious bound may disagree at 0 itself: p is right.
        is_above = evidence.p_value <= level
        lower = max(lower, math.nextafter(0.0, 1.0)) if is_above else min(lower, 0.0)
        return replace(
            evidence,
            level=level,
            lower=min(lower, evidence.worsening),
            upper=max(upper, evidence.worsening),
        )

    def _bounds(self, level: float) -> tuple[float, float]:
        if not self.evidence.n_discordant:
            return 0.0, 0.0
        low, high = self._difference_bounds(level)
        if self.worse is not Worse.ABSOLUTE:
            return low, high
        middles = self._around(self.midpoint, self.midpoint_error, level)
        if 2 * middles[0] >= max(abs(low), abs(high)):
            return low, high  # both runs are surely on one side of 0
        # Either limit may miss now, so each gets half of the level.
        low, high = self._difference_bounds(level / 2)
        if not math.isfinite(low):
            return -math.inf, math.inf
        middles = self._around(self.midpoint, self.midpoint_error, level / 2)
        corners = [
            abs(middle + change / 2) - abs(middle - change / 2)
            for middle, change in product(middles, (low, high))
        ]
        return min(corners), max(corners)

    def _difference_bounds(self, level: float) -> tuple[float, float]:
        if self.values is not None:
            return self.values.bounds(level)
        return self._around(self.difference, self.error, level)

    def _around(self, centre: float, error: float, level: float) -> tuple[float, float]:
        if math.isnan(error):
            return -math.inf, math.inf
        reach = t_quantile(1 - level, self.evidence.n_sources - 1) * error if error else 0.0
        return centre - reach, centre + reach


def prepare_regression(
    pairs: PairedObservations, worse: Worse, rng: np.random.Generator
) -> PreparedRegression:
    """Return the comparison with its p value; deterministic given the state of `rng`."""
    now, base = estimate(pairs.now), estimate(pairs.base)
    is_absolute = worse is Worse.ABSOLUTE
    turns = worse is Worse.LOWER or (is_absolute and now + base < 0)
    sign = -1.0 if turns else 1.0
    difference = sign * (now - base)
    worsening = abs(now) - abs(base) if is_absolute else difference
    evidence = RegressionEvidence(
        now=now,
        base=base,
        worsening=worsening,
        n_pairs=len(pairs.now.keys),
        n_discordant=pairs.n_discordant,
        n_sources=pairs.now.n_clusters,
        sign_changed=now * base < 0,
    )
    if not evidence.evaluated:
        return PreparedRegression(worse=worse, pairs=pairs, evidence=evidence)
    totals = cluster_totals(pairs.difference)
    counts, weights = totals.counts.sum(axis=0), np.abs(totals.weights)
    changes = sign * (totals.sums * (totals.weights / counts)).sum(axis=1)
    dust = 1e-12 * float(np.abs(changes).sum())
    changes = np.where(np.abs(changes) <= dust, 0.0, changes)
    error = standard_error(totals)
    middle = replace(pairs.now, values=(pairs.now.values + pairs.base.values) / 2)
    midpoint_error = standard_error(cluster_totals(middle))
    values, p_value, method = None, 1.0, Method.EXACT
    if evidence.n_discordant and 2 <= evidence.n_sources < _FEW_SOURCES and error > 0:
        # Across the sign the change of size is twice the midpoint, with that one's error.
        crosses = is_absolute and evidence.sign_changed
        widest = max(error, 2 * midpoint_error) if crosses else error
        p_value = t_upper_tail(worsening / widest, evidence.n_sources - 1)
        method = Method.STUDENT
    elif evidence.n_discordant:
        # Of each source, how much of the contrast rests on it.
        shares = (totals.counts * (weights / (weights.sum() * counts))).sum(axis=1)
        values = TypicalValues.of(changes, shares, rng=rng)
        # Only ABSOLUTE can fall short of the difference: where the sign turned.
        reach = min(worsening, difference)
        p_value, is_exact = sign_flip_test(changes, values, reach)
        method = Method.EXACT if is_exact else Method.MONTE_CARLO
    return PreparedRegression(
        worse=worse,
        pairs=pairs,
        evidence=replace(
            evidence,
            n_changed_sources=int(np.count_nonzero(changes)),
            p_value=p_value,
            method=method,
        ),
        difference=difference,
        values=values,
        error=error,
        midpoint=abs(estimate(middle)),
        midpoint_error=midpoint_error,
    )
