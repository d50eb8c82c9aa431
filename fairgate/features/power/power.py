"""What a policy's regression rules can see: the present suite, and how many sources it would take.

A change of x points is seen where the rule fails nine times of ten when the true change is x
(`stats/regression.py`). That rests on the standard deviation of the per-source change: the largest
of what the policy declares, what a burn-in measured, and what two runs showed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairgate.domain.cases import TestPlan
from fairgate.gate.baseline import KnownSd
from fairgate.gate.rules import Rule
from fairgate.policy.schema import Policy, RegressionPolicy
from fairgate.stats.observations import cluster_contributions
from fairgate.stats.regression import (
    PreparedRegression,
    RuleDesign,
    minimum_detectable_effect,
    simulated_power,
    sources_needed,
)

EFFECTS = (0.01, 0.02, 0.05)
ASSUMED = (0.05, 0.1, 0.2, 0.4)
"""Standard deviations that are shown where none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePower:
    """What one regression rule can see with one standard deviation of the per-source change."""

    metric: str
    suite: str
    where: Mapping[str, str]
    sources: int
    margin: float
    detect: float
    sd: float
    origin: str
    """`declared`, `burn-in`, `observed`, or `assumed`."""
    level: float
    """One-sided level: the strictest that the rule has under Holm."""
    sees: float | None
    """Smallest change that is caught nine times of ten; None: none at all."""
    needed: Mapping[float, int | None]
    """Change to sources that make it significant, and where it is above the margin also failing;
    None where ten million would not do."""
    simulated: float | None
    """Chance to catch a change of `detect`, simulated from the observed changes."""


def rule_power(
    rules: Sequence[Rule],
    plan: TestPlan,
    policy: Policy,
    sds: Sequence[KnownSd],
    observed: Mapping[int, PreparedRegression],
) -> list[RulePower]:
    """Return a row for each regression rule; several, with assumed SDs, where none is known.

    `observed` maps positions in `rules` to the comparison of a run with a baseline.
    """
    level_of = _levels(rules, policy)
    rows = []
    for number, rule in enumerate(rules):
        if rule.gate.regression is None:
            continue
        known = _known(rule, sds, observed.get(number))
        for sd, origin in [known] if known else [(sd, "assumed") for sd in ASSUMED]:
            rows.append(_row(rule, plan, (sd, origin), level_of[number], observed.get(number)))
    return rows


def _levels(rules: Sequence[Rule], policy: Policy) -> dict[int, float]:
    """Return the strictest level of each rule that is tested: its line's part of the whole."""
    tested = [n for n, r in enumerate(rules) if r.gate.regression or r.metric.compares_terms]
    lines = [(rules[n].position, rules[n].suite) for n in tested]
    many = Counter(lines)
    alpha = 1 - policy.confidence
    if policy.correction != "holm":
        return dict.fromkeys(tested, alpha)
    asked = {line: rules[n].gate.regression for line, n in zip(lines, tested, strict=True)}
    parts = sum(1 if one is None or one.budget is None else 2 for one in asked.values())
    return {n: alpha / parts / many[line] for n, line in zip(tested, lines, strict=True)}


def _known(
    rule: Rule, sds: Sequence[KnownSd], observed: PreparedRegression | None
) -> tuple[float, str] | None:
    """Return the largest known standard deviation and its source."""
    asked = (rule.metric.id, rule.suite, dict(rule.where))
    found = [(sd.sd, "burn-in") for sd in sds if (sd.metric, sd.suite, dict(sd.where)) == asked]
    if rule.gate.regression is not None and rule.gate.regression.sd is not None:
        found.append((rule.gate.regression.sd, "declared"))
    # Two equal runs of a deterministic system say nothing about noise.
    if observed is not None and observed.evidence.sd > 0:
        found.append((observed.evidence.sd, "observed"))
    return max(found, default=None)


def _row(
    rule: Rule,
    plan: TestPlan,
    known: tuple[float, str],
    level: float,
    observed: PreparedRegression | None,
) -> RulePower:
    regression = rule.gate.regression or RegressionPolicy()
    design = RuleDesign(level=level, margin=regression.margin)
    sd, origin = known
    sources = len({unit.cluster for unit in plan.units if unit.suite == rule.suite})
    sees = minimum_detectable_effect(sd, sources, design)
    return RulePower(
        metric=rule.metric.id,
        suite=rule.suite,
        where=rule.where,
        sources=sources,
        margin=regression.margin,
        detect=regression.detect,
        sd=sd,
        origin=origin,
        level=level,
        sees=sees if math.isfinite(sees) else None,
        needed={effect: _needed(effect, sd, design) for effect in EFFECTS},
        simulated=_simulated(observed, regression.detect, sources, design),
    )


def _needed(effect: float, sd: float, design: RuleDesign) -> int | None:
    """Count sources; where the margin already tolerates the change, for the test alone."""
    margin = design.margin if effect > design.margin else 0.0
    return sources_needed(effect, sd, replace(design, margin=margin))


def _simulated(
    observed: PreparedRegression | None, effect: float, sources: int, design: RuleDesign
) -> float | None:
    if observed is None or not observed.evidence.sd > 0:
        return None
    changes = cluster_contributions(observed.pairs.difference) * observed.evidence.n_sources
    rng = np.random.default_rng(observed.evidence.n_sources)
    return simulated_power(changes - changes.mean(), effect, sources, design, rng=rng)
