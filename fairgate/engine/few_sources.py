"""What bounds of slices can and cannot tell with the number of sources that a plan has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fairgate.domain.cases import TestPlan
from fairgate.engine.bounds import is_share
from fairgate.engine.rules import Rule
from fairgate.stats.interval import Interval
from fairgate.stats.score_range import RateArm, score_range

_PROMISED = 0.05
"""How often a fair system may break a bound by chance without a notice."""
_FAR = 1.5
"""From which multiple of the bound on a value may be open without a notice."""
_MOST_SUMMED = 1000
"""Sources up to which a count of combinations is a float, and few enough to be summed."""


def few_sources_notices(
    rules: Sequence[Rule], plan: TestPlan, *, confidence: float
) -> Iterator[str]:
    """Yield a sentence for each gate whose slices have too few sources for its `max`.

    A bound on the estimate is broken by chance; one with `evidence: significant` stays open.
    """
    by_gate: dict[tuple[int, str], list[Rule]] = {}
    for rule in rules:
        if rule.where and rule.gate.max is not None and is_share(rule.metric):
            by_gate.setdefault((rule.position, rule.suite), []).append(rule)
    for of_gate in by_gate.values():
        first = of_gate[0]
        bound = first.gate.max or 0.0
        sources = _fewest(plan, of_gate)
        if not sources or not 0 < bound < 1:
            continue
        about = (
            f"{first.metric.id}, max {100 * bound:g} % for each {first.gate.for_each or 'slice'}"
        )
        if first.gate.evidence == "significant":
            least = smallest_failing(sources, bound, len(first.metric.arms), confidence)
            if least is None or least > _FAR * bound:
                yield f"{about}: with {sources} sources {_open(least)}"
        elif first.gate.evidence == "estimate":
            often = broken_by_chance(sources, bound, len(of_gate))
            if often > _PROMISED:
                yield (
                    f"{about}: with {sources} sources chance alone breaks it in up to "
                    f"{100 * often:.0f} % of the runs of a system that has half of it; set "
                    "`evidence: significant`, or ask about more sources"
                )


def _open(least: float | None) -> str:
    if least is None:
        return "no value can be distinguished from chance; ask about more sources"
    return (
        f"a value above the limit and below {100 * least:.0f} % is inconclusive: chance can "
        "explain it; ask about more sources"
    )


def _fewest(plan: TestPlan, of_gate: Sequence[Rule]) -> int:
    """Return of how many sources the smallest slice of a gate's rules is."""
    suite, names = of_gate[0].suite, [name for name in of_gate[0].where if name != "band"]
    clusters: dict[tuple[str, ...], set[str]] = {}
    for unit in plan.units:
        if unit.suite == suite and not unit.is_control and unit.dimensions.keys() >= {*names}:
            at = tuple(unit.dimensions[name] for name in names)
            clusters.setdefault(at, set()).add(unit.cluster)
    slices = (tuple(rule.where[name] for name in names) for rule in of_gate)
    return min(len(clusters.get(at, ())) for at in slices)


def smallest_failing(sources: int, bound: float, arms: int, confidence: float) -> float | None:
    """Return the least share of the sources that is beyond a bound by more than chance.

    A second arm (neutral wording) is taken to have no violation.
    """
    others = tuple(RateArm(rate=0.0, weight=-1.0, sources=sources) for _ in range(arms - 1))
    for count in range(math.floor(bound * sources) + 1, sources + 1):
        own = RateArm(rate=count / sources, weight=1.0, sources=sources)
        found = score_range((own, *others), confidence=confidence)
        if isinstance(found, Interval) and found.low > bound:
            return count / sources
    return None


def broken_by_chance(sources: int, bound: float, slices: int) -> float:
    """Return how often one of some slices breaks a bound if each truly has half of it.

    At most: slices of the same sources break it together more often than this takes them to. The
    bound lies between 0 and 1, and is neither.
    """
    most, share = math.floor(bound * sources + 1e-9), bound / 2
    return 1.0 - min(1.0, _at_most(most, sources, share)) ** slices


def _at_most(most: int, sources: int, share: float) -> float:
    """Return the binomial distribution function."""
    if sources > _MOST_SUMMED:
        from scipy.special import bdtr

        return float(bdtr(most, sources, share))
    # The import takes a quarter of a second, which a check of an ordinary policy need not wait for.
    return math.fsum(
        math.comb(sources, count) * share**count * (1 - share) ** (sources - count)
        for count in range(most + 1)
    )
