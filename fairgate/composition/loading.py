"""A policy file to a plan: everything a run needs to know before a model is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fairgate.adapters.files.sources import read_sources
from fairgate.adapters.perturbation_files import collect_perturbation_sets
from fairgate.adapters.task_files import load_task, task_from_policy
from fairgate.composition.items import load_item_suites
from fairgate.domain.cases import Task, TestPlan
from fairgate.domain.corpora import CorpusSpec
from fairgate.domain.errors import DataError, PolicyError, Problem, UsageError
from fairgate.domain.runtime import Runtime
from fairgate.engine.plan import SuiteInput, build_plan
from fairgate.engine.plan_items import ItemSuiteInput, with_items
from fairgate.engine.quarantine import quarantine_problems
from fairgate.engine.rules import rule_problems, unknown_metrics
from fairgate.policy.parse import ParsedPolicy, parse_policy, problem
from fairgate.policy.schema import Policy
from fairgate.policy.yaml_text import read_yaml_file
from fairgate.schema.columns import Columns
from fairgate.suites.metamorphic.policy import SuitePolicy, TaskPolicy
from fairgate.systems.catalogue import kind_of, system_models
from fairgate.systems.tables import find_table

Loaded = TypeVar("Loaded")
MOST_CASES = 2_000_000
"""Case limit for untrusted policies (`Runtime.confined`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPolicy:
    """A policy whose files are read and whose plan stands; no model is loaded."""

    parsed: ParsedPolicy
    suites: Sequence[SuiteInput]
    """The suites of metamorphic tests."""
    plan: TestPlan
    item_suites: Sequence[ItemSuiteInput] = ()
    """The suites of question items."""

    @property
    def policy(self) -> Policy:
        """Return the policy itself."""
        return self.parsed.policy


def load_policy(path: Path, runtime: Runtime) -> LoadedPolicy:
    """Read a policy and all it names except models. Raises PolicyError with all problems."""
    return load_policy_text(read_yaml_file(path), str(path), runtime)


def load_policy_text(text: str, shown_path: str, runtime: Runtime) -> LoadedPolicy:
    """Do the same for a policy's text (read from a commit, say)."""
    parsed = parse_policy(text, shown_path, system_models())
    problems: list[Problem] = []
    suites = [
        loaded
        for position, suite in enumerate(parsed.policy.suites)
        if isinstance(suite, SuitePolicy)
        and (loaded := _load_suite(parsed, position, suite, runtime, problems)) is not None
    ]
    item_suites = load_item_suites(parsed, runtime, problems)
    system = parsed.policy.system
    problems += [
        problem(parsed, ("system", *where), sentence)
        for where, sentence in kind_of(system).missing(system, runtime)
    ]
    unknown = [problem(parsed, *found) for found in unknown_metrics(parsed.policy)]
    if problems:
        raise PolicyError([*problems, *unknown])
    problems += unknown
    if runtime.confined:
        _check_size(suites, item_suites)
    plan = with_items(build_plan(suites), item_suites)
    problems += [
        problem(parsed, *found)
        for found in (
            *rule_problems(parsed.policy, plan),
            *quarantine_problems(parsed.policy, plan, runtime.today),
        )
    ]
    if problems:
        raise PolicyError(problems)
    return LoadedPolicy(parsed=parsed, suites=suites, item_suites=item_suites, plan=plan)


def _check_size(suites: Sequence[SuiteInput], item_suites: Sequence[ItemSuiteInput]) -> None:
    """Raise UsageError for more cases than a runner holds; counted before any of them is made."""
    planned = 0
    for given in suites:
        terms = sum(len(group.terms) for group in given.sets)
        asked = len(given.suite.relations) * given.suite.repeats
        planned += len(given.sources) * terms * asked
    for items in item_suites:
        suite = items.suite
        ways = len(suite.settings) * len(suite.retrievers) * len(suite.depths)
        planned += len(items.items) * ways * len(suite.instructions)
    if planned > MOST_CASES:
        raise UsageError(
            f"the policy plans up to {planned:,} cases (sources times terms, items times "
            f"settings), more than the {MOST_CASES:,} that a confined run takes; set `limit`, or "
            "name fewer sources and terms"
        )


def _load_suite(
    parsed: ParsedPolicy,
    position: int,
    suite: SuitePolicy,
    runtime: Runtime,
    problems: list[Problem],
) -> SuiteInput | None:
    before = len(problems)

    def attempt(name: str, load: Callable[[], Loaded]) -> Loaded | None:
        try:
            return load()
        except PolicyError as error:
            problems.extend(error.problems)
        except (DataError, UsageError) as error:
            problems.append(problem(parsed, ("suites", position, name), str(error)))
        return None

    task = attempt("task", lambda: _task(suite.task, runtime))
    sources = attempt(
        "sources", lambda: read_sources(_sources(suite.sources, runtime), suite.limit)
    )
    sets = collect_perturbation_sets(
        suite.perturbations, suite.control, folder=runtime.root, confined=runtime.confined
    )
    problems += sets.problems
    problems += [
        problem(parsed, ("suites", position, *place), sentence) for place, sentence in sets.misfits
    ]
    if task is None or sources is None or len(problems) > before:
        return None
    system = parsed.policy.system
    kind = kind_of(system)
    return SuiteInput(
        suite=suite,
        task=task,
        sources=sources,
        sets=sets.sets,
        retriever="default" if kind.capabilities(system).gives_documents else None,
        top_k=kind.top_k(system),
    )


def _task(named: str | TaskPolicy, runtime: Runtime) -> Task:
    if isinstance(named, TaskPolicy):
        return task_from_policy(named)
    return load_task(named, folder=runtime.root, confined=runtime.confined)


def _sources(named: str | Columns, runtime: Runtime) -> CorpusSpec:
    columns = Columns(path=named) if isinstance(named, str) else named
    path = find_table("sources", columns.path, runtime)
    return CorpusSpec(path=str(path), id=columns.id, text=columns.text, label=columns.label)
