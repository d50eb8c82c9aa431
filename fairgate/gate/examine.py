"""What can be found about a policy without running it (`check`, and a run that is refused)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fairgate.domain.cases import Case, TestPlan, source_of
from fairgate.domain.errors import BaselineError, FairGateError, PolicyError, UsageError
from fairgate.domain.ports import SILENT, Runtime
from fairgate.domain.wording import quoted
from fairgate.gate.accepted_runs import locate_accepted_runs
from fairgate.gate.loaded_policy import LoadedPolicy, judge_notices, loaded_part, systems_of
from fairgate.gate.materials import retriever_problems
from fairgate.gate.seen import kept, without_value
from fairgate.io.git import writable
from fairgate.io.tables import damage_in
from fairgate.policy.checks import missing_programs
from fairgate.policy.parse import problem
from fairgate.policy.yaml_text import YamlFault, read_yaml_file
from fairgate.systems.resources import Resources

if TYPE_CHECKING:
    from fairgate.systems.system_kind import Finding


@contextmanager
def all_at_once(path: Path, runtime: Runtime, baseline: str | None) -> Iterator[None]:
    """Report all problems that `check` finds when a run is refused, not only the first.

    A single problem keeps the exit code of the run.
    """
    try:
        yield
    except FairGateError as error:
        try:
            examine(path, runtime, baseline)
        except PolicyError as all_problems:
            if str(error) in str(all_problems) or isinstance(error, PolicyError):
                if len(all_problems.problems) == 1:
                    raise PolicyError(all_problems.problems, error.exit_code) from error
                raise all_problems from error
        raise


def examine(
    path: Path, runtime: Runtime, baseline: str | None = None, *, fetches: bool = True
) -> tuple[LoadedPolicy, list[str]]:
    """Load a policy and do all that a run does before it asks, as far as no model is needed.

    Returned are the policy and notes on what its files hold. Raises PolicyError with all problems,
    in the run's words. `baseline` is the file that a run would name; without `fetches` a model
    that is not here is a problem, too.
    """
    parsed, loaded, problems = loaded_part(read_yaml_file(path), str(path), runtime)
    if parsed is None:
        raise PolicyError(problems)
    policy = parsed.policy
    notes_on_files: list[Finding] = []
    lacking: list[YamlFault] = []
    asked_plan = None if loaded is None else loaded.plan
    for name, part, its_runtime in systems_of(parsed, runtime):
        findings = list(part.examined(asked_plan, its_runtime))
        programs = missing_programs(part.model_dump(), its_runtime.under_test.root)
        lacking += [((name, *where), sentence) for where, sentence in programs]
        for finding in findings:
            if finding.is_problem or (finding.is_fetched and not fetches):
                lacking.append(((name, *finding.place), finding.sentence))
            else:
                notes_on_files.append(finding)
    reported = {(known.path, known.line, known.column) for known in problems}
    later = [problem(parsed, place, sentence) for place, sentence in lacking]
    if policy.judge is not None:
        from fairgate.systems.judges import judge_problems

        later += [problem(parsed, *fault) for fault in judge_problems(policy.judge, runtime)]
    for position, suite in enumerate(policy.suites):
        for place, sentence in retriever_problems(suite, runtime):
            later.append(problem(parsed, ("suites", position, *place), sentence))
    if "name" not in parsed.stand_ins:
        try:
            alone = LoadedPolicy(parsed=parsed, suites={}, plan=TestPlan(cases=(), units=()))
            locate_accepted_runs(alone, path, baseline)
        except BaselineError as error:
            later.append(problem(parsed, ("name",), str(error)))
    try:
        writable(runtime.cache, "--cache")
    except UsageError as error:
        later.append(problem(parsed, (), str(error)))
    problems += [new for new in later if (new.path, new.line, new.column) not in reported]
    if loaded is None or problems:
        raise PolicyError(list(dict.fromkeys(problems)))
    notes = [*(finding.sentence for finding in notes_on_files), *judge_notices(loaded)]
    notes += damage_notes(loaded.plan)
    notes += (
        f"as `fairgate doctor` saw it, {sentence}"
        for sentence in without_value(policy, kept(policy, runtime))
    )
    # Why a run would be refused on this machine, though the policy is valid.
    try:
        for _, part, _ in systems_of(parsed, runtime):
            part.open(Resources(runtime, SILENT))
    except UsageError as error:
        notes.append(f"a run as this command was called is refused: {error}")
    accesses = [access for _, part, _ in systems_of(parsed, runtime) for access in part.accesses()]
    accesses += loaded.policy.judge.accesses() if loaded.policy.judge else []
    names = dict.fromkeys(access.secret for access in accesses if access.secret is not None)
    notes += [
        f"a run needs the environment variable {quoted(name)}, which is not set here"
        for name in names
        if name not in os.environ
    ]
    return loaded, notes


def damage_notes(plan: TestPlan) -> Iterator[str]:
    """Yield a note on sources and items whose text was damaged before it came into its table."""
    found: dict[str, list[str]] = {}
    sources: dict[tuple[str, str], Case] = {}
    for case in plan.cases:
        sources.setdefault((case.suite, source_of(case.key)), case)
    for case in sources.values():
        texts = (case.text, *case.options)
        if how := next(filter(None, map(damage_in, texts)), ""):
            found.setdefault(how, []).append(case.key)
    if found:
        total = sum(map(len, found.values()))
        kinds = (f"{how} {len(keys):,}, first {quoted(keys[0])}" for how, keys in found.items())
        yield f"{total:,} of {len(sources):,} sources hold damaged text: {'; '.join(kinds)}"
