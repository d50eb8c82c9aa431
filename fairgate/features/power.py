"""`fairgate power`: how much of a difference a suite can see, and how many sources more would take.

By the closed forms of `stats/scan.py`: what its scan names 8 times out of 10. They rest on how
answers vary within a source and how far control prompts lie apart, as a run or the baseline shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click

from fairgate.domain.errors import ExitCode
from fairgate.domain.parity import Against
from fairgate.domain.units import Unit
from fairgate.gate.accepted_runs import locate_accepted_runs
from fairgate.gate.loaded_policy import LoadedPolicy, load_policy
from fairgate.gate.parity import Prompts, columns_of, label_of
from fairgate.gate.rules import outcomes_of, parity_rules
from fairgate.gate.run_folder import replay
from fairgate.metrics.metric import Table
from fairgate.metrics.parity import ParityOutcome
from fairgate.reports.escaping import plain
from fairgate.reports.figures import LEVELS, count
from fairgate.stats.scan import Plan, needed_sources, nodes_of, noise_of, planned_reach
from fairgate.terminal import options as shared
from fairgate.terminal.document import echo_json

_TIMES = (1, 2, 4, 8)
"""Of the sources that the policy has now."""


class Noise(NamedTuple):
    """Variances of one column, and where they come from."""

    sampling: float
    apart: float
    origin: str


_ASSUMED = {
    "share": Noise(0.306**2, 0.0, "assumed"),
    "probability": Noise(0.036**2, 0.014**2, "assumed"),
}
"""What the labels, and their probabilities, of SmolLM2-135M do on 42 reviews."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomePower:
    """What a suite can see of one outcome, in one unit."""

    suite: str
    outcome: str
    unit: str
    """`share` or `probability`."""
    noise: Noise
    limit: float
    """Standard limit of the outcome, for one identity."""
    needed: int | None
    """Sources with which a difference of `limit` for one identity is seen."""
    prompts: int
    """Questions to a source."""
    reach: Mapping[int, Mapping[str, float]]
    """Sources to level to the least difference that is named 8 times out of 10."""


@click.command(short_help="Show what the suite can detect, and how many sources it needs.")
@click.argument("policy", type=shared.POLICY_FILE)
@click.option("--run", type=shared.EXISTING_FOLDER, help="A finished run that shows the noise.")
@shared.json_option
@shared.runtime_options
def power(policy: Path, **options: Any) -> int:
    """Show which differences POLICY can see for one identity, a category and everybody.

    For each outcome and number of sources: what parity names 8 times out of 10. The noise is that
    of --run, else of the baseline (baselines/<policy name>.json), else an assumed one.
    """
    if options["run"] is None:
        shared.refuse_machine_options("--run RUN, whose documents are embedded again")
    runtime = shared.runtime_of(options)
    loaded = load_policy(policy, runtime)
    baseline = locate_accepted_runs(loaded, policy, None).baseline
    tables: Mapping[str, Table] = {}
    origin = "assumed"
    if baseline is not None:
        tables, origin = {name: suite.table for name, suite in baseline.suites.items()}, "baseline"
    if options["run"] is not None:
        tables = replay(options["run"], Path(loaded.parsed.path), runtime).run.tables
        origin = "run"
    powers = list(outcome_powers(loaded, tables, origin))
    if options["shape"] == "json":
        echo_json([_record(each) for each in powers])
    else:
        click.echo("\n".join(power_lines(powers)))
    return ExitCode.PASS


def outcome_powers(
    loaded: LoadedPolicy, tables: Mapping[str, Table], origin: str
) -> Iterator[OutcomePower]:
    """Yield what each suite can see of each outcome, each unit of it for itself."""
    every = {name: outcomes_of(suite) for name, suite in loaded.suites.items()}
    offered = {name: outcomes for name, outcomes in every.items() if outcomes}
    scans = sum(map(len, offered.values()))
    for name, outcomes in offered.items():
        units = loaded.plan.units_of(name)
        categories = _categories(units)
        controls = {_person(unit) for unit in units if unit.is_control}
        sources = len({unit.cluster for unit in units})
        for outcome in outcomes:
            suite = loaded.suites[name]
            columns = [
                column
                for column in outcome.columns
                if column.column in suite.columns and not suite.lacks(column.column)
            ]
            for unit in dict.fromkeys(column.unit for column in columns):
                ordered = sorted(columns, key=lambda column: column.unit != unit)  # its own first
                own = [column.column for column in ordered if column.unit == unit]
                noise = _noise_of(outcome, own, tables.get(name), origin) or _ASSUMED[unit]
                plan = Plan(
                    nodes=nodes_of(categories), controls=len(controls), sampling=noise.sampling,
                    apart=noise.apart, shares=tuple(column.share for column in ordered),
                    scans=scans, phrases=_phrases(units), alpha=1 - loaded.policy.confidence,
                )  # fmt: skip
                limit = _limit(loaded, outcome, name)
                yield OutcomePower(
                    suite=name, outcome=outcome.id, unit=unit, noise=noise, limit=limit,
                    needed=needed_sources(plan, limit),
                    prompts=1 + sum(map(len, categories.values())) + len(controls),
                    reach={n * sources: planned_reach(plan, n * sources) for n in _TIMES},
                )  # fmt: skip


