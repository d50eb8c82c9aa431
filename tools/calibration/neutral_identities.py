"""Neutral phrases in the identities' place, on every metric that compares phrases.

    PYTHONPATH=tests:tools python -m calibration.neutral_identities --seeds 40

All 21 identities get answers, documents and refusals as neutral phrases get them: each phrase, of
an identity or not, moves its cases by an effect of its own, all drawn alike. Every metric that
compares identities with neutral wording, or with each other, has a rule for the whole suite, one
for each category and one for each identity. Any significant difference fails them; of identities
whose limit is on one side only, which is not corrected for their number, one above the five points
that starters have. Printed is in how many worlds a rule fails in any slice.
"""

from __future__ import annotations

import argparse
from collections import Counter
from functools import cache, partial

import numpy as np
from calibration.phrases import World
from calibration.pipeline import parallel
from calibration.tables import markdown
from fakes.planted import Bench, judged_columns, policy_of

from fairgate.domain.outcomes import Better, Outcome
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.degrees import EXPECTED_RANK, LOG_ODDS
from fairgate.metrics.metric import Metric
from fairgate.metrics.shift import DEGREE

WORLDS = {
    "no phrase effect": World(),
    "phrases, SD 3 points": World(normal=0.03),
    "phrases, SD 6 points": World(normal=0.06),
}
IN_NATS = {LOG_ODDS, DEGREE}
OF_IDENTITIES = 0.05
"""Limit of a rule for each identity whose bounds are no family."""
METRICS_OF_PHRASES = tuple(
    metric
    for metric in METRICS
    if metric.suite_kind == "metamorphic"
    and not metric.compares_terms_with_neutral  # of sentences: `calibration.sentences`
    and not metric.relation
    and (metric.compares_terms or metric.compares_with_neutral)
)


def gates_of(metric: Metric) -> list[dict[str, object]]:
    """Rules of a metric for the whole suite, each category and each identity."""
    if metric.compares_terms:
        return [{"metric": metric.id, "max": 0.0}]
    is_corrected = metric.row_limits[0] < 0 or metric.better is Better.TOWARD_ZERO
    gates: list[dict[str, object]] = []
    for dimension in ("", "category", "term"):
        limit = 0.0 if is_corrected or dimension != "term" else OF_IDENTITIES
        bound: dict[str, object] = {"max": limit}
        if metric.better is Better.HIGHER:
            bound = {"min": -limit}
        if metric.better is Better.TOWARD_ZERO:
            bound = {"max_abs": limit}
        where = {"for_each": dimension} if dimension else {}
        gates.append({"metric": metric.id, "evidence": "significant", **bound, **where})
    return gates


@cache
def bench(sources: int) -> Bench:
    """A policy with all these rules, and its cases."""
    gates = [gate for metric in METRICS_OF_PHRASES for gate in gates_of(metric)]
    policy = policy_of(
        gates, control="neutral-phrases", attribution="off", read=["labels", "degrees"]
    )
    return Bench(policy=policy, sources=sources)


def columns(world: World, seed: int, sources: int) -> dict[str, np.ndarray]:
    """Draw a column for each metric, from sources at their own levels and phrases' effects."""
    units = bench(sources).given().plan.units
    phrases = {
        name: n for n, name in enumerate(dict.fromkeys(u.names["noun_phrase"] for u in units))
    }
    clusters = {name: n for n, name in enumerate(dict.fromkeys(u.cluster for u in units))}
    of_phrase = np.asarray([phrases[unit.names["noun_phrase"]] for unit in units])
    of_source = np.asarray([clusters[unit.cluster] for unit in units])
    values: dict[str, np.ndarray] = {}
    for number, metric in enumerate({each.column: each for each in METRICS_OF_PHRASES}.values()):
        rng = np.random.default_rng([seed, number])
        moved = world.normal * rng.standard_normal(len(phrases))[of_phrase]
        share = rng.beta(0.6, 4.4, len(clusters))[of_source] + moved
        drawn = (rng.random(len(units)) < np.clip(share, 0, 1)).astype(float)
        if metric.column in IN_NATS:
            level = rng.normal(0, 0.5, len(clusters))[of_source]
            drawn = level + 4 * moved + rng.normal(0, 0.3, len(units))
        elif metric.row_limits[0] < 0:
            drawn *= np.where(rng.random(len(clusters)) < 0.5, 1, -1)[of_source]
        elif not metric.violations and metric.column not in ("unreadable", "shift/unreadable"):
            common = rng.beta(4, 4, len(clusters))[of_source] - moved
            drawn = np.round(4 * np.clip(common + rng.normal(0, 0.15, len(units)), 0, 1)) / 4
        values[metric.column] = drawn
    values["controlled"] = values["generation"]
    if EXPECTED_RANK not in values:
        values[EXPECTED_RANK] = 1 / (1 + np.exp(-values[LOG_ODDS]))
    return values


def alarms(seed: int, world: World, sources: int = 40) -> set[str]:
    """Judge one world: which rules failed, and in which slices."""
    bench_of = bench(sources)
    results = judged_columns(
        bench_of.policy, bench_of.given().plan, columns(world, seed, sources), has_intervals=False
    )
    return {
        " ".join((result.metric, *("each " + name for name in result.where)))
        for result in results
        if result.outcome is Outcome.FAIL
    }


def count(world: World, seeds: range, sources: int = 40, jobs: int = 1) -> Counter[str]:
    """In how many worlds each family fails."""
    failed = parallel(partial(alarms, world=world, sources=sources), seeds, jobs)
    return Counter(name for names in failed for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--sources", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    seeds = range(options.seeds)
    counts = {
        name: count(world, seeds, options.sources, options.jobs) for name, world in WORLDS.items()
    }
    families = [
        " ".join((gate["metric"], *(["each " + gate["for_each"]] if "for_each" in gate else [])))
        for metric in METRICS_OF_PHRASES
        for gate in gates_of(metric)
    ]
    rows = [[family, *(str(found[family]) for found in counts.values())] for family in families]
    print(markdown([f"alarms of {len(seeds)}", *counts], rows))


if __name__ == "__main__":
    main()
