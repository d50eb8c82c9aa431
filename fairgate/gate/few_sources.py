"""What bounds of slices can and cannot tell with the number of sources that a plan has."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from fairgate.domain.cases import TestPlan
from fairgate.domain.units import TOGETHER
from fairgate.gate.bounds import is_share, range_of
from fairgate.gate.rules import Rule
from fairgate.metrics.metric import Metric
from fairgate.stats.observations import Observations

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
        sources, one_each = _fewest(plan, of_gate)
        if not sources or not 0 < bound < 1:
            continue
        about = (
            f"{first.metric.id}, max {100 * bound:g} % for each {first.gate.for_each or 'slice'}"
        )
        if first.gate.evidence == "significant" and one_each:
            least = smallest_failing(sources, bound, first.metric, confidence)
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


def _fewest(plan: TestPlan, of_gate: Sequence[Rule]) -> tuple[int, bool]:
    """Return of how many sources a gate's smallest slice is, and whether each has one case there.

    Of a slice in which sources have many cases nothing is known beforehand: how much their means
    vary decides.
    """
    suite, names = of_gate[0].suite, [name for name in of_gate[0].where if name != "band"]
    cases: dict[tuple[str, ...], Counter[str]] = {}
    for unit in plan.units:
        if unit.suite == suite and not unit.is_control and unit.dimensions.keys() >= {*names}:
            at = tuple(unit.dimensions[name] for name in names)
            cases.setdefault(at, Counter())[unit.cluster] += 1
    slices = [cases.get(tuple(rule.where[name] for name in names), Counter()) for rule in of_gate]
    one_each = all(many == 1 for found in slices for many in found.values())
    return min(map(len, slices)), one_each


def smallest_failing(sources: int, bound: float, metric: Metric, confidence: float) -> float | None:
    """Return the least share of the sources that is beyond a bound by more than chance.

    Each has one case; a second arm (neutral wording) has several, and no violation.
    """

    def fails(count: int) -> bool:
        found = range_of(metric, _with_violations(count, sources, metric), confidence=confidence)
        return found is not None and found.low > bound

    if not fails(sources):
        return None
    low, high = math.floor(bound * sources), sources
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    return high / sources


def _with_violations(count: int, sources: int, metric: Metric) -> Observations:
    arms = np.repeat(np.arange(len(metric.arms)), [1, *[2] * (len(metric.arms) - 1)])
    own = np.arange(sources) < count
    return Observations(
        keys=[str(number) for number in range(sources * len(arms))],
        clusters=np.repeat(np.arange(sources), len(arms)),
        arms=np.tile(arms, sources),
        values=(own[:, None] & (arms == 0)).astype(np.float64).ravel(),
        weights=tuple(arm.weight for arm in metric.arms),
        n_clusters=sources,
    )


def hidden_notices(rules: Sequence[Rule], plan: TestPlan, *, confidence: float) -> Iterator[str]:
    """Yield for each bound of hidden combinations how many pairs must hide one to be seen.

    They are spread over the sources, one each before any has two; neutral wording hides nothing.
    """
    for rule in rules:
        bound = rule.gate.max
        if not rule.metric.of_combinations or bound is None or rule.gate.report:
            continue
        of_rule = {"relation": rule.metric.relation, **rule.where}
        pairs = [
            unit
            for unit in plan.units_of(rule.suite)
            if not unit.is_control
            and TOGETHER in unit.dimensions.get("category", "")
            and of_rule.items() <= unit.dimensions.items()
        ]
        if not pairs:
            continue
        least = _fewest_hidden([unit.cluster for unit in pairs], bound, rule, confidence)
        most = max(Counter(unit.dimensions.get("term", "") for unit in pairs).values())
        inside = f" for {', '.join(rule.where.values())}" if rule.where else ""
        yield (
            f"{rule.metric.id}, max {100 * bound:g} %{inside}: {least:,} of {len(pairs):,} pairs "
            f"({100 * least / len(pairs):.1f} %) must hide something to fail, and more where "
            f"answers also vary by chance; the combination asked most often has {most:,}"
            + (", so one combination alone is never seen" if most < least else "")
            if least is not None
            else f"{rule.metric.id}, max {100 * bound:g} %{inside}: nothing can be seen"
        )


def _fewest_hidden(
    clusters: Sequence[str], bound: float, rule: Rule, confidence: float
) -> int | None:
    """Return how many of the pairs of these sources, spread over them, are beyond a bound."""
    of_pair = np.unique(clusters, return_inverse=True)[1]
    sources, by_source = int(of_pair.max()) + 1, np.argsort(of_pair, kind="stable")
    sorted_pairs = of_pair[by_source]
    rank = np.arange(len(of_pair)) - np.searchsorted(sorted_pairs, sorted_pairs)
    order = by_source[np.argsort(rank, kind="stable")]
    neutral = np.repeat(np.arange(sources), 2)

    def fails(count: int) -> bool:
        values = np.zeros(len(of_pair) + len(neutral))
        values[order[:count]] = 1.0
        if rule.gate.evidence != "significant":
            return count > bound * len(of_pair)
        observed = Observations(
            keys=[str(number) for number in range(len(values))],
            clusters=np.concatenate([of_pair, neutral]),
            arms=np.repeat([0, 1], [len(of_pair), len(neutral)]),
            values=values,
            weights=tuple(arm.weight for arm in rule.metric.arms),
            n_clusters=sources,
        )
        found = range_of(rule.metric, observed, confidence=confidence)
        return found is not None and found.low > bound

    if not fails(len(of_pair)):
        return None
    low, high = 0, len(of_pair)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    return high


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
