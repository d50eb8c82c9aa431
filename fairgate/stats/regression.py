"""Evidence of a change between run and baseline: estimate, p value, bounds, detectable effect.

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
from bisect import bisect_left
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product
from statistics import NormalDist

import numpy as np

from fairgate.stats.interval import standard_error, t_quantile, t_upper_tail
from fairgate.stats.observations import (
    Floats,
    PairedObservations,
    cluster_contributions,
    cluster_shares,
    cluster_totals,
    estimate,
)
from fairgate.stats.permutation import (
    TypicalValues,
    changed_sources_needed,
    lattice_unit,
    sign_flip_test,
)
from fairgate.stats.phrases import PhraseChange

_NAN = math.nan
_NORMAL = NormalDist()
_MOST_SOURCES = 10_000_000
_SIMULATIONS_AT_A_TIME = 500


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
    PHRASES = "t test over sources and neutral phrases"
    COUNTS = "exact test of changes in counts"
    NONE = "no test"


_BY_SIGNS = frozenset({Method.EXACT, Method.MONTE_CARLO, Method.NONE})
"""Tests whose least p value follows from the number of changed sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionSettings:
    """How a regression rule evaluates a change.

    `strict` tests "the worsening is at most the margin" (approximate) instead of "nothing
    changed". `sd_floor` is a standard deviation of the per-source change known from elsewhere
    (burn-in, declared). Below `few_sources` sources the sign-flip test cannot reject at 5 %
    whatever happened, and the t test, which is approximate, takes over.
    """

    worse: Worse = Worse.HIGHER
    margin: float = 0.02
    strict: bool = False
    power: float = 0.9
    sd_floor: float = 0.0
    few_sources: int = 5
    n_draws: int = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDesign:
    """What a regression rule asks: corrected one-sided `level`, `margin` and wanted `power`."""

    level: float = 0.05
    margin: float = 0.02
    power: float = 0.9


def minimum_detectable_effect(sd: float, n_sources: int, design: RuleDesign) -> float:
    """Return the smallest true change that the rule catches with the wanted power.

    Infinite where so few sources could not make an exact test reject, whatever they did. With sd 0
    it is the margin itself: nothing hides a change, but the rule tolerates one up to the margin.

    A rule fails when its one-sided test rejects and the estimated change exceeds the margin, so a
    true change x is caught with the wanted power where `x >= max(t_{1-level, G-1} * sd / sqrt(G),
    margin) + z_{power} * sd / sqrt(G)`, `sd` being the standard deviation of the per-source change;
    J. Cohen, Statistical Power Analysis, 1988, chapter 2, with sources as the units (A. Donner and
    N. Klar, Design and Analysis of Cluster Randomization Trials, 2000, section 5.2).
    `simulated_power` stands beside the formula.
    """
    if n_sources < fewest_sources(design.level):
        return math.inf
    error = sd / math.sqrt(n_sources)
    critical = t_quantile(1 - design.level, n_sources - 1) * error
    return max(critical, design.margin) + _NORMAL.inv_cdf(design.power) * error


def fewest_sources(level: float) -> int:
    """Return how many sources there must be before the rule can fail at `level` at all."""
    return max(2, changed_sources_needed(level))


def sources_needed(effect: float, sd: float, design: RuleDesign) -> int | None:
    """Return how many sources are needed to catch a change of `effect`; None where none would do.

    None where the effect is not above the margin (the rule tolerates it) or would take more than
    ten million sources.
    """
    if effect < design.margin or (effect == design.margin and sd > 0):
        return None
    least = bisect_left(
        range(2, _MOST_SOURCES + 1),
        x=True,
        key=lambda many: minimum_detectable_effect(sd, many, design) <= effect,
    )
    return 2 + least if 2 + least <= _MOST_SOURCES else None


