"""What `fairgate power`, `burn-in` and `explain` work on, put together from files."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

from fairgate.adapters.files.durable import write_text
from fairgate.adapters.files.json_file import read_json_object
from fairgate.adapters.perturbation_files import embedded_set_names, load_perturbation_set
from fairgate.composition.building import Composition
from fairgate.composition.loading import LoadedPolicy, joined
from fairgate.composition.run_folder import earlier_run, replay
from fairgate.domain.errors import DataError, UsageError
from fairgate.domain.runtime import Runtime
from fairgate.engine.baseline import Baseline, KnownSd, unit_contents
from fairgate.engine.burn_in import BurnIn, Replica, burn_in
from fairgate.engine.comparison import Comparison, prepare_rule
from fairgate.engine.explain import Explanation, explain_case
from fairgate.engine.gate import GateInput
from fairgate.engine.ports import SILENT, Progress
from fairgate.engine.power import RulePower, rule_power
from fairgate.engine.references import NO_REFERENCES
from fairgate.engine.rules import expand_rules
from fairgate.reports.escaping import Redaction
from fairgate.stats.regression import PreparedRegression
from fairgate.systems.catalogue import kind_of

BURN_IN = "burn-in.json"
BURN_IN_VERSION = 1
_MAX_BYTES = 16 << 20
_MOST_SD = 3
"""As in policies: no value of a metric changes by more from source to source."""


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


def read_burn_in(path: Path, policy: str) -> list[KnownSd]:
    """Return the standard deviations in a burn-in.json. Raises DataError."""
    try:
        body = read_json_object(path, _MAX_BYTES)
        if body["schema_version"] != BURN_IN_VERSION:
            raise DataError(
                f"{path}: burn-in format {body['schema_version']!r:.40}, this FairGate reads "
                f"{BURN_IN_VERSION}; run `fairgate burn-in` again"
            )
        sds = [
            KnownSd(
                metric=str(row["metric"]),
                suite=str(row["suite"]),
                where={str(k): str(v) for k, v in row["where"].items()},
                sd=float(row["sd"]),
            )
            for row in body["sds"]
        ]
        name = body["policy"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: no readable {BURN_IN} ({error!r:.100}); make one with `fairgate burn-in`"
        ) from error
    if name != policy:
        raise DataError(
            f"{path}: is the burn-in of policy {name!r:.80}, not of {policy!r}; name the right file"
        )
    if any(not 0 <= row.sd <= _MOST_SD for row in sds):
        raise DataError(f"{path}: holds a standard deviation that is not between 0 and {_MOST_SD}")
    return sds


def policy_power(
    loaded: LoadedPolicy,
    runtime: Runtime,
    baseline: Baseline | None,
    *,
    run: Path | None,
    burn_in_file: Path | None,
) -> list[RulePower]:
    """Return what each regression rule can see, from all that is known about its noise."""
    sds = list(baseline.sds) if baseline else []
    if burn_in_file is not None:
        sds += read_burn_in(burn_in_file, loaded.policy.name)
    rules = expand_rules(loaded.policy, loaded.plan)
    observed: dict[int, PreparedRegression] = {}
    if run is not None:
        if baseline is None:
            raise UsageError("--run needs a baseline to compare with; name it with --baseline")
        path = Path(loaded.parsed.path)
        replayed, given, _, _ = replay(run, path, runtime)
        contents = {name: unit_contents(given.plan, name) for name in replayed.tables}
        comparison = Comparison(baseline=baseline, contents=contents)
        for number, rule in enumerate(rules):
            if rule.gate.regression is not None:
                table = replayed.tables[rule.suite]
                found = prepare_rule(rule, table, comparison, loaded.policy.seed)
                if found is not None and found.evidence.evaluated:
                    observed[number] = found
    return rule_power(rules, loaded.plan, loaded.policy, sds, observed)


def explain_run_case(
    run: Path, case: str, suite: str | None, policy: Path | None, runtime: Runtime
) -> tuple[Explanation, Redaction]:
    """Return everything about one pair of a finished run, and how its policy redacts texts.

    Raises UsageError for unknown keys.
    """
    undated = replace(runtime, today=None)  # an old run may be read after a quarantine's end
    replayed, given, loaded, _ = replay(run, policy, undated)
    sut = Composition(loaded, undated, SILENT).replayed(earlier_run(run, loaded))
    found = explain_case(replayed, given, case, suite=suite, vectors=sut.vectors)
    return found, loaded.policy.redact
