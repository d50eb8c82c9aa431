"""Everything that can be found about a policy without running it, all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairgate.composition.judge_record import shortcomings, standing_notice
from fairgate.composition.loading import LoadedPolicy, load_policy_text
from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import PolicyError, Problem
from fairgate.domain.runtime import Runtime
from fairgate.policy.parse import ParsedPolicy, parse_policy, problem
from fairgate.policy.yaml_text import read_yaml_file
from fairgate.systems.catalogue import kind_of, policy_parts
from fairgate.systems.system_kind import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A valid policy, and what its files hold."""

    loaded: LoadedPolicy
    notes: Sequence[str]


def examine(path: Path, runtime: Runtime) -> Examined:
    """Load a policy and look at the files of its system. Raises PolicyError with all problems."""
    text = read_yaml_file(path)
    try:
        loaded = load_policy_text(text, str(path), runtime)
    except PolicyError as error:
        parsed = _parsed(text, str(path))
        if parsed is None:
            raise
        found = _findings(parsed, None, runtime)
        problems = [*error.problems, *_problems(parsed, found, runtime)]
        raise PolicyError(list(dict.fromkeys(problems))) from error
    found = _findings(loaded.parsed, loaded.plan, runtime)
    problems = _problems(loaded.parsed, found, runtime)
    if problems:
        raise PolicyError(problems)
    notes = [*(one.sentence for one in found), *_judge_notes(loaded)]
    return Examined(loaded=loaded, notes=notes)


def _judge_notes(loaded: LoadedPolicy) -> list[str]:
    """Return why the judge's verdicts would fail no build, as far as no model need be looked at."""
    judge = loaded.policy.judge
    if judge is None or not any(unit.verdicts for unit in loaded.plan.units):
        return []
    why = list(shortcomings(judge, loaded.judge_record))
    return [standing_notice(judge, why)] if why else []


def _parsed(text: str, path: str) -> ParsedPolicy | None:
    """Return the policy where it is one, whatever is wrong with what it names."""
    try:
        return parse_policy(text, path, policy_parts())
    except PolicyError:
        return None


def _findings(parsed: ParsedPolicy, plan: TestPlan | None, runtime: Runtime) -> list[Finding]:
    system = parsed.policy.system
    return list(kind_of(system).examined(system, plan, runtime))


def _problems(parsed: ParsedPolicy, found: Sequence[Finding], runtime: Runtime) -> list[Problem]:
    own = [problem(parsed, ("system", *one.place), one.sentence) for one in found if one.is_problem]
    judge = parsed.policy.judge
    if judge is None:
        return own
    from fairgate.systems.judges import judge_problems

    return [*own, *(problem(parsed, *each) for each in judge_problems(judge, runtime))]
