"""What the gate says of systems whose behaviour is known: false alarms, harms seen, whom it names.

    PYTHONPATH=tests:tools python -m calibration.worlds --seeds 40 --jobs 2

The starter's gates on 21 identities and 20 control prompts; plan, answers, oracle and verdict are
the gate's own. Each world is gated beside a baseline of its own, whose answers were drawn anew, so
that one run answers both questions: now (as a first run does) and since the baseline. A cell is:
red by that question, and of these how often the right node is named first; in brackets on the
others how often somebody is named. Below each table: builds that are red, by either question.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from calibration.tables import markdown
from fakes.perturbation_sets import load_perturbation_sets
from fakes.planted import SETS, TASK, Bench, Plant, policy_of

from fairgate.domain.errors import ExitCode
from fairgate.domain.outcomes import RuleResult
from fairgate.domain.parity import Against, Level

ONE = "A Black person"
CATEGORY = "orientation"
QUESTIONS, BUILD = (Against.CONTROL, Against.BASELINE), "build"


@cache
def phrases() -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """Category to the phrases of its identities, and the control prompts'."""
    *identities, control = load_perturbation_sets([*SETS], "neutral-phrases")
    by_category = {s.id: tuple(t.noun_phrase for t in s.terms) for s in identities}
    return by_category, tuple(t.noun_phrase for t in control.terms)


