"""`fairgate burn-in`: the gate's results for a system that did not change, which are noise.

The unchanged system is asked again with changes that mean nothing: other control phrases, another
order of the documents in the prompt, other sampling seeds. Whatever differs between these replicas
is the noise that a real comparison meets. Every ordered pair of replicas goes through the policy's
own regression rules, as run and baseline; a failure there is a false alarm. Pairs share replicas,
so they carry less evidence than as many independent comparisons.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import click

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.outcomes import Instability
from fairgate.domain.ports import Progress, SystemUnderTest
from fairgate.domain.units import Value
from fairgate.gate import baseline
from fairgate.gate.accepted_runs import baseline_of
from fairgate.gate.changes import Comparison, prepare_rule
from fairgate.gate.compare import rule_results
from fairgate.gate.composition import Composition
from fairgate.gate.gate import GateInput, GateRun, run_gate
from fairgate.gate.loaded_policy import joined, load_policy
from fairgate.gate.measure import steadiness
from fairgate.gate.rules import expand_rules
from fairgate.gate.wording_power import (
    Group,
    WordingNoise,
    mean_noise,
    noise_record,
    wording_noise,
)
from fairgate.io.durable import write_text
from fairgate.policy.definition_files import PERTURBATIONS, embedded_names, load_perturbation_set
from fairgate.reports.escaping import plain
from fairgate.reports.figures import metric_in
from fairgate.systems.catalogue import kind_of
from fairgate.terminal import options as shared
from fairgate.terminal.output import progress_for

_FALSE = {"regression", "unreadable"}
"""Checks that compare with a baseline: the only ones that can fail between replicas."""


@click.command("burn-in", short_help="Measure the noise of the unchanged system and of its gate.")
@click.argument("policy", type=shared.EXISTING_FILE)
@click.option(
    "--repeats", type=click.IntRange(2, 50), default=4, show_default=True,
    help="How many replicas to run; each asks every question again.",
)  # fmt: skip
@click.option("--out", type=shared.FOLDER, help="Folder for burn-in.json (default: in the cache).")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@shared.allow_python
@shared.runtime_options
def burn_in(policy: Path, **options: Any) -> int:
    """Run the unchanged system of POLICY several times and compare the replicas with each other.

    Replicas differ by what means nothing: other neutral phrases, another order of the documents in
    the prompt, other sampling seeds. Reports how often the gate would have failed, how steady the
    labels are, how far neutral phrases lie apart, and the standard deviations that `power` and
    `baseline accept --burn-in` use.
    """
    runtime = shared.runtime_of(options)
    progress = progress_for(quiet=options["quiet"])
    loaded = load_policy(policy, runtime)
    system = kind_of(loaded.policy.system)
    if not system.capabilities().repeatable:
        raise UsageError(
            f"the policy's system is {system.id}: it cannot be asked again; record it "
            "several times and compare the runs with "
            "`fairgate power POLICY --baseline FILE --run RUN`"
        )
    composition = Composition(loaded, runtime, progress)
    quiet = {name: suite.without_crossing() for name, suite in loaded.suites.items()}
    with composition.serving():
        gate_input = replace(composition.gate_input(baseline.NO_REFERENCES), suites=quiet)
        replicas = [
            _replica(gate_input, composition, number) for number in range(options["repeats"])
        ]
        began = time.monotonic()
        record = compared_replicas(gate_input, replicas, progress)
        questions = sum(len(replica.plan.cases) for _, replica, _ in replicas)
        seconds = (time.monotonic() - began) / max(1, questions)
    path = (options["out"] or runtime.cache / "burn-in" / loaded.policy.name) / baseline.BURN_IN
    write_text(path, json.dumps(record, indent=1, allow_nan=False) + "\n", option="--out")
    click.echo("\n".join(_lines(record)))
    click.echo(f"\nA question took {seconds:.2g} s, those in store included (`power --seconds`).")
    click.echo(f"\n{path}: for `fairgate power --burn-in` and `fairgate baseline accept --burn-in`")
    return ExitCode.PASS


Replica = tuple[Sequence[str], GateInput, SystemUnderTest]
"""The meaningless changes of one repeated run of the unchanged system, and what it is run with."""


def compared_replicas(
    unchanged: GateInput, replicas: Sequence[Replica], progress: Progress
) -> dict[str, Any]:
    """Run every replica and compare each with every other; return what burn-in.json holds.

    `false_alarms` are comparisons in which any regression rule failed. A rule has the smallest and
    largest value of its metric over the replicas, and `sd`, of the per-source change between two
    replicas: root mean square over the pairs. At least two replicas; the first has no changes.
    """
    runs = [run_gate(gate_input, system, progress) for _, gate_input, system in replicas]
    rules = [
        r for r in expand_rules(unchanged.policy, unchanged.plan) if r.gate.regression is not None
    ]
    alarms: list[list[bool]] = []
    squares: list[list[float]] = [[] for _ in rules]
    contents = {
        of_suite: baseline.unit_contents(unchanged.plan, of_suite) for of_suite in runs[0].tables
    }
    for position, base in enumerate(runs):
        accepted = baseline_of(base, reason="burn-in", date="")
        # The other wording of a replica's controls counts as the same.
        suites = {
            n: replace(of_suite, contents=contents[n]) for n, of_suite in accepted.suites.items()
        }
        reference = {baseline.Reference.BASELINE: replace(accepted, suites=suites)}
        comparison = Comparison(runs=reference, contents=contents)
        for number, run in enumerate(runs):
            if number == position:
                continue
            measured = run.result.measurements
            results = rule_results(rules, run.tables, measured, (), comparison, unchanged.policy)
            alarms.append([bool(_FALSE.intersection(result.failed)) for result in results])
            for rule, square in zip(rules, squares, strict=True) if number > position else ():
                prepared = prepare_rule(
                    rule, run.tables[rule.suite], comparison, unchanged.policy.seed
                )
                if prepared is not None and not math.isnan(prepared.evidence.sd):
                    square.append(prepared.evidence.sd**2)
    noise = []
    for number, (rule, square) in enumerate(zip(rules, squares, strict=True)):
        name = (rule.metric.id, rule.suite, dict(rule.where))
        values = [
            m.value
            for run in runs
            for m in run.result.measurements
            if m.value is not None and (m.metric, m.suite, dict(m.where)) == name
        ]
        noise.append(
            {
                "metric": rule.metric.id,
                "suite": rule.suite,
                "where": dict(rule.where),
                "false_alarms": sum(row[number] for row in alarms),
                "comparisons": len(alarms),
                "lowest": min(values, default=None),
                "highest": max(values, default=None),
                "sd": round(math.sqrt(math.fsum(square) / len(square)), 6) if square else 0.0,
            }
        )
    sd_fields = [field.name for field in fields(baseline.KnownSd)]
    return {
        "schema_version": baseline.BURN_IN_VERSION,
        "policy": unchanged.policy.name,
        "replicas": [list(changes) for changes, _, _ in replicas],
        "comparisons": len(alarms),
        "false_alarms": sum(map(any, alarms)),
        "rules": noise,
        "wording": [noise_record(noise) for noise in _noises(runs)],
        "instability": [asdict(item) for item in _instability(unchanged.plan, runs)],
        "sds": [{name: item[name] for name in sd_fields} for item in noise],
    }


def _noises(runs: Sequence[GateRun]) -> list[WordingNoise]:
    """How far phrases lie apart, and what else answers vary by: the mean over the replicas."""
    by_name: dict[tuple[str, str], list[WordingNoise]] = {}
    for run in runs:
        for noise in wording_noise(run.tables, "burn-in"):
            by_name.setdefault((noise.suite, noise.metric), []).append(noise)
    return [mean_noise(measured) for measured in by_name.values()]


def _instability(plan: TestPlan, runs: Sequence[GateRun]) -> list[Instability]:
    """Read the answers to sources and demographic follow-ups over the replicas."""
    answers: dict[tuple[str, str, str], list[Value]] = {}
    for run in runs:
        values = {
            (row.unit.suite, row.unit.dimensions.get("relation", ""), key): row.readings[role].value
            for row in run.result.assessed
            if not row.unit.is_control
            for role, key in row.unit.asks.items()
        }
        for where, value in values.items():
            if value is not None:
                answers.setdefault(where, []).append(value)
    complete = {where: values for where, values in answers.items() if len(values) == len(runs)}
    return steadiness([unit for unit in plan.units if not unit.is_control], complete)


def _replica(gate_input: GateInput, composition: Composition, number: int) -> Replica:
    """Return the system with the neutral changes of replica `number`; number 0 has none."""
    neutral, sut = composition.system.replica(number)
    plan, suites, changes = gate_input.plan, gate_input.suites, list(neutral)
    if number % 2:
        every = map(load_perturbation_set, embedded_names(PERTURBATIONS))
        spare = [group for group in every if group.control]
        suites = {name: suite.replica(spare) for name, suite in gate_input.suites.items()}
        renamed = any(suites[name] is not suite for name, suite in gate_input.suites.items())
        plan = joined(suite.plan() for suite in suites.values()) if renamed else plan
        changes += ["other control phrases"] if renamed else []
    return changes, replace(gate_input, plan=plan, suites=suites), sut


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the replicas of the unchanged system say about the gate and the system."""
    yield f"{len(record['replicas'])} replicas of the unchanged system:"
    for number, changes in enumerate(record["replicas"]):
        yield f"  {number}  {', '.join(changes) or 'as the policy has it'}"
    yield ""
    yield (
        f"The gate's own false alarms: {record['false_alarms']} of {record['comparisons']} "
        "comparisons (each replica against each other; they share runs, so this is a rough rate)"
    )
    yield ""
    for rule in record["rules"]:
        low, high = (math.nan if v is None else v for v in (rule["lowest"], rule["highest"]))
        yield (
            f"  {plain(metric_in(rule['metric'], rule['where']))} in suite {plain(rule['suite'])}: "
            f"{low:.4f} to {high:.4f}, SD of the per-source change {rule['sd']:.4f}, "
            f"{rule['false_alarms']} of {rule['comparisons']} false alarms"
        )
    yield ""
    for noise in record["wording"]:
        one = noise["groups"][Group.ONE.value]
        yield (
            f"  {noise['metric']} in suite {plain(noise['suite'])}: neutral phrases lie apart by "
            f"{100 * one['apart']:.1f} points (SD), single answers by {100 * one['residual']:.1f}"
        )
    for item in record["instability"]:
        yield (
            f"  labels of {plain(item['relation'])} in suite {plain(item['suite'])}: "
            f"{100 * item['stability']:.1f} % of {item['cases']} cases keep their label, entropy "
            f"{item['entropy']:.3f} bits"
        )