def simulated_power(
    residuals: Floats,
    effect: float,
    n_sources: int,
    design: RuleDesign,
    *,
    rng: np.random.Generator,
    n_simulations: int = 2000,
) -> float:
    """Return the share of simulated runs that the rule catches.

    Draws `n_sources` changes with replacement from the observed per-source changes less their mean
    (`residuals`), adds `effect` and applies the rule with the t form of the test. Unlike the
    formula it keeps the skewness and the many zeros of real changes.
    """
    if n_sources < fewest_sources(design.level):
        return 0.0
    critical = t_quantile(1 - design.level, n_sources - 1)
    caught = 0
    for start in range(0, n_simulations, _SIMULATIONS_AT_A_TIME):
        rows = min(_SIMULATIONS_AT_A_TIME, n_simulations - start)
        changes = effect + rng.choice(residuals, size=(rows, n_sources))
        means = changes.mean(axis=1)
        errors = changes.std(axis=1, ddof=1) / math.sqrt(n_sources)
        caught += int(np.count_nonzero((means > critical * errors) & (means > design.margin)))
    return caught / n_simulations


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionEvidence:
    """Everything a regression rule needs to know, from the cases decided in both runs.

    `worsening` is the change with more meaning worse. `lower` and `upper` bound it, each one-sided
    at `level`; `lower` is above 0 (strict: above the margin) if and only if `p_value <= level`.
    p values are uncorrected. `sd` is the standard deviation of the per-source change, `sd_used`
    that or the floor, `detectable` the smallest worsening that the rule catches at `level` with
    the wanted power. Where an arm has no pair, nothing is `evaluated` and the numbers are NaN.
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
    changed_sources_needed: int = 0
    sd: float = _NAN
    sd_used: float = _NAN
    detectable: float = math.inf

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

    def sources_to_see(self, effect: float, settings: RegressionSettings) -> int | None:
        """Return how many sources would make a worsening of `effect` visible at this level.

        None where none would do, and where a single source leaves its spread unknown.
        """
        if self.n_sources < 2 and not self.sd_used:
            return None
        design = RuleDesign(level=self.level, margin=settings.margin, power=settings.power)
        return sources_needed(effect, self.sd_used, design)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedRegression:
    """A comparison whose p value is known and whose bounds wait for the corrected level.

    Holm's correction needs the p values of all rules before it gives each rule its level.
    `error` is the standard error of the difference, `midpoint` and `midpoint_error` locate
    (now + base) / 2 in the direction of its own sign.
    """

    settings: RegressionSettings
    pairs: PairedObservations
    evidence: RegressionEvidence
    difference: float = _NAN
    """now - base, with the sign that makes more worse."""
    values: TypicalValues | None = None
    error: float = _NAN
    freedom: float = _NAN
    """Degrees of freedom of that error."""
    midpoint: float = _NAN
    midpoint_error: float = _NAN
    midpoint_freedom: float = _NAN
    phrases: PhraseChange | None = None
    """Where neutral phrases are a sample: what the errors rest on."""
    sentences: PreparedRegression | None = None
    """The same comparison with phrases held fixed: of these very sentences alone."""

    @property
    def p_value(self) -> float:
        """Return the one-sided, uncorrected p value; NaN where nothing can be judged."""
        return self.evidence.p_value

    def at_level(self, level: float) -> RegressionEvidence:
        """Return the evidence with bounds and detectable effect at the corrected `level`."""
        evidence = self.evidence
        if not evidence.evaluated:
            return replace(evidence, level=level)
        lower, upper = self._bounds(level)
        is_beyond_margin = self.settings.strict or evidence.method is Method.PHRASES
        null = self.settings.margin if is_beyond_margin else 0.0
        # The exact p and a drawn or cautious bound may disagree at the null itself: p is right.
        if evidence.p_value <= level:
            lower = max(lower, math.nextafter(null, math.inf))
        else:
            lower = min(lower, null)
        design = RuleDesign(level=level, margin=self.settings.margin, power=self.settings.power)
        return replace(
            evidence,
            level=level,
            lower=min(lower, evidence.worsening),
            upper=max(upper, evidence.worsening),
            changed_sources_needed=changed_sources_needed(level)
            if evidence.method in _BY_SIGNS
            else 0,
            detectable=minimum_detectable_effect(evidence.sd_used, evidence.n_sources, design)
            if evidence.method is not Method.PHRASES
            else self.settings.margin + self._reach_to_see(level) * self._least_error(),
        )

    def sources_to_see(self, effect: float, level: float) -> int | None:
        """Count the sources that make a worsening of `effect` visible; None where none would.

        More sources of the same phrases do not lower what these differ by.
        """
        evidence, margin = self.at_level(level), self.settings.margin
        if self.phrases is None or evidence.method is not Method.PHRASES:
            return evidence.sources_to_see(effect, self.settings)
        lasting, squared = self.phrases.lasting, self._least_error() ** 2
        room = ((effect - margin) / self._reach_to_see(level)) ** 2 - lasting
        if effect <= margin or room <= 0:
            return None
        needed = math.ceil(max(0.0, squared - lasting) * evidence.n_sources / room)
        return max(2, needed) if needed <= _MOST_SOURCES else None

    def _reach_to_see(self, level: float) -> float:
        """Count the errors beyond the margin at which a change is caught with that power."""
        return t_quantile(1 - level, self.freedom) + _NORMAL.inv_cdf(self.settings.power)

    def _least_error(self) -> float:
        return max(self.error, self.settings.sd_floor / math.sqrt(self.evidence.n_sources))

    def _bounds(self, level: float) -> tuple[float, float]:
        if not self.evidence.n_discordant:
            return 0.0, 0.0
        low, high = self._difference_bounds(level)
        if self.settings.worse is not Worse.ABSOLUTE:
            return low, high
        middles = self._around(self.midpoint, self.midpoint_error, level, self.midpoint_freedom)
        if 2 * middles[0] >= max(abs(low), abs(high)):
            return low, high  # both runs are surely on one side of 0
        # Either limit may miss now, so each gets half of the level.
        low, high = self._difference_bounds(level / 2)
        if not math.isfinite(low):
            return -math.inf, math.inf
        middles = self._around(self.midpoint, self.midpoint_error, level / 2, self.midpoint_freedom)
        corners = [
            abs(middle + change / 2) - abs(middle - change / 2)
            for middle, change in product(middles, (low, high))
        ]
        return min(corners), max(corners)

    def _difference_bounds(self, level: float) -> tuple[float, float]:
        if self.values is not None:
            return self.values.bounds(level)
        return self._around(self.difference, self.error, level, self.freedom)

    def _around(
        self, centre: float, error: float, level: float, freedom: float
    ) -> tuple[float, float]:
        if math.isnan(error):
            return -math.inf, math.inf
        reach = t_quantile(1 - level, freedom) * error if error else 0.0
        return centre - reach, centre + reach


def count_phrases(fixed: PreparedRegression, phrases: PhraseChange) -> PreparedRegression:
    """Take neutral phrases for a sample in a comparison; `fixed` stays beside it.

    Where no two of them differ, exact counts stand in for the error, and test "nothing changed".
    """
    evidence, margin = fixed.evidence, fixed.settings.margin
    own = phrases.contrast
    if not evidence.evaluated or evidence.n_sources < 2 or not evidence.n_discordant:
        return replace(fixed, phrases=phrases, sentences=fixed)
    worsening = evidence.worsening
    if math.isnan(own.error):
        p_value = own.p_value if worsening > 0 else 1.0
        counted = replace(evidence, p_value=p_value, method=Method.COUNTS)
        return replace(fixed, phrases=phrases, sentences=fixed, evidence=counted)
    middle = phrases.middle
    midpoint_error, midpoint_freedom = middle.error, middle.degrees
    if math.isnan(midpoint_error):
        midpoint_error, midpoint_freedom = fixed.midpoint_error, fixed.midpoint_freedom
    # As by signs: across 0 too it is the change that is tested, and its growth in size that counts.
    p_value = t_upper_tail((worsening - margin) / own.error, own.degrees)
    return replace(
        fixed,
        phrases=phrases,
        sentences=fixed,
        values=None,
        error=own.error,
        freedom=own.degrees,
        midpoint_error=midpoint_error,
        midpoint_freedom=midpoint_freedom,
        evidence=replace(evidence, p_value=p_value, method=Method.PHRASES),
    )


def prepare_regression(
    pairs: PairedObservations, settings: RegressionSettings, rng: np.random.Generator
) -> PreparedRegression:
    """Return the comparison with its p value; deterministic given the state of `rng`."""
    now, base = estimate(pairs.now), estimate(pairs.base)
    is_absolute = settings.worse is Worse.ABSOLUTE
    turns = settings.worse is Worse.LOWER or (is_absolute and now + base < 0)
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
        return PreparedRegression(settings=settings, pairs=pairs, evidence=evidence)
    changes = sign * cluster_contributions(pairs.difference)
    dust = 1e-12 * float(np.abs(changes).sum())
    changes = np.where(np.abs(changes) <= dust, 0.0, changes)
    error = standard_error(cluster_totals(pairs.difference))
    middle = replace(pairs.now, values=(pairs.now.values + pairs.base.values) / 2)
    midpoint_error = standard_error(cluster_totals(middle))
    values, p_value, method = None, 1.0, Method.EXACT
    null = settings.margin if settings.strict else 0.0
    if evidence.n_discordant and 2 <= evidence.n_sources < settings.few_sources and error > 0:
        # Across the sign the change of size is twice the midpoint, with that one's error.
        crosses = is_absolute and evidence.sign_changed
        widest = max(error, 2 * midpoint_error) if crosses else error
        p_value = t_upper_tail((worsening - null) / widest, evidence.n_sources - 1)
        method = Method.STUDENT
    elif evidence.n_discordant:
        shares = cluster_shares(pairs.difference)
        values = TypicalValues.of(changes, shares, rng=rng, n_draws=settings.n_draws)
        # Only ABSOLUTE can fall short of the difference: where the sign turned.
        reach = min(worsening, difference)
        if settings.strict:
            p_value, is_exact = values.p_above(null + difference - reach), False
        else:
            unit = lattice_unit(pairs.difference)
            p_value, is_exact = sign_flip_test(changes, values, unit=unit, reach=reach)
        method = Method.EXACT if is_exact else Method.MONTE_CARLO
    sd = error * math.sqrt(evidence.n_sources)
    return PreparedRegression(
        settings=settings,
        pairs=pairs,
        evidence=replace(
            evidence,
            n_changed_sources=int(np.count_nonzero(changes)),
            sd=sd,
            sd_used=max(settings.sd_floor, 0.0 if math.isnan(sd) else sd),
            p_value=p_value,
            method=method,
        ),
        difference=difference,
        values=values,
        error=error,
        freedom=evidence.n_sources - 1,
        midpoint=abs(estimate(middle)),
        midpoint_error=midpoint_error,
        midpoint_freedom=evidence.n_sources - 1,
    )