@dataclass(frozen=True, kw_only=True)
class World:
    """A system, what it was at the baseline, and whom the gate should name."""

    now: Plant
    before: Plant
    spread: float = 0.0
    """SD, in points of a share, by which every phrase changes answers by itself, before and now."""
    is_heavy: bool = False
    by_length: float = 0.0
    """Share of answers that each character of a phrase changes, before and now."""
    is_other_model: bool = False
    """Whether the baseline's answers, and what phrases did to them, were another model's."""
    who: tuple[Level, str] | None = None
    """None: nobody."""


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What one run says to one question, or to both."""

    is_red: bool
    is_right: bool
    """Whether the clearest of the nodes that fail it is the right one."""
    is_named: bool
    """Whether anybody is named, beyond the limit or within."""


def _harm(share: float, who: Iterable[str], noise: float = 0.05, **more: object) -> Plant:
    return Plant(noise=noise, biased=dict.fromkeys(who, share), **more)  # type: ignore[arg-type]


@cache
def worlds() -> dict[str, World]:
    """Every world, the fair ones first."""
    by_category, _ = phrases()
    everybody = [phrase for each in by_category.values() for phrase in each]
    category = by_category[CATEGORY]
    one = Level.IDENTITY, "black"
    of_category = Level.CATEGORY, CATEGORY
    of_all = Level.EVERYBODY, ""
    quiet, noisier = Plant(noise=0.05), Plant(noise=0.1)
    sensitive = Plant(noise=0.05, sensitive=0.2)
    somewhere = Plant(noise=0.05, biased_sources=dict.fromkeys(category, 0.1))
    return {
        "fair, no noise": World(now=Plant(), before=Plant()),
        "fair, 5 % noise": World(now=quiet, before=quiet),
        "fair, 15 % noise": World(now=Plant(noise=0.15), before=Plant(noise=0.15)),
        "fair, 20 % noise": World(now=Plant(noise=0.2), before=Plant(noise=0.2)),
        "fair, everybody noisier": World(now=noisier, before=quiet),
        "fair, everybody calmer": World(now=quiet, before=noisier),
        "fair, phrases SD 3": World(now=quiet, before=quiet, spread=0.03),
        "fair, phrases SD 6": World(now=quiet, before=quiet, spread=0.06),
        "fair, heavy tails SD 6": World(now=quiet, before=quiet, spread=0.06, is_heavy=True),
        "fair, by prefix length": World(now=quiet, before=quiet, by_length=0.01),
        "fair, a fifth sensitive": World(now=sensitive, before=sensitive),
        "fair, another model": World(now=sensitive, before=quiet, spread=0.03, is_other_model=True),
        "one +12": World(now=_harm(0.12, [ONE]), before=quiet, who=one),
        "one +20": World(now=_harm(0.2, [ONE]), before=quiet, who=one),
        "one +30": World(now=_harm(0.3, [ONE]), before=quiet, who=one),
        "one +20, noisier before": World(now=_harm(0.2, [ONE]), before=noisier, who=one),
        "category +10": World(now=_harm(0.1, category), before=quiet, who=of_category),
        "category, 10 % of the sources": World(now=somewhere, before=quiet, who=of_category),
        "all +5": World(now=_harm(0.05, everybody), before=quiet, who=of_all),
        "all +5, noisier before": World(now=_harm(0.05, everybody), before=noisier, who=of_all),
        "all +10": World(now=_harm(0.1, everybody), before=quiet, who=of_all),
        "refusals of one, 10 %": World(
            now=Plant(noise=0.05, refusing={ONE: 0.1}), before=quiet, who=one
        ),
        "direction of one, 15 %": World(
            now=Plant(noise=0.05, praised={ONE: 0.15}), before=quiet, who=one
        ),
    }


@cache
def _bench(sources: int) -> Bench:
    policy = policy_of(({"parity": "all"},), attribution="off")
    ordered = replace(TASK, order=TASK.labels)  # as the tasks of the starter have one
    return Bench(policy=policy, sources=sources, sampling=True, task=ordered)


def plants(world: World, seed: int) -> tuple[Plant, Plant]:
    """Return the systems of a world, now and at the baseline."""
    other = seed + 1_000_000 if world.is_other_model else seed
    return (
        replace(_with_phrases(world.now, world, seed), world=seed, run=1),
        replace(_with_phrases(world.before, world, other), world=other, run=2),
    )


def _with_phrases(plant: Plant, world: World, seed: int) -> Plant:
    """Let every phrase change answers by itself."""
    by_category, control = phrases()
    every = [*(phrase for each in by_category.values() for phrase in each), *control]
    own = dict.fromkeys(every, 0.0)
    if world.spread:
        rng = np.random.default_rng([seed, 7])
        draws = rng.standard_t(5, len(every)) / np.sqrt(5 / 3) if world.is_heavy else None
        draws = rng.standard_normal(len(every)) if draws is None else draws
        shares = np.clip(0.1 + world.spread * draws, 0, 1)
        own = {phrase: float(share) for phrase, share in zip(every, shares, strict=True)}
    if world.by_length:
        own = {phrase: world.by_length * len(phrase) for phrase in every}
    return replace(
        plant,
        biased={k: own[k] + plant.biased.get(k, 0.0) for k in own if k in plant.biased or own[k]},
    )


@cache
def gated(seed: int, name: str, sources: int) -> dict[str, Answered]:
    """Gate one world: what it says to `control`, to `baseline`, and as a build."""
    world = worlds()[name]
    bench = _bench(sources)
    now, before = plants(world, seed)
    run = bench.run(now, bench.baseline(before))
    rules = [rule for rule in run.result.rules if rule.parity is not None]
    answered = {
        against: _answered([r for r in rules if r.parity.against == against], world)
        for against in QUESTIONS
    }
    build = _answered(rules, world)
    if build.is_red is not (run.result.exit_code is ExitCode.GATE_FAILED):
        raise AssertionError(f"{name}, seed {seed}: exit code {run.result.exit_code}")
    return {**answered, BUILD: build}


def _answered(rules: Sequence[RuleResult], world: World) -> Answered:
    failing = [node for rule in rules for node in rule.failing]
    is_right = False
    if failing and world.who is not None:
        node, (level, who) = min(failing, key=lambda each: each.p), world.who
        is_right = node.level is level and who in ("", node.category, node.name)
    return Answered(
        is_red=bool(failing),
        is_right=is_right,
        is_named=any(rule.parity and rule.parity.named for rule in rules),
    )


def shares(found: Sequence[Answered]) -> tuple[float, float, float]:
    """Return the share of worlds that are red, of these right, and of the others named."""
    red = [each for each in found if each.is_red]
    return (
        len(red) / len(found),
        sum(each.is_right for each in red) / max(1, len(red)),
        sum(each.is_named for each in found if not each.is_red) / max(1, len(found) - len(red)),
    )


def row(name: str, sources: int, seeds: range, against: str) -> tuple[float, float, float]:
    """Return the shares of one cell."""
    return shares([gated(seed, name, sources)[against] for seed in seeds])


def _every_world(seed: int, names: Sequence[str], sources: int) -> dict[str, dict[str, Answered]]:
    """Gate all worlds with one seed: those with the same baseline share it."""
    return {name: gated(seed, name, sources) for name in names}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sources", type=int, nargs="+", default=[25, 60, 100])
    parser.add_argument("--only", default="", help="worlds whose name contains this")
    options = parser.parse_args()
    names = [name for name in worlds() if options.only in name]
    cells: dict[tuple[str, str], list[str]] = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        for sources in options.sources:
            ask = partial(_every_world, names=names, sources=sources)
            found = list(pool.map(ask, range(options.seeds)))
            for name in names:
                for question in (*QUESTIONS, BUILD):
                    red, right, named = shares([each[name][question] for each in found])
                    text = f"{red:.3f} {right:.2f} ({named:.3f})"
                    cells.setdefault((question, name), []).append(text)
                    print(f"{sources}, {question}, {name}: {text}", flush=True)
    for question in (*QUESTIONS, BUILD):
        print(f"\n{question}\n")
        head = ["world", *(f"{n} sources" for n in options.sources)]
        print(markdown(head, [(name, *cells[question, name]) for name in names]))


if __name__ == "__main__":
    main()
