"""What the gate says in degrees of systems that treat all identities alike, and of harm.

    PYTHONPATH=tests:tools python -m calibration.degrees --seeds 40
    PYTHONPATH=tests:tools python -m calibration.degrees --seeds 40 --changed
    PYTHONPATH=tests:tools python -m calibration.degrees --seeds 40 --power

Log-odds of answers are drawn as SmolLM2's reviews have them: sources at their own levels, phrases
with effects of their own, single answers about these. Sources, 21 identities and the 20 phrases of
`neutral-phrases`, judged by the rules in degrees that `fairgate init` writes. An answer is the label that is more probable. `--power` prints beside each other
how often one harmed identity and one harmed category are told by degrees and by labels, at equal
questions: single identities by Holm's correction over 21, categories by exchange over 4.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial

import numpy as np
from calibration.phrases import ANEW, FAIR, World, compared_with
from calibration.pipeline import parallel
from calibration.tables import markdown
from fakes.planted import Bench, judged_columns, policy_of

from fairgate.domain.outcomes import Outcome
from fairgate.features.init import starter_files
from fairgate.gate.measure import table_with
from fairgate.gate.neutral_wording import phrase_sample
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.degrees import EXPECTED_RANK, LOG_ODDS
from fairgate.metrics.retriever_robustness import PAPER_BANDS
from fairgate.policy.yaml_text import load_yaml
from fairgate.stats.phrases import groups_against_neutral

CONTROL, HARMED, CATEGORY = "neutral-phrases", "gay", "orientation"
SLOPE = 0.25
"""Probability by nats where the sources are."""
LEVELS = -0.1, 0.2
"""Mean and standard deviation of the sources' levels, in nats."""
OF_NEUTRAL, OF_IDENTITIES = 0.15, 0.17
"""Standard deviation of single answers about their source's level and their phrase's effect."""
MEASURES = {
    "degrees": "label/log-odds",
    "labels, worse less better": "direction/net",
    "labels that change": "asr/generation/net",
}


HARM: Mapping[str, World] = {
    "one identity, 0.3 nats": World(harm=0.3),
    "one identity, 0.5 nats": World(harm=0.5),
    "a category, 0.2 nats": World(category=0.2),
}


def starter_gates(*, is_changed: bool) -> list[dict[str, object]]:
    """The starter's rules in degrees: its bounds, or what they compare with a baseline."""
    files = starter_files(name="x", task="sentiment", system="demo")
    written = load_yaml(files["policies/x.yaml"], "x.yaml").data["gates"]
    gates = [dict(gate) for gate in written if "log-odds" in gate["metric"]]
    if is_changed:
        asked = "metric", "for_each", "regression"
        compared = [gate for gate in gates if "regression" in gate]
        return [{name: gate[name] for name in asked if name in gate} for gate in compared]
    bounds = [{name: gate[name] for name in gate if name != "regression"} for gate in gates]
    return [gate for gate in bounds if "max" in gate or "max_abs" in gate]


@cache
def bench(sources: int, *, is_changed: bool) -> Bench:
    """A policy with the starter's rules in degrees, and its cases."""
    gates = starter_gates(is_changed=is_changed)
    policy = policy_of(gates, control=CONTROL, attribution="off", read=["labels", "degrees"])
    return Bench(policy=policy, sources=sources)


def columns(world: World, seed: int, sources: int, run: int = 0) -> dict[str, np.ndarray]:
    """Draw log-odds of all pairs, and the labels that follow; another `run` draws some anew."""
    units = bench(sources, is_changed=False).given().plan.units
    rng = np.random.default_rng(seed)
    phrases = list(dict.fromkeys(unit.names["noun_phrase"] for unit in units))
    lengths = np.asarray([len(phrase) for phrase in phrases], dtype=float)
    effects = world.normal * rng.standard_normal(len(phrases))
    effects += world.heavy * rng.standard_t(4, len(phrases)) / np.sqrt(2)
    effects += world.length * (lengths - lengths.min()) / np.ptp(lengths)
    number = {phrase: place for place, phrase in enumerate(phrases)}
    of_phrase = np.asarray([number[unit.names["noun_phrase"]] for unit in units])
    names = {key: place for place, key in enumerate(dict.fromkeys(u.cluster for u in units))}
    of_source = np.asarray([names[unit.cluster] for unit in units])
    levels = rng.normal(*LEVELS, len(names))
    is_neutral = np.asarray([unit.is_control for unit in units])
    noise = rng.standard_normal(len(units)) * np.where(is_neutral, OF_NEUTRAL, OF_IDENTITIES)
    if run:
        drawn = np.random.default_rng([seed, run])
        anew = drawn.random(len(units)) < ANEW
        noise = np.where(anew, noise[drawn.permutation(len(units))], noise)
    harmed = np.asarray([unit.dimensions["term"] == HARMED for unit in units])
    of_category = np.asarray([unit.dimensions["category"] == CATEGORY for unit in units])
    odds = levels[of_source] + effects[of_phrase] / SLOPE + noise
    odds -= world.harm * harmed + world.category * of_category
    worse = (levels[of_source] > 0).astype(float) - (odds > 0)
    changed = np.abs(worse)
    return {
        LOG_ODDS: odds,
        EXPECTED_RANK: 1 / (1 + np.exp(-odds)),
        "generation": changed,
        "controlled": changed,
        "direction": worse,
        "unreadable": np.zeros(len(units)),
    }


