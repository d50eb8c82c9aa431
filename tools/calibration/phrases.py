"""What the gate says of systems that treat all identities alike, where wording itself matters.

    PYTHONPATH=tests:tools python -m calibration.phrases --seeds 40

Every phrase, neutral or not, changes some answers of its own: by normal or heavy-tailed effects, or
by its length. 100 sources, 21 identities, the gates with bounds of `policies/rag-sentiment.yaml`,
with the nine phrases of `neutral` and the twenty drawn from `neutral-phrases`; then with harm.
`--changed` compares with a run before, whose phrases moved answers otherwise and harmed nobody.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from calibration.pipeline import parallel
from calibration.tables import markdown
from fakes.planted import Bench, judged_columns, policy_of

from fairgate.domain.cases import TestPlan
from fairgate.domain.outcomes import Outcome, Provenance, RuleResult
from fairgate.gate.baseline import Baseline, BaselineSuite, Reference, unit_contents
from fairgate.gate.changes import Comparison
from fairgate.gate.measure import table_with
from fairgate.metrics.retriever_robustness import PAPER_BANDS
from fairgate.policy.yaml_text import load_yaml

POLICY = Path(__file__).parents[2] / "policies/rag-sentiment.yaml"
SETS = ("neutral", "neutral-phrases")
HARMED = "gay"
BASE = 0.12
"""Share of the answers that any phrase changes."""

ANEW = 0.2
"""Share of the answers that another run of the system draws anew."""


@dataclass(frozen=True, kw_only=True)
class World:
    """How phrases move answers and documents in shares of the sources, or degrees in probability.

    Harm to degrees is in nats.
    """

    normal: float = 0.0
    """Standard deviation of the phrases' effects."""
    heavy: float = 0.0
    """The same, of effects by Student's t with 4 degrees of freedom."""
    length: float = 0.0
    """By how much the longest phrase changes more than the shortest."""
    harm: float = 0.0
    """By how much more the harmed identity's answers change."""
    category: float = 0.0
    """By how much more answers for everybody of its category change."""


FAIR: Mapping[str, World] = {
    "no phrase effect": World(),
    "phrases, SD 3 points": World(normal=0.03),
    "phrases, SD 6 points": World(normal=0.06),
    "heavy-tailed phrases, SD 3 points": World(heavy=0.03),
    "heavy-tailed phrases, SD 6 points": World(heavy=0.06),
    "length, 2 to 25 %": World(length=0.23),
}
HARM: Mapping[str, World] = {
    "one identity +20 points, no phrase effect": World(harm=0.20),
    "one identity +30 points, SD 3 points": World(normal=0.03, harm=0.30),
    "a category +10 points, SD 3 points": World(normal=0.03, category=0.10),
}


CHANGED = [
    {"metric": metric, "regression": {"margin": 0.05}} | where
    for metric in ("asr/generation/net", "retrieval/overlap/net")
    for where in ({}, {"for_each": "category"}, {"for_each": "term"})
]
"""Gates on the change since an earlier run, of everybody, categories and identities."""


@cache
def bench(control: str, sources: int = 100, *, is_changed: bool = False) -> Bench:
    """The gates with bounds of the shipped policy, or on changes, on this neutral wording."""
    if is_changed:
        policy = policy_of(CHANGED, control=control, attribution="off")
        return Bench(policy=policy, sources=sources)
    known = load_yaml(POLICY.read_text(encoding="utf-8"), "p").data
    gates = [
        {key: value for key, value in gate.items() if key != "regression"}
        for gate in known["gates"]
        if {"max", "max_abs"} & gate.keys()
        and not gate["metric"].startswith("rrs")
        and "log-odds" not in gate["metric"]  # `degrees.py` draws these
    ]
    return Bench(policy=policy_of(gates, control=control, attribution="off"), sources=sources)


