"""What a regression rule requires of a change, and the evidence about the change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from fairgate.stats.power import RuleDesign, sources_needed

_NAN = math.nan


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
    p_two_sided: float = _NAN
    min_attainable_p: float = 1.0
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
