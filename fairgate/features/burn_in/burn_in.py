"""Burn-in: the gate's results for a system that did not change.

The unchanged system is asked again with changes that mean nothing: other control phrases, another
order of the documents in the prompt, other sampling seeds. Whatever differs between these replicas
is the noise that a real comparison meets. Every ordered pair of replicas goes through the policy's
own regression rules, as run and baseline; a failure there is a false alarm. Pairs share replicas,
so they carry less evidence than as many independent comparisons.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import permutations
from pathlib import Path

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import UsageError
from fairgate.domain.outcomes import Instability, RuleResult
from fairgate.domain.ports import Progress, SystemUnderTest
from fairgate.domain.runtime import Runtime
from fairgate.domain.units import Value
from fairgate.gate.accepted_runs import baseline_of
from fairgate.gate.baseline import NO_REFERENCES, KnownSd, unit_contents
from fairgate.gate.burn_in_file import BURN_IN, BURN_IN_VERSION
from fairgate.gate.compare import compare
from fairgate.gate.comparison import Comparison, prepare_rule
from fairgate.gate.composition import Composition
from fairgate.gate.gate import GateInput, GateRun, run_gate
from fairgate.gate.loaded_policy import LoadedPolicy, joined
from fairgate.gate.measure import steadiness
from fairgate.gate.rules import Rule, expand_rules
from fairgate.io.durable import write_text
from fairgate.policy.perturbation_files import embedded_set_names, load_perturbation_set
from fairgate.reports.escaping import plain
from fairgate.reports.figures import metric_in
from fairgate.suites.suite import Suite
from fairgate.systems.catalogue import kind_of

_FALSE = {"regression", "unreadable"}
"""Checks that compare with a baseline: the only ones that can fail between replicas."""
_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One repeated run of the unchanged system, and the meaningless changes applied to it."""

    changes: Sequence[str]
    plan: TestPlan
    suites: Mapping[str, Suite]
    sut: SystemUnderTest


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleNoise:
    """How one regression rule behaves between replicas."""

    metric: str
    suite: str
    where: Mapping[str, str]
    false_alarms: int
    comparisons: int
    lowest: float
    highest: float
    """Smallest and largest value of the metric over the replicas."""
    sd: float
    """Of the per-source change between two replicas, root mean square over the pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnIn:
    """The results of the replicas of an unchanged system."""

    policy: str
    replicas: Sequence[Sequence[str]]
    """The changes of each replica; the first has none."""
    comparisons: int
    false_alarms: int
    """Comparisons in which any regression rule failed."""
    rules: Sequence[RuleNoise]
    instability: Sequence[Instability]
    sds: Sequence[KnownSd]


def burn_in(given: GateInput, replicas: Sequence[Replica], progress: Progress) -> BurnIn:
    """Run every replica and compare each with every other. At least two replicas."""
    runs = [
        run_gate(
            replace(given, plan=replica.plan, suites=replica.suites, baseline=None),
            replica.sut,
            progress,
        )
        for replica in replicas
    ]
    rules = [
        rule for rule in expand_rules(given.policy, given.plan) if rule.gate.regression is not None
    ]
    compared = [_compared(given, rules, run, base) for run, base in permutations(runs, 2)]
    alarms = [[bool(_FALSE.intersection(rule.failed)) for rule in results] for results in compared]
    spreads = _spreads(given, rules, runs)
    noise = [
        _noise(rule, runs, sum(row[number] for row in alarms), len(alarms), spreads[number])
        for number, rule in enumerate(rules)
    ]
    return BurnIn(
        policy=given.policy.name,
        replicas=[tuple(replica.changes) for replica in replicas],
        comparisons=len(alarms),
        false_alarms=sum(any(row) for row in alarms),
        rules=noise,
        instability=_instability(given.plan, runs),
        sds=[
            KnownSd(metric=item.metric, suite=item.suite, where=item.where, sd=item.sd)
            for item in noise
        ],
    )


def _comparison(given: GateInput, base: GateRun) -> Comparison:
    """Take a replica as the baseline; the other wording of its controls counts as the same."""
    contents = {suite: unit_contents(given.plan, suite) for suite in base.tables}
    accepted = baseline_of(given, base, reason="burn-in", date="")
    suites = {
        name: replace(suite, contents=contents[name]) for name, suite in accepted.suites.items()
    }
    return Comparison(baseline=replace(accepted, suites=suites), contents=contents)


def _compared(
    given: GateInput, rules: Sequence[Rule], run: GateRun, base: GateRun
) -> list[RuleResult]:
    return compare(
        rules, run.tables, run.result.measurements, _comparison(given, base), given.policy
    )


def _spreads(given: GateInput, rules: Sequence[Rule], runs: Sequence[GateRun]) -> list[float]:
    squares: list[list[float]] = [[] for _ in rules]
    for position, base in enumerate(runs):
        comparison = _comparison(given, base)
        for run in runs[position + 1 :]:
            for number, rule in enumerate(rules):
                table = run.tables[rule.suite]
                found = prepare_rule(rule, table, comparison, given.policy.seed)
                if found is not None and not math.isnan(found.evidence.sd):
                    squares[number].append(found.evidence.sd**2)
    return [
        round(math.sqrt(math.fsum(row) / len(row)), _DECIMALS) if row else 0.0 for row in squares
    ]


def _noise(
    rule: Rule, runs: Sequence[GateRun], alarms: int, comparisons: int, sd: float
) -> RuleNoise:
    values = [
        m.value
        for run in runs
        for m in run.result.measurements
        if (m.metric, m.suite, dict(m.where)) == (rule.metric.id, rule.suite, dict(rule.where))
        and m.value is not None
    ]
    return RuleNoise(
        metric=rule.metric.id,
        suite=rule.suite,
        where=dict(rule.where),
        false_alarms=alarms,
        comparisons=comparisons,
        lowest=min(values, default=math.nan),
        highest=max(values, default=math.nan),
        sd=sd,
    )


def _instability(plan: TestPlan, runs: Sequence[GateRun]) -> list[Instability]:
    """Read the answers to sources and demographic follow-ups over the replicas."""
    answers: dict[tuple[str, str, str], list[Value]] = {}
    for run in runs:
        found = {
            (row.unit.suite, row.unit.dimensions.get("relation", ""), key): row.readings[role].value
            for row in run.result.judged
            if not row.unit.is_control
            for role, key in row.unit.asks.items()
        }
        for where, value in found.items():
            if value is not None:
                answers.setdefault(where, []).append(value)
    complete = {where: found for where, found in answers.items() if len(found) == len(runs)}
    return steadiness([unit for unit in plan.units if not unit.is_control], complete)


def burn_in_policy(
    loaded: LoadedPolicy, runtime: Runtime, progress: Progress, repeats: int
) -> BurnIn:
    """Ask the policy's system `repeats` times, past the store, and compare the replicas.

    Raises UsageError for a recorded system: it cannot be asked again.
    """
    system = loaded.policy.system
    if not kind_of(system).capabilities(system).repeatable:
        raise UsageError(
            f"the policy's system is {kind_of(system).id}: it cannot be asked again; record it "
            "several times and compare the runs with "
            "`fairgate power POLICY --baseline FILE --run RUN`"
        )
    composition = Composition(loaded, runtime, progress)
    quiet = {name: suite.without_crossing() for name, suite in loaded.suites.items()}
    with composition.serving():
        given = replace(composition.gate_input(NO_REFERENCES), suites=quiet)
        replicas = [_replica(given, composition, number) for number in range(repeats)]
        return burn_in(given, replicas, progress)


def _replica(given: GateInput, composition: Composition, number: int) -> Replica:
    """Return the system with the neutral changes of replica `number`; number 0 has none."""
    found, sut = composition.system.replica(number)
    plan, suites, changes = given.plan, given.suites, list(found)
    if number % 2:
        every = map(load_perturbation_set, embedded_set_names())
        spare = [group for group in every if group.control]
        suites = {name: suite.replica(spare) for name, suite in given.suites.items()}
        renamed = any(suites[name] is not suite for name, suite in given.suites.items())
        plan = joined(suite.plan() for suite in suites.values()) if renamed else plan
        changes += ["other control phrases"] if renamed else []
    return Replica(changes=changes, plan=plan, suites=suites, sut=sut)


def write_burn_in(folder: Path, found: BurnIn) -> Path:
    """Write burn-in.json into `folder` and return its path. Equal results, equal bytes."""
    path = folder / BURN_IN
    body = {"schema_version": BURN_IN_VERSION, **asdict(found)}
    write_text(path, json.dumps(_finite(body), indent=1, allow_nan=False) + "\n", option="--out")
    return path


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def render_burn_in(found: BurnIn) -> str:
    """Return what the replicas of the unchanged system say about the gate and the system."""
    return "\n".join(_burn_in_lines(found))


def _burn_in_lines(found: BurnIn) -> Iterator[str]:
    yield f"{len(found.replicas)} replicas of the unchanged system:"
    for number, changes in enumerate(found.replicas):
        yield f"  {number}  {', '.join(changes) or 'as the policy has it'}"
    yield ""
    yield (
        f"The gate's own false alarms: {found.false_alarms} of {found.comparisons} comparisons "
        "(each replica against each other; they share runs, so this is a rough rate)"
    )
    yield ""
    for rule in found.rules:
        yield (
            f"  {plain(metric_in(rule.metric, rule.where))} in suite {plain(rule.suite)}: "
            f"{rule.lowest:.4f} to {rule.highest:.4f}, SD of the per-source change {rule.sd:.4f}, "
            f"{rule.false_alarms} of {rule.comparisons} false alarms"
        )
    yield ""
    for item in found.instability:
        yield (
            f"  labels of {plain(item.relation)} in suite {plain(item.suite)}: "
            f"{100 * item.stability:.1f} % of {item.cases} cases keep their label, entropy "
            f"{item.entropy:.3f} bits"
        )
