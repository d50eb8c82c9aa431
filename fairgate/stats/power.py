"""How large a change a regression rule can see, and how many sources it needs to see one.

A rule fails when its one-sided test rejects and the estimated change exceeds the margin, so a true
change x is caught with the wanted power where
`x >= max(t_{1-level, G-1} * sd / sqrt(G), margin) + z_{power} * sd / sqrt(G)`;
J. Cohen, Statistical Power Analysis, 1988, chapter 2, with sources as the units (A. Donner and N.
Klar, Design and Analysis of Cluster Randomization Trials, 2000, section 5.2). `sd` is the standard
deviation of the per-source change. A seeded simulation stands beside the formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from fairgate.stats.observations import Floats
from fairgate.stats.sign_flip import changed_sources_needed
from fairgate.stats.student_t import t_quantile

_NORMAL = NormalDist()
_MOST_SOURCES = 10_000_000
_SIMULATIONS_AT_A_TIME = 500


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
    low, high = 1, 2
    while minimum_detectable_effect(sd, high, design) > effect:
        low, high = high, high * 2
        if high > _MOST_SOURCES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if minimum_detectable_effect(sd, middle, design) > effect:
            low = middle
        else:
            high = middle
    return high


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
