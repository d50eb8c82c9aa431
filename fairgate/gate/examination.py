"""Everything that can be found about a policy without running it, all at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import BaselineError, PolicyError, Problem, UsageError
from fairgate.domain.ports import SILENT
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import quoted
from fairgate.gate.accepted_runs import locate_references
from fairgate.gate.judge_record import shortcomings, standing_notice
from fairgate.gate.loaded_policy import LoadedPolicy, loaded_part
from fairgate.gate.suite_retrievers import retriever_problems
from fairgate.policy.parse import ParsedPolicy, problem
from fairgate.policy.yaml_text import read_yaml_file
from fairgate.systems.catalogue import kind_of
from fairgate.systems.resources import Resources, refuse_committed
from fairgate.systems.system_kind import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A valid policy, and what its files hold."""

    loaded: LoadedPolicy
    notes: Sequence[str]


def examine(path: Path, runtime: Runtime) -> Examined:
    """Load a policy and do all that a run does before it asks, as far as no model is needed.

    Raises PolicyError with all problems, in the run's words.
    """
    parsed, loaded, problems = loaded_part(read_yaml_file(path), str(path), runtime)
    if parsed is None:
        raise PolicyError(problems)
    found = list(_findings(parsed, None if loaded is None else loaded.plan, runtime))
    reported = {(each.path, each.line, each.column) for each in problems}
    later = _problems(parsed, path, found, runtime)
    problems += [each for each in later if (each.path, each.line, each.column) not in reported]
    if loaded is None or problems:
        raise PolicyError(list(dict.fromkeys(problems)))
    notes = [*(one.sentence for one in found), *_judge_notes(loaded), *_not_here(loaded, runtime)]
    return Examined(loaded=loaded, notes=notes)


def _judge_notes(loaded: LoadedPolicy) -> list[str]:
    """Return why the judge's verdicts would fail no build, as far as no model need be looked at."""
    judge = loaded.policy.judge
    if judge is None or not any(unit.verdicts for unit in loaded.plan.units):
        return []
    why = list(shortcomings(judge, loaded.judge_record))
    return [standing_notice(judge, why)] if why else []


def _findings(parsed: ParsedPolicy, plan: TestPlan | None, runtime: Runtime) -> list[Finding]:
    system = parsed.policy.system
    if "system" in parsed.stand_ins:
        return []
    return list(kind_of(system).examined(system, plan, runtime))


def _problems(
    parsed: ParsedPolicy, path: Path, found: Sequence[Finding], runtime: Runtime
) -> Iterator[Problem]:
    policy = parsed.policy
    for one in found:
        if one.is_problem:
            yield problem(parsed, ("system", *one.place), one.sentence)
    if policy.judge is not None:
        from fairgate.systems.judges import judge_problems

        yield from (problem(parsed, *each) for each in judge_problems(policy.judge, runtime))
    for position, suite in enumerate(policy.suites):
        for place, sentence in retriever_problems(suite, runtime):
            yield problem(parsed, ("suites", position, *place), sentence)
    if "name" not in parsed.stand_ins:
        try:
            alone = LoadedPolicy(parsed=parsed, suites={}, plan=TestPlan(cases=(), units=()))
            locate_references(alone, path, None)
        except BaselineError as error:
            yield problem(parsed, ("name",), str(error))
    if runtime.cache.exists():
        try:
            refuse_committed(runtime.cache)
        except UsageError as error:
            yield problem(parsed, (), str(error))


def _not_here(loaded: LoadedPolicy, runtime: Runtime) -> list[str]:
    """Return why a run would be refused here, though the policy is valid: of this machine alone."""
    system, found = loaded.policy.system, []
    try:
        kind_of(system).open(system, Resources(runtime, SILENT))
    except UsageError as error:
        found.append(f"a run as this command was called is refused: {error}")
    accesses = [*kind_of(system).accesses(system)]
    accesses += loaded.policy.judge.accesses() if loaded.policy.judge else []
    names = dict.fromkeys(one.secret for one in accesses if one.secret is not None)
    found += [
        f"a run needs the environment variable {quoted(name)}, which is not set here"
        for name in names
        if name not in os.environ
    ]
    return found
