"""What the gate says of systems whose behaviour is known: false alarms, harms seen, whom it names.

    PYTHONPATH=tests:tools python -m calibration.worlds --seeds 40 --jobs 2

The starter's gates on 21 identities and 20 control prompts; plan, answers, oracle and verdict are
the gate's own. A cell is: red, and of these how often the right node is named first; in brackets
on green runs how often somebody is named. `--since` compares with a baseline of the same world
whose answers are drawn anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from calibration.tables import markdown
from fakes.perturbation_sets import load_perturbation_sets
from fakes.planted import SETS, Bench, Plant, policy_of

from fairgate.domain.errors import ExitCode
from fairgate.domain.parity import Level

ONE = "A Black person"
CATEGORY = "orientation"


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
    who: tuple[Level, str] | None = None
    """None: nobody."""


def _harm(share: float, who: Iterable[str], noise: float = 0.05, **more: object) -> Plant:
    return Plant(noise=noise, biased=dict.fromkeys(who, share), **more)  # type: ignore[arg-type]


def worlds() -> dict[str, World]:
    """Every world, the fair ones first."""
    by_category, _ = phrases()
    everybody = [phrase for each in by_category.values() for phrase in each]
    category = by_category[CATEGORY]
    one = Level.IDENTITY, "black"
    of_category = Level.CATEGORY, CATEGORY
    of_all = Level.EVERYBODY, ""
    quiet = Plant(noise=0.05)
    return {
        "fair, no noise": World(now=Plant(), before=Plant()),
        "fair, 5 % noise": World(now=quiet, before=quiet),
        "fair, 15 % noise": World(now=Plant(noise=0.15), before=Plant(noise=0.15)),
        "fair, 20 % noise": World(now=Plant(noise=0.2), before=Plant(noise=0.2)),
        "fair, everybody noisier": World(now=Plant(noise=0.1), before=quiet),
        "fair, everybody calmer": World(now=quiet, before=Plant(noise=0.1)),
        "fair, phrases SD 3": World(now=quiet, before=quiet, spread=0.03),
        "fair, phrases SD 6": World(now=quiet, before=quiet, spread=0.06),
        "fair, heavy tails SD 6": World(now=quiet, before=quiet, spread=0.06, is_heavy=True),
        "fair, a fifth sensitive": World(
            now=Plant(noise=0.05, sensitive=0.2), before=Plant(noise=0.05, sensitive=0.2)
        ),
        "one +12": World(now=_harm(0.12, [ONE]), before=quiet, who=one),
        "one +20": World(now=_harm(0.2, [ONE]), before=quiet, who=one),
        "one +30": World(now=_harm(0.3, [ONE]), before=quiet, who=one),
        "one +20, noisier before": World(now=_harm(0.2, [ONE]), before=Plant(noise=0.1), who=one),
        "category +10": World(now=_harm(0.1, category), before=quiet, who=of_category),
        "all +5": World(now=_harm(0.05, everybody), before=quiet, who=of_all),
        "all +5, noisier before": World(
            now=_harm(0.05, everybody), before=Plant(noise=0.1), who=of_all
        ),
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
    return Bench(policy=policy, sources=sources, sampling=True)


def _spread(plant: Plant, world: World, seed: int) -> Plant:
    """Let every phrase change answers by itself."""
    if not world.spread:
        return plant
    by_category, control = phrases()
    every = [*(phrase for each in by_category.values() for phrase in each), *control]
    rng = np.random.default_rng([seed, 7])
    draws = rng.standard_t(5, len(every)) / np.sqrt(5 / 3) if world.is_heavy else None
    draws = rng.standard_normal(len(every)) if draws is None else draws
    shares = np.clip(0.1 + world.spread * draws, 0, 1)
    own = {phrase: float(share) for phrase, share in zip(every, shares, strict=True)}
    return replace(plant, biased={k: own.get(k, 0.0) + plant.biased.get(k, 0.0) for k in own})


def gated(seed: int, name: str, sources: int, *, since: bool) -> tuple[bool, bool, bool]:
    """Gate one world: whether it is red, names the right node first, and names anybody."""
    world = worlds()[name]
    bench = _bench(sources)
    now = replace(_spread(world.now, world, seed), world=seed, run=1)
    before = replace(_spread(world.before, world, seed), world=seed, run=2)
    run = bench.run(now, bench.baseline(before) if since else None)
    red = run.result.exit_code is ExitCode.GATE_FAILED
    wanted = "baseline" if since else "control"
    scans = [s for s in run.result.parity if s.against == wanted and s.named]
    first = min(scans, key=lambda s: s.named[0].p, default=None)
    is_right = False
    if first is not None and world.who is not None:
        node, (level, who) = first.named[0], world.who
        is_right = node.level is level and who in ("", node.category, node.name)
    return red, is_right, any(s.named for s in run.result.parity)


def row(name: str, sources: int, seeds: range, *, since: bool, jobs: int = 1) -> tuple[float, ...]:
    """Return the share of worlds that are red, of these right, and of the green ones named."""
    ask = partial(gated, name=name, sources=sources, since=since)
    if jobs > 1:
        with ProcessPoolExecutor(jobs) as pool:
            found = list(pool.map(ask, seeds))
    else:
        found = [ask(seed) for seed in seeds]
    red = [each for each in found if each[0]]
    green = [each for each in found if not each[0]]
    return (
        len(red) / len(found),
        sum(each[1] for each in red) / max(1, len(red)),
        sum(each[2] for each in green) / max(1, len(green)),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sources", type=int, nargs="+", default=[25, 60, 100])
    parser.add_argument("--only", default="")
    parser.add_argument("--since", action="store_true")
    options = parser.parse_args()
    rows = []
    for name in worlds():
        if options.only in name:
            cells = [
                row(name, n, range(options.seeds), since=options.since, jobs=options.jobs)
                for n in options.sources
            ]
            texts = [f"{red:.2f} {right:.2f} ({named:.2f})" for red, right, named in cells]
            rows.append((name, *texts))
            print(rows[-1], flush=True)
    print(markdown(["world", *(f"{n} sources" for n in options.sources)], rows))


if __name__ == "__main__":
    main()
