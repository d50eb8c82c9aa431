"""What parity says of systems whose behaviour is known: false alarms, harms seen, whom it names.

    PYTHONPATH=tests:tools python -m calibration.worlds --seeds 40 --jobs 2

21 identities in one phrase each, 20 control prompts, two labels with an order, `{parity: all}`.
Answers are drawn as columns, from there on the scans, their common level and the limits are the
gate's own. Each world is judged now and since a baseline whose answers were drawn anew. Prints of
each world the shares that are red, of these right (whom the clearest node names), and of the others
where somebody is named. `calibration.through_cli` asks the same worlds as a user does.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import numpy.typing as npt
from fakes.perturbation_sets import load_perturbation_sets

from fairgate.domain.parity import Against, Level
from fairgate.gate.parity import ParityQuestion, Prompts, parity_result, scans_of
from fairgate.metrics.parity import OUTCOMES
from fairgate.stats.observations import Floats, Integers

SETS, CONTROL = ("race", "gender", "orientation", "age"), "neutral-phrases"
LEVELS = {Against.CONTROL: 0.05, Against.BASELINE: 0.01}
BUILD = "build"
UNCHANGED = ("fair, 5 % noise", "fair, 15 % noise")
Bools = npt.NDArray[np.bool_]
Columns = Mapping[str, Mapping[str, Floats]]
"""Outcome to column to values [sources, prompts]."""


@dataclass(frozen=True, kw_only=True)
class System:
    """What a system does. Shares are of sources; `who` has those of its world."""

    noise: float = 0.0
    """Chance of each answer to turn, anew in every run."""
    sensitive: float = 0.0
    """Sources that turn for any phrase."""
    turned: float = 0.0
    """Sources whose answer turns for each of `who`."""
    turned_alike: float = 0.0
    """The same sources for all of `who`."""
    worsened: float = 0.0
    """Sources whose better answer becomes the worse one."""
    refused: float = 0.0


@dataclass(frozen=True, kw_only=True)
class World:
    """A system, what it was at the baseline, and whom it harms."""

    now: System
    before: System = System(noise=0.05)
    level: Level | None = None
    """None: nobody is harmed."""
    label: str = ""
    """Category or identity that is."""
    spread: float = 0.0
    """SD, as a share, by which every phrase turns answers by itself, before and now."""
    is_heavy: bool = False
    by_length: float = 0.0
    """Share of answers that each character of a phrase turns, before and now."""
    is_other_model: bool = False
    """Whether the baseline's answers, and what phrases did to them, were another model's."""


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What is said to one question, or to both."""

    is_red: bool
    is_right: bool
    """Whether the clearest of the nodes that fail is the right one."""
    is_named: bool
    """Whether anybody is named, beyond the limit or within."""


def _fair(now: float, before: float | None = None, **more: object) -> World:
    return World(
        now=System(noise=now), before=System(noise=now if before is None else before), **more
    )  # type: ignore[arg-type]


def _one(**harm: float) -> World:
    now = System(noise=0.05, **harm)
    return World(now=now, level=Level.IDENTITY, label="black")


def _category(**harm: float) -> World:
    return World(now=System(noise=0.05, **harm), level=Level.CATEGORY, label="orientation")


def _all(harm: float) -> World:
    return World(now=System(noise=0.05, turned=harm), level=Level.EVERYBODY)


_NOISIER, _SENSITIVE = System(noise=0.1), System(noise=0.05, sensitive=0.2)
WORLDS: Mapping[str, World] = {
    "fair, no noise": _fair(0.0),
    "fair, 5 % noise": _fair(0.05),
    "fair, 15 % noise": _fair(0.15),
    "fair, 20 % noise": _fair(0.2),
    "fair, everybody noisier": _fair(0.1, 0.05),
    "fair, everybody calmer": _fair(0.05, 0.1),
    "fair, a fifth sensitive": World(now=_SENSITIVE, before=_SENSITIVE),
    "fair, by prefix length": _fair(0.05, by_length=0.01),
    "fair, another model": World(now=_SENSITIVE, spread=0.03, is_other_model=True),
    "fair, phrases SD 3": _fair(0.05, spread=0.03),
    "fair, phrases SD 6": _fair(0.05, spread=0.06),
    "fair, heavy tails SD 6": _fair(0.05, spread=0.06, is_heavy=True),
    "one +12": _one(turned=0.12),
    "one +20": _one(turned=0.2),
    "one +20, noisier before": replace(_one(turned=0.2), before=_NOISIER),
    "one +30": _one(turned=0.3),
    "category +10": _category(turned=0.1),
    "category, 10 % of the sources": _category(turned_alike=0.1),
    "all +5": _all(0.05),
    "all +5, noisier before": replace(_all(0.05), before=_NOISIER),
    "all +10": _all(0.1),
    "one refused, 10 %": _one(refused=0.1),
    "one to the worse, 15 %": _one(worsened=0.15),
}