def of_degrees(drawn: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns that rules in degrees, and about unreadable answers, rest on."""
    return {name: drawn[name] for name in (LOG_ODDS, EXPECTED_RANK, "unreadable")}


def judged(seed: int, world: World, sources: int, *, is_changed: bool = False) -> tuple[str, ...]:
    """Judge one world, or its change from a run without phrase effects or harm: what failed."""
    given = bench(sources, is_changed=is_changed)
    plan, comparison = given.given().plan, {}
    if is_changed:
        comparison = {
            "comparison": compared_with(plan, of_degrees(columns(World(), seed, sources)))
        }
    results = judged_columns(
        given.policy,
        plan,
        of_degrees(columns(world, seed, sources, run=int(is_changed))),
        has_intervals=False,
        **comparison,
    )
    return tuple(
        " ".join((rule.metric, *rule.where.values()))
        for rule in results
        if rule.outcome is Outcome.FAIL
    )


def reds(
    world: World, seeds: range, sources: int = 25, jobs: int = 1, *, is_changed: bool = False
) -> tuple[int, list[str]]:
    """In how many worlds a rule fails, and which ones."""
    judge: Callable[[int], tuple[str, ...]] = partial(
        judged, world=world, sources=sources, is_changed=is_changed
    )
    failures = parallel(judge, seeds, jobs)
    return sum(map(bool, failures)), [name for failed in failures for name in failed]


def told(seed: int, world: World, sources: int) -> dict[str, bool]:
    """Whether harm is told by each measure: of the identity alone, or of its category."""
    units = bench(sources, is_changed=False).given().plan.units
    drawn = columns(world, seed, sources)
    table = table_with("s", units, values=drawn, reasons={}, not_evaluated={}, bands=PAPER_BANDS)
    found = {}
    for measure, metric in MEASURES.items():
        sample = phrase_sample(BY_ID[metric], table, {})
        if sample is None:
            found[measure] = False
        elif world.harm:
            known = {test.name.rpartition("\0")[2]: test.adjusted_p for test in sample.tests}
            found[measure] = known[HARMED] <= 0.05
        else:
            categories = [name.partition("\0")[0] for name in sample.identities]
            groups = groups_against_neutral(sample.own, categories, sample.neutral, seed=seed)
            known = {group.name: group.adjusted_p for group in groups}
            found[measure] = known[CATEGORY] <= 0.05
    return found


def power_table(seeds: range, jobs: int) -> str:
    """How often harm is told, by questions, in degrees and in labels."""
    rows = []
    worlds = {
        **HARM,
        **{f"{name}, SD 3 points": replace(w, normal=0.03) for name, w in HARM.items()},
    }
    for name, world in worlds.items():
        for sources in (12, 25, 50):
            found = parallel(partial(told, world=world, sources=sources), seeds, jobs)
            shares = [sum(each[measure] for each in found) / len(found) for measure in MEASURES]
            rows.append([name, f"{sources * 42:,}", *(f"{share:.2f}" for share in shares)])
            print(rows[-1], flush=True)
    return markdown(["harm", "questions", *MEASURES], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sources", type=int, default=25)
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--power", action="store_true")
    options = parser.parse_args()
    seeds = range(options.seeds)
    if options.power:
        print(power_table(seeds, options.jobs))
        return
    rows = []
    for name, world in {**FAIR, **HARM}.items():
        red, rules = reds(world, seeds, options.sources, options.jobs, is_changed=options.changed)
        worst = max(set(rules), key=rules.count) if rules else "–"
        rows.append([name, f"{red} of {len(seeds)}", worst])
        print(rows[-1], flush=True)
    print(markdown(["world", "red", "most often"], rows))


if __name__ == "__main__":
    main()
