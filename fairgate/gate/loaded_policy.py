"""From a policy file to a plan: everything a run needs to know before a model is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import DataError, PolicyError, Problem, UsageError
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import quoted
from fairgate.gate.judge_record import judge_setup, read_record
from fairgate.gate.materials import SuiteMaterials
from fairgate.gate.quarantine import quarantine_problems, quarantined
from fairgate.gate.rules import rule_problems, unknown_metrics
from fairgate.policy.parse import ParsedPolicy, problem, readable_part
from fairgate.policy.schema import Policy
from fairgate.policy.yaml_text import Where, YamlDocument, load_yaml, read_yaml_file
from fairgate.suites.catalogue import SUITE_KINDS
from fairgate.suites.suite import JudgeSetup, Setup, Suite, SuitePlan
from fairgate.systems.catalogue import kind_of, policy_parts

NO_BASELINE = "none"
"""What is named as the baseline where nothing is to be compared."""
MOST_CASES = 2_000_000
"""Case limit for untrusted policies (`Runtime.confined`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPolicy:
    """A policy whose files are read and whose plan is made; no model is loaded."""

    parsed: ParsedPolicy
    suites: Mapping[str, Suite]
    """By id, in the order of the policy."""
    plan: TestPlan
    judge_record: Mapping[str, object] | None = None
    """What the policy's judge was measured to be worth; None where there is no record."""

    @property
    def policy(self) -> Policy:
        """Return the policy itself."""
        return self.parsed.policy


def load_policy(path: Path, runtime: Runtime) -> LoadedPolicy:
    """Read a policy and all it names except models. Raises PolicyError with all problems."""
    return load_policy_text(read_yaml_file(path), str(path), runtime)


def load_policy_text(text: str, shown_path: str, runtime: Runtime) -> LoadedPolicy:
    """Do the same for a policy's text (read from a commit, say)."""
    _, loaded, problems = loaded_part(text, shown_path, runtime)
    if loaded is None:
        raise PolicyError(problems)
    return loaded


def loaded_part(
    text: str, shown_path: str, runtime: Runtime
) -> tuple[ParsedPolicy | None, LoadedPolicy | None, list[Problem]]:
    """Return what is readable of a policy, the policy where all of it is right, and all problems.

    What depends on something that is wrong is not reported: it may be right. Raises UsageError if a
    confined run would plan too much.
    """
    parsed, problems = readable_part(text, shown_path, policy_parts())
    problems += _unknown_metrics(text, shown_path)
    if parsed is None:
        return None, None, problems
    later: list[Problem] = []
    record = _judge_record(parsed, runtime, later)
    suites = _load_suites(parsed, runtime, later, record)
    if runtime.confined:
        _check_size(suites.values())
    plans = _plans(parsed, suites, later)
    plan = joined(plans.values())
    named = _suites_named(text, shown_path)
    lost = {name for name in named if name not in plans}
    lost |= {"", *named} if len(set(named)) < len(named) else set()
    found = [*rule_problems(parsed.policy, plan, lost)]
    if not lost:
        found += quarantine_problems(parsed.policy, plan, runtime.today)
    if "system" not in parsed.stand_ins:
        found += _system_problems(parsed, plan, runtime)
    later += [problem(parsed, *each) for each in found]
    reported = {(each.path, each.line, each.column) for each in problems}
    problems += [each for each in later if (each.path, each.line, each.column) not in reported]
    if problems:
        return parsed, None, list(dict.fromkeys(problems))
    loaded = LoadedPolicy(parsed=parsed, suites=suites, plan=plan, judge_record=record)
    return parsed, loaded, []


def _plans(
    parsed: ParsedPolicy, suites: Mapping[str, Suite], problems: list[Problem]
) -> dict[str, SuitePlan]:
    """Return the plan of each suite; what forbids one is a problem of the suite."""
    found = {}
    for position, model in enumerate(parsed.policy.suites):
        if model.id in suites:
            try:
                found[model.id] = suites[model.id].plan()
            except DataError as error:
                problems.append(problem(parsed, ("suites", position), str(error)))
    return found


def unanswerable(policy: Policy, plan: TestPlan) -> Iterator[tuple[Where, str]]:
    """Yield what suites ask that the system cannot answer, at the place of the system."""
    kind = kind_of(policy.system)
    can = kind.capabilities(policy.system)
    if not can.repeatable:
        return  # what a recording's system could do is not known
    scored = {case.suite for case in plan.cases if case.scored and not can.scores_options}
    handed = {
        case.suite
        for case in plan.cases
        if case.retriever not in (None, "default") and not can.takes_documents
    }
    for suite in sorted(scored):
        sentence = (
            f"suite {quoted(suite)} compares the probabilities of options (`read: scored`), which "
            f"a system of kind `{kind.id}` does not return; set `read: generated`"
        )
        yield ("system",), sentence
    for suite in sorted(handed):
        sentence = (
            f"suite {quoted(suite)} shows documents of its own, which this system does not take; "
            "give its request a place for `{{documents}}` or `takes_documents: true`, or ask with "
            "`settings: [none]` alone"
        )
        yield ("system",), sentence


def _system_problems(
    parsed: ParsedPolicy, plan: TestPlan, runtime: Runtime
) -> Iterator[tuple[Where, str]]:
    """Yield what the system names that is not there, and what it cannot answer."""
    system = parsed.policy.system
    kind = kind_of(system)
    labels = kind.labels(system)
    for where, sentence in (
        *kind.missing(system, runtime.under_test), *(labels.problems(runtime) if labels else ())
    ):  # fmt: skip
        yield ("system", *where), sentence
    yield from unanswerable(parsed.policy, plan)


def _named(text: str, shown_path: str, key: str) -> tuple[YamlDocument, list[dict[str, Any]]]:
    """Return the document, and the entries of one of its lists as they stand, valid or not."""
    document = load_yaml(text, shown_path)
    entries = document.data.get(key) if isinstance(document.data, dict) else None
    rows = entries if isinstance(entries, list) else []
    return document, [row if isinstance(row, dict) else {} for row in rows]


def _suites_named(text: str, shown_path: str) -> list[str]:
    """Return the ids of the suites that a text has; empty for one that cannot be read."""
    rows = _named(text, shown_path, "suites")[1]
    return [row["id"] if isinstance(row.get("id"), str) else "" for row in rows]


def _unknown_metrics(text: str, shown_path: str) -> list[Problem]:
    document, gates = _named(text, shown_path, "gates")
    metrics = [gate.get("metric") for gate in gates]
    return [document.problem(*found) for found in unknown_metrics(metrics)]


def _judge_record(
    parsed: ParsedPolicy, runtime: Runtime, problems: list[Problem]
) -> Mapping[str, object] | None:
    """Return the judge's record; where it cannot be read, that is a problem of the policy."""
    judge = parsed.policy.judge
    if judge is None:
        return None
    try:
        return read_record(judge, runtime)
    except DataError as error:
        problems.append(problem(parsed, ("judge", "record"), str(error)))
        return None


def narrowed(loaded: LoadedPolicy, most: int, runtime: Runtime) -> LoadedPolicy:
    """Return the policy with about `most` sources or items a suite, for a quick trial run.

    Rules and quarantine may name what is left out then: such a run decides nothing.
    """
    suites = [suite.narrowed(most) for suite in loaded.policy.suites]
    policy = loaded.policy.model_copy(update={"suites": suites})
    parsed = replace(loaded.parsed, policy=policy)
    problems: list[Problem] = []
    record = loaded.judge_record
    fewer = _load_suites(parsed, runtime, problems, record)
    if problems:
        raise PolicyError(problems)
    plan = joined(suite.plan() for suite in fewer.values())
    return LoadedPolicy(parsed=parsed, suites=fewer, plan=plan, judge_record=record)


def joined(plans: Iterable[SuitePlan]) -> TestPlan:
    """Return one plan of all suites, in their order."""
    parts = list(plans)
    return TestPlan(
        cases=[case for part in parts for case in part.cases],
        units=[unit for part in parts for unit in part.units],
        rejected=[rejected for part in parts for rejected in part.rejected],
    )


def _load_suites(
    parsed: ParsedPolicy,
    runtime: Runtime,
    problems: list[Problem],
    record: Mapping[str, object] | None,
) -> dict[str, Suite]:
    policy = parsed.policy
    judge = judge_setup(policy.judge, record)
    if "judge" in parsed.stand_ins:
        judge = JudgeSetup(count=1, definition="", is_proven=False)
    kind = kind_of(policy.system)
    can = kind.capabilities(policy.system)
    suites: dict[str, Suite] = {}
    for position, model in enumerate(policy.suites):
        setup = Setup(
            seed=policy.seed,
            quarantined=quarantined(policy, model.id),
            retriever="default" if can.gives_documents else None,
            top_k=kind.top_k(policy.system),
            takes_documents=can.takes_documents,
            judge=judge,
        )
        materials = SuiteMaterials(parsed, position, runtime, problems)
        suite = SUITE_KINDS[model.kind].load(model, setup, materials)
        if suite is not None:
            suites[model.id] = suite
    return suites


def _check_size(suites: Iterable[Suite]) -> None:
    """Raise UsageError for more cases than a runner holds; counted before any of them is made."""
    planned = sum(suite.size() for suite in suites)
    if planned > MOST_CASES:
        raise UsageError(
            f"the policy plans up to {planned:,} cases (sources times terms, items times "
            f"settings), more than the {MOST_CASES:,} that a confined run takes; set `limit`, or "
            "name fewer sources and terms"
        )