def columns(
    world: World, control: str, seed: int, sources: int = 100, run: int = 0
) -> dict[str, np.ndarray]:
    """Draw the claims of all pairs: answers, documents in common, refusals.

    Another `run` asks the same sources; phrases move its answers otherwise, and some are drawn
    anew.
    """
    units = bench(control, sources).given().plan.units
    rng = np.random.default_rng([seed, len(control)])
    phrases = list(dict.fromkeys(unit.names["noun_phrase"] for unit in units))
    lengths = np.asarray([len(phrase) for phrase in phrases], dtype=float)
    moved_at_first = _moved(world, len(phrases), rng)
    moved = moved_at_first.copy()
    if world.length:
        moved += world.length * (lengths - lengths.min()) / np.ptp(lengths) - (BASE - 0.02)
    number = {phrase: place for place, phrase in enumerate(phrases)}
    of_phrase = np.asarray([number[unit.names["noun_phrase"]] for unit in units])
    names = {
        cluster: place for place, cluster in enumerate(dict.fromkeys(u.cluster for u in units))
    }
    of_source = np.asarray([names[unit.cluster] for unit in units])
    source = rng.beta(0.6, 4.4, len(names))  # mean .12
    if run:
        moved_now = _moved(world, len(phrases), np.random.default_rng([seed, len(control), run]))
        moved += moved_now - moved_at_first
    harmed = np.asarray([unit.dimensions["term"] == HARMED for unit in units])
    category = np.asarray([unit.dimensions["category"] == "orientation" for unit in units])
    share = source[of_source] + moved[of_phrase] + world.harm * harmed + world.category * category
    chances = _kept(rng.random(len(units)), np.random.default_rng([seed, 0]), run)
    changed = (chances < np.clip(share, 0, 1)).astype(float)
    common = rng.beta(4, 4, len(names))[of_source] - moved[of_phrase]
    noise = _kept(rng.normal(0, 0.15, len(units)), np.random.default_rng([seed, 1]), run)
    overlap = np.round(4 * np.clip(common + noise, 0, 1)) / 4
    return {
        "generation": changed,
        "controlled": changed,
        "retrieval": (overlap < 0.5).astype(float),
        "unreadable": np.zeros(len(units)),
        "overlap": overlap,
    }


def _moved(world: World, phrases: int, rng: np.random.Generator) -> np.ndarray:
    effects = world.normal * rng.standard_normal(phrases)
    return effects + world.heavy * rng.standard_t(4, phrases) / np.sqrt(2)


def _kept(drawn: np.ndarray, rng: np.random.Generator, run: int) -> np.ndarray:
    """What was drawn for the first run; another one draws a share of it anew."""
    anew = rng.random(len(drawn)) < (ANEW if run else 0.0)
    return np.where(anew, rng.permutation(drawn), drawn)


def compared_with(plan: TestPlan, values: Mapping[str, np.ndarray]) -> Comparison:
    """A comparison with a baseline that has these columns of the suite `s`."""
    table = table_with(
        "s", plan.units, values=values, reasons={}, not_evaluated={}, bands=PAPER_BANDS
    )
    contents = unit_contents(plan, "s")
    suite = BaselineSuite(must_match={}, contents=contents, table=table, quartiles=None)
    baseline = Baseline(
        policy="planted",
        reason="the run before",
        date="2026-01-01",
        suites={"s": suite},
        measurements=[],
        metric_versions={},
        provenance=Provenance(under_test={}, environment={}, fairgate="", policy_path=""),
    )
    return Comparison(runs={Reference.BASELINE: baseline}, contents={"s": contents})


def judged_change(seed: int, world: World, control: str, sources: int = 100) -> tuple[str, ...]:
    """Judge the change from a run before; which rules failed."""
    given = bench(control, sources, is_changed=True)
    plan = given.given().plan
    before = replace(world, length=0.0, harm=0.0, category=0.0)
    comparison = compared_with(plan, columns(before, control, seed, sources))
    now = columns(world, control, seed, sources, run=1)
    return _failed(judged_columns(given.policy, plan, now, comparison, has_intervals=False))


def _failed(results: Sequence[RuleResult]) -> tuple[str, ...]:
    return tuple(
        " ".join((rule.metric, *rule.where.values()))
        for rule in results
        if rule.outcome is Outcome.FAIL
    )


def judged(seed: int, world: World, control: str, sources: int = 100) -> tuple[str, ...]:
    """Judge one world; which rules failed."""
    given = bench(control, sources)
    results = judged_columns(
        given.policy,
        given.given().plan,
        columns(world, control, seed, sources),
        has_intervals=False,
    )
    return _failed(results)


def reds(
    world: World,
    control: str,
    seeds: range,
    jobs: int = 1,
    sources: int = 100,
    *,
    is_changed: bool = False,
) -> tuple[int, list[str]]:
    """In how many worlds a rule fails, and which ones."""
    judge: Callable[[int], tuple[str, ...]] = partial(
        judged_change if is_changed else judged, world=world, control=control, sources=sources
    )
    failures = parallel(judge, seeds, jobs)
    return sum(map(bool, failures)), [name for failed in failures for name in failed]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sources", type=int, default=100)
    parser.add_argument("--changed", action="store_true")
    options = parser.parse_args()
    seeds = range(options.seeds)
    rows = []
    for name, world in {**FAIR, **HARM}.items():
        judge = partial(reds, world, seeds=seeds, jobs=options.jobs, sources=options.sources)
        outcomes = [judge(control=control, is_changed=options.changed) for control in SETS]
        worst = [max(set(rules), key=rules.count) if rules else "–" for _, rules in outcomes]
        rows.append([name, *(f"{red} of {len(seeds)}" for red, _ in outcomes), *worst])
        print(rows[-1], flush=True)
    heads = [
        "world",
        *(f"red with {control}" for control in SETS),
        "most often (9)",
        "most often (20)",
    ]
    print(markdown(heads, rows))


if __name__ == "__main__":
    main()
