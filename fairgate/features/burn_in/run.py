"""What `fairgate burn-in` asks, writes and says."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from fairgate.domain.errors import UsageError
from fairgate.domain.ports import Progress
from fairgate.domain.runtime import Runtime
from fairgate.features.burn_in.burn_in import BurnIn, Replica, burn_in
from fairgate.gate.burn_in_file import BURN_IN, BURN_IN_VERSION
from fairgate.gate.composition import Composition
from fairgate.gate.gate import GateInput
from fairgate.gate.loaded_policy import LoadedPolicy, joined
from fairgate.gate.references import NO_REFERENCES
from fairgate.io.durable import write_text
from fairgate.policy.perturbation_files import embedded_set_names, load_perturbation_set
from fairgate.reports.escaping import plain
from fairgate.reports.figures import metric_in
from fairgate.systems.catalogue import kind_of


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