@cache
def asked(sources: int) -> tuple[Prompts, tuple[int, ...]]:
    """Return the prompts, and how many characters each phrase has."""
    *identities, control = load_perturbation_sets([*SETS], CONTROL)
    persons = [(one.id, term.term) for one in identities for term in one.terms]
    phrases = [term.noun_phrase for one in (*identities, control) for term in one.terms]
    cells = np.arange(sources * len(phrases))
    prompts = Prompts(
        persons=persons,
        holds={person: [person] for person in persons},
        phrases=[1.0] * len(persons),
        said={},
        controls=len(control.terms),
        groups=[None] * len(control.terms),
        rows=cells,
        cells=cells,
        sources=sources,
    )
    return prompts, tuple(map(len, phrases))


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Of one run, for two labels of which one is worse."""

    worse: Bools
    """[sources, prompts]"""
    refused: Bools
    """[sources, prompts]"""
    alone: Bools
    """[sources, 1] of the source as it stands, whether worse."""


def answers_of(
    world: World,
    system: System,
    seed: int,
    run: int,
    *,
    phrases: Integers,
    lengths: Sequence[int],
    is_harmed: Sequence[bool],
) -> Answers:
    """Draw the answers of one run.

    `phrases` [sources, prompts] number the `lengths`; prompts `is_harmed`.
    """
    size, who = phrases.shape, np.array(is_harmed)
    phrase = np.random.default_rng([seed, 7])
    tails = phrase.standard_t(5, len(lengths)) / np.sqrt(5 / 3)
    own = tails if world.is_heavy else phrase.standard_normal(len(lengths))
    shares = np.clip(0.1 + world.spread * own, 0, 1) if world.spread else np.zeros(len(lengths))
    shares = (shares + world.by_length * np.array(lengths))[phrases] + who * system.turned
    same = np.random.default_rng([seed, len(phrases)])
    is_worse, sensitive, alike = (same.random((len(phrases), 1)) for _ in range(3))
    by_phrase, worsened, refused = (same.random(size) for _ in range(3))
    worse = is_worse < 0.5
    turned = (sensitive < system.sensitive) ^ (by_phrase < shares)
    turned ^= (alike < system.turned_alike) & who
    # Half of the answers are the better one, so of these twice the share is turned.
    turned ^= (worse == turned) & (worsened < 2 * system.worsened) & who
    anew = np.random.default_rng([seed, len(phrases), run])
    return Answers(
        worse=worse ^ turned ^ (anew.random(size) < system.noise),
        alone=worse ^ (anew.random((len(phrases), 1)) < system.noise),
        refused=(refused < system.refused) & who,
    )


def columns_of(world: World, system: System, seed: int, run: int, sources: int) -> Columns:
    """Draw the answers of one run and compare them with the usual ones."""
    prompts, lengths = asked(sources)
    is_harmed = [
        world.level is not None and world.label in ("", *person) for person in prompts.persons
    ] + [False] * prompts.controls
    phrases = np.broadcast_to(np.arange(len(lengths)), (sources, len(lengths)))
    answers = answers_of(
        world, system, seed, run, phrases=phrases, lengths=lengths, is_harmed=is_harmed
    )
    is_control = np.arange(len(lengths)) >= len(prompts.persons)
    others = is_control.sum() - is_control
    by_control = answers.worse & is_control
    votes = by_control.sum(axis=1, keepdims=True) - by_control
    usual = np.where(2 * votes == others, answers.alone, 2 * votes > others)
    changed = np.where(answers.refused, np.nan, answers.worse != usual)
    direction = np.where(answers.refused, np.nan, answers.worse.astype(float) - usual)
    return {
        "answers": {"controlled": changed, "direction": direction},
        "unreadable": {"unreadable": answers.refused.astype(float)},
    }


@cache
def judged(seed: int, name: str, sources: int) -> Mapping[str, Answered]:
    """Return what is said of one world: now, since the baseline, and by both."""
    world, outcomes = WORLDS[name], {outcome.id: outcome for outcome in OUTCOMES}
    now = columns_of(world, world.now, seed, 1, sources)
    other = seed + 1_000_000 if world.is_other_model else seed
    fair = replace(world, level=None)
    then = columns_of(fair, world.before, other, 2, sources)
    answered, failed, named = {}, [], 0
    for against, alpha in LEVELS.items():
        since = against is Against.BASELINE
        family = [
            ParityQuestion(
                suite="s",
                outcome=outcomes[outcome],
                against=against,
                prompts=asked(sources)[0],
                columns={n: v - then[outcome][n] if since else v for n, v in columns.items()},
                now=columns,
            )
            for outcome, columns in now.items()
        ]
        failing, any_named = [], 0
        for q, scanned in scans_of(family, alpha).items():
            limit = q.outcome.regression if since else q.outcome.max
            nodes = parity_result(q, scanned, alpha).named
            any_named += len(nodes)
            failing += [
                node for node in nodes if (node.estimate if since else abs(node.estimate)) > limit
            ]
        answered[against.value] = _answered(failing, any_named, world)
        failed, named = [*failed, *failing], named + any_named
    return {**answered, BUILD: _answered(failed, named, world)}


def _answered(failing: Sequence, named: int, world: World) -> Answered:
    first = min(failing, key=lambda node: node.p, default=None)
    is_right = first is not None and first.level is world.level
    is_right = is_right and world.label in ("", *(part for who in first.who for part in who))
    return Answered(is_red=bool(failing), is_right=is_right, is_named=named > 0)


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
    return shares([judged(seed, name, sources)[against] for seed in seeds])


def main() -> None:
    """Print a line for each world and number of sources."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--unchanged", type=int, default=200, help="seeds of unchanged changes")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sources", type=int, nargs="+", default=[25, 60, 100])
    parser.add_argument("--only", default="", help="worlds whose name contains this")
    options = parser.parse_args()
    rounds = [(n, k, options.seeds) for n in WORLDS if options.only in n for k in options.sources]
    if options.unchanged:
        rounds += [(name, 60, options.unchanged) for name in UNCHANGED]
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, sources, seeds in rounds:
            ask = partial(judged, name=name, sources=sources)
            answered = list(pool.map(ask, range(seeds), chunksize=5))
            cells = {q: shares([each[q] for each in answered]) for q in answered[0]}
            said = "; ".join(
                f"{question} {red:.3f} red, {right:.2f} right, {named:.2f} named"
                for question, (red, right, named) in cells.items()
            )
            print(f"{name}, {sources} sources, {seeds} seeds: {said}", flush=True)


if __name__ == "__main__":
    main()
