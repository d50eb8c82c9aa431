"""Sources and relations to the list of everything that will be asked; deterministic, no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.domain.cases import Case, Pair, Rejected, Source, Task, TestPlan
from fairgate.relations.catalogue import by_id
from fairgate.relations.linter import Linter
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.relations.relation import FollowUp, MetamorphicRelation, NotApplicable
from fairgate.suites.metamorphic.policy import SuitePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteInput:
    """A suite of the policy with everything it names loaded."""

    suite: SuitePolicy
    task: Task
    sources: Sequence[Source]
    sets: Sequence[PerturbationSet]
    """The perturbation sets, the control arm's last."""
    retriever: str | None
    """Which retriever answers; None asks without documents."""
    top_k: int


def build_plan(suites: Sequence[SuiteInput]) -> TestPlan:
    """Return the plan of all suites, in the order of the policy; equal inputs, equal plan."""
    cases: list[Case] = []
    pairs: list[Pair] = []
    rejected: list[Rejected] = []
    for given in suites:
        known: set[str] = set()
        for name in given.suite.relations:
            relation = by_id(name)
            linter = Linter(relation.template, given.sets)
            for source in given.sources:
                follow_ups, refused = _follow_ups(relation, linter, source, given)
                rejected += refused
                if not follow_ups:
                    continue
                texts = {source.id: relation.source_text(source)}
                texts |= {follow_up.key: follow_up.text for follow_up in follow_ups}
                cases += [
                    case
                    for key, text in texts.items()
                    if key not in known
                    for case in _cases(key, text, source, given)
                ]
                known.update(texts)  # `|= texts.keys()` would copy the whole set every time
                pairs += [_pair(follow_up, relation, given.suite.id) for follow_up in follow_ups]
    tasks = {given.suite.id: given.task for given in suites}
    return TestPlan(cases=cases, pairs=pairs, rejected=rejected, tasks=tasks)


def _follow_ups(
    relation: MetamorphicRelation, linter: Linter, source: Source, given: SuiteInput
) -> tuple[list[FollowUp], list[Rejected]]:
    found = relation.follow_ups(source, given.sets)
    suite = given.suite.id
    if isinstance(found, NotApplicable):
        refused = Rejected(
            key=source.id,
            suite=suite,
            relation=relation.id,
            kind="not-applicable",
            reason=found.reason,
        )
        return [], [refused]
    reasons = linter.rejections(relation.source_text(source), found)
    kept = [item for item, reason in zip(found, reasons, strict=True) if reason is None]
    refusals = [
        Rejected(key=item.key, suite=suite, relation=relation.id, kind="invalid", reason=reason)
        for item, reason in zip(found, reasons, strict=True)
        if reason is not None
    ]
    return kept, refusals


def _cases(key: str, text: str, source: Source, given: SuiteInput) -> list[Case]:
    """Return the case, once for each repeat; the first repeat has the bare key (SPEC 10)."""
    return [
        Case(
            key=key if repeat == 1 else f"{key}@repeat={repeat}",
            suite=given.suite.id,
            query=text,
            instruction=given.task.instruction,
            labels=given.task.labels,
            cluster=source.id,
            retriever=given.retriever,
            top_k=given.top_k,
            repeat=repeat - 1,
        )
        for repeat in range(1, given.suite.repeats + 1)
    ]


def _pair(follow_up: FollowUp, relation: MetamorphicRelation, suite: str) -> Pair:
    return Pair(
        key=follow_up.key,
        suite=suite,
        relation=relation.id,
        source=follow_up.source,
        cluster=follow_up.source,
        category=follow_up.category,
        term=follow_up.term,
        control=follow_up.control,
        noun_phrase=follow_up.noun_phrase,
    )
