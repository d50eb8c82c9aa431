"""From a policy file to a plan: everything a run needs to know before a model is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fairgate.composition.answerable import unanswerable
from fairgate.composition.judge_record import judge_setup, read_record
from fairgate.composition.materials import SuiteMaterials
from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import DataError, PolicyError, Problem, UsageError
from fairgate.domain.runtime import Runtime
from fairgate.engine.quarantine import quarantine_problems, quarantined
from fairgate.engine.rule_problems import rule_problems, unknown_metrics
from fairgate.policy.parse import ParsedPolicy, parse_policy, problem
from fairgate.policy.schema import Policy
from fairgate.policy.yaml_text import load_yaml, read_yaml_file
from fairgate.suites.catalogue import SUITE_KINDS
from fairgate.suites.suite import Setup, Suite, SuitePlan
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
    parsed = _parsed(text, shown_path)
    problems: list[Problem] = []
    record = _judge_record(parsed, runtime, problems)
    suites = _load_suites(parsed, runtime, problems, record)
    system = parsed.policy.system
    kind = kind_of(system)
    labels = kind.labels(system)
    problems += [
        problem(parsed, ("system", *where), sentence)
        for where, sentence in (
            *kind.missing(system, runtime.under_test),
            *(labels.problems(runtime) if labels else ()),
        )
    ]
    metrics = [gate.metric for gate in parsed.policy.gates]
    unknown = [problem(parsed, *found) for found in unknown_metrics(metrics)]
    if problems:
        raise PolicyError([*problems, *unknown])
    problems += unknown
    if runtime.confined:
        _check_size(suites.values())
    plan = joined(suite.plan() for suite in suites.values())
    problems += [
        problem(parsed, *found)
        for found in (
            *unanswerable(parsed.policy, plan),
            *rule_problems(parsed.policy, plan),
            *quarantine_problems(parsed.policy, plan, runtime.today),
        )
    ]
    if problems:
        raise PolicyError(problems)
    return LoadedPolicy(parsed=parsed, suites=suites, plan=plan, judge_record=record)


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


def _parsed(text: str, shown_path: str) -> ParsedPolicy:
    """Return the policy; raises PolicyError with unknown metrics beside malformed values."""
    try:
        return parse_policy(text, shown_path, policy_parts())
    except PolicyError as error:
        document = load_yaml(text, shown_path)
        gates = document.data.get("gates") if isinstance(document.data, dict) else None
        metrics = [
            gate.get("metric") if isinstance(gate, dict) else None
            for gate in (gates if isinstance(gates, list) else ())
        ]
        unknown = [document.problem(*found) for found in unknown_metrics(metrics)]
        raise PolicyError([*error.problems, *unknown]) from error


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