def _phrases(units: Sequence[Unit]) -> int:
    """Return the fewest phrases that say an identity."""
    of_person: dict[tuple[str, str], set[str]] = {}
    for unit in units:
        if not unit.is_control:
            of_person.setdefault(_person(unit), set()).add(unit.dimensions.get("phrase", ""))
    return min(map(len, of_person.values()), default=1)


def _person(unit: Unit) -> tuple[str, str]:
    return unit.dimensions["category"], unit.dimensions["term"]


def _categories(units: Sequence[Unit]) -> dict[str, list[str]]:
    categories: dict[str, list[str]] = {}
    for person in dict.fromkeys(_person(unit) for unit in units if not unit.is_control):
        categories.setdefault(person[0], []).append(label_of(person))
    return categories


def _limit(loaded: LoadedPolicy, outcome: ParityOutcome, suite: str) -> float:
    """Return the limit of the rule *now*, or the standard one where the policy asks for none."""
    rules = parity_rules(loaded.policy, loaded.suites)
    asked = outcome, suite, Against.CONTROL
    own = (rule.limit for rule in rules if (rule.outcome, rule.suite, rule.against) == asked)
    return next(own, outcome.max)


def _noise_of(
    outcome: ParityOutcome, columns: Sequence[str], table: Table | None, origin: str
) -> Noise | None:
    """Return the variances of the least precise column; None where nothing varies, or is known."""
    if table is None:
        return None
    prompts = Prompts.of(table, {})
    known = columns_of((outcome.by_column[name] for name in columns), table, prompts)
    noises = [Noise(*noise_of(values, len(prompts.persons)), origin) for values in known.values()]
    largest = max(noises, default=None)
    return largest if largest is not None and largest.sampling > 0 else None


def power_lines(powers: Sequence[OutcomePower]) -> Iterator[str]:
    """Yield a table for each outcome."""
    if not powers:
        yield "No suite asks control prompts: parity can be asked of none."
        return
    yield (
        "Parity names 8 times out of 10 who differs from control prompts by this many points; a "
        "rule fails where that is also beyond its limit."
    )
    for each in powers:
        yield ""
        by = ", by their probability" if each.unit == "probability" else ""
        yield f"{each.outcome}{by} in suite {plain(each.suite)} (noise: {each.noise.origin})"
        yield f"  {'sources':>9}{'questions':>11}" + "".join(f"{w:>14}" for w in LEVELS.values())
        for sources, reach in each.reach.items():
            cells = "".join(f"{_points(reach.get(level)):>14}" for level in LEVELS)
            yield f"  {sources:>9,}{sources * each.prompts:>11,}{cells}"
        enough = "no number of sources" if each.needed is None else count(each.needed, "source")
        yield f"  {enough} would show the limit of {_points(each.limit)} for one identity"
    if any(each.noise.origin == "assumed" for each in powers):
        yield ""
        yield (
            "Assumed is what a small model does (SmolLM2-135M on reviews): name a finished run "
            "with --run."
        )


def _points(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.1f}" if value <= 1 else "nothing"


def _record(each: OutcomePower) -> dict[str, Any]:
    return {
        "suite": each.suite,
        "outcome": each.outcome,
        "unit": each.unit,
        "noise": each.noise._asdict(),
        "limit": each.limit,
        "needed_sources": each.needed,
        "designs": [
            {"sources": sources, "questions": sources * each.prompts}
            | {level: _finite(least) for level, least in reach.items()}
            for sources, reach in each.reach.items()
        ],
    }


def _finite(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None
