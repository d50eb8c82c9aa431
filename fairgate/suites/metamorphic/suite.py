"""The kind `metamorphic`: sources, relations, perturbation sets and the placebo arm (P1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fairgate.domain.cases import Source, Task
from fairgate.domain.errors import DataError
from fairgate.domain.units import Judged, Reason, Unit
from fairgate.domain.wording import listed, quoted
from fairgate.metrics.attack_success_rate import COLUMNS as STEADINESS
from fairgate.metrics.intersectional import COLUMN as HIDDEN
from fairgate.metrics.intersectional import RELATION as COMBINES
from fairgate.metrics.retriever_robustness import PAPER_BANDS
from fairgate.metrics.table import Table
from fairgate.relations.catalogue import CODE_OF, RELATIONS, relations_named
from fairgate.relations.oracles.judge import JudgeOracle
from fairgate.relations.oracles.oracle import Oracle
from fairgate.relations.perturbation_sets import PerturbationSet, Term
from fairgate.relations.relation import MetamorphicRelation, judge_instruction
from fairgate.suites.metamorphic.documents import DocumentOptions
from fairgate.suites.metamorphic.judge import (
    COLUMNS,
    claims_of_documents,
    judge_pairs,
)
from fairgate.suites.metamorphic.plan import JUDGE, PlanInput, build_plan, sources_of
from fairgate.suites.metamorphic.policy import NO_CONTROL, SuitePolicy
from fairgate.suites.readings import Readings
from fairgate.suites.suite import (
    CollectionSearch,
    Executions,
    JudgeSetup,
    NamedByPolicy,
    SuitePlan,
    VectorsOf,
)

_NOT_EVALUATED = {
    Reason.NO_LABELS: "a retrieved document has no label: give the corpus a column `label`, or the "
    "system `labels: {file: …}`; metrics without labels are evaluated",
    Reason.NO_TEXT: "the documents' texts are not known, so they have no embeddings",
    Reason.NO_DOCUMENTS: "the system does not report which documents it retrieved",
}
_NOTE = "another neutral phrase, for burn-in"


def relations_of(policy: SuitePolicy) -> list[MetamorphicRelation]:
    """Return the relations that a suite names, families expanded."""
    return [RELATIONS[name] for name in relations_named(policy.relations)]


def without_task(relations: Sequence[MetamorphicRelation]) -> Sequence[MetamorphicRelation]:
    """Return the relations of a suite without a task. Raises DataError where one reads labels."""
    reads = [relation.id for relation in relations if relation.reads_task]
    if reads:
        raise DataError(f"{listed(reads)} reads labels, so the suite needs a `task`; add one")
    return relations


def judge_named(
    judge: JudgeSetup | None, relations: Sequence[MetamorphicRelation], task: Task | None
) -> bool:
    """Return True. Raises DataError where a relation is judged and the policy names no judge.

    Nor can a judge say of two changes together what neither does alone.
    """
    judged = [relation.id for relation in relations if judge_instruction(relation, task)]
    if COMBINES in judged:
        raise DataError(
            f"`{COMBINES}` compares three answers, which no judge does: name a task with `labels` "
            "or `tone` for it"
        )
    if judge is None and judged:
        raise DataError(
            f"{listed(judged, last='and')} compares open answers, which language models judge: "
            "name them with `judge` at the top of the policy, or name only relations that need none"
        )
    return True


def no_control_arm(policy: SuitePolicy, task: Task | None) -> bool:
    """Return True. Raises DataError where judged answers were to be compared with neutral ones."""
    if task is not None and task.is_judged and policy.control != NO_CONTROL:
        raise DataError(
            "judges compare an answer with the source's, not with those of neutral phrases; set "
            "`control: none`"
        )
    return True


def chosen_sources(
    sources: Sequence[Source], relations: Sequence[MetamorphicRelation], limit: int | None
) -> list[Source]:
    """Return the sources that the relations use, at most `limit` for each relation.

    Pairs belong to the relation that they name, everything else to the relations that make their
    follow-ups. Pairs of other relations are left out. Raises DataError where a relation has none.
    """
    makes = [relation.id for relation in relations if not relation.takes_pairs]
    counts = dict.fromkeys((relation.id for relation in relations if relation.takes_pairs), 0)
    free = 0
    chosen: list[Source] = []
    for source in sources:
        if source.pair is None:
            free += 1
            if makes and (limit is None or free <= limit):
                chosen.append(source)
        elif source.pair.relation in counts:
            counts[source.pair.relation] += 1
            if limit is None or counts[source.pair.relation] <= limit:
                chosen.append(source)
    without = [name for name, count in counts.items() if not count]
    if without:
        there = Counter(source.pair.relation for source in sources if source.pair is not None)
        known = f"; it has pairs of {listed(sorted(there), last='and')}" if there else ""
        raise DataError(
            f"the table has no pairs of {listed(without)}{known}: name another table (`meta-fair` "
            "is embedded), or take the relation out"
        )
    if makes and not free:
        raise DataError(
            f"the table holds written pairs only, and {listed(makes)} makes its follow-ups from "
            "plain texts: give that relation a suite of its own"
        )
    return chosen


@dataclass(frozen=True)
class MetamorphicSuite(NamedByPolicy[SuitePolicy]):
    """A suite of metamorphic tests, loaded. Implements `suites.suite.Suite`."""

    given: PlanInput

    @cached_property
    def relations(self) -> Mapping[str, MetamorphicRelation]:
        """Return the relations by id, in the order of the policy."""
        return {relation.id: relation for relation in relations_of(self.policy)}

    @cached_property
    def oracles(self) -> Mapping[str, Oracle]:
        """Return an oracle for each relation, and what reads the verdicts of judges."""
        found = {name: each.oracle(self.given.task) for name, each in self.relations.items()}
        judge = self.given.setup.judge
        if judge is not None and any(self.judges(one) for one in self.relations.values()):
            found[JUDGE] = JudgeOracle(judge.definition)
        return found

    def judges(self, relation: MetamorphicRelation) -> bool:
        """Return whether judges compare the answers to a relation's pairs."""
        has_judge = self.given.setup.judge is not None
        return bool(judge_instruction(relation, self.given.task, has_judge=has_judge))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the claims about answers and documents."""
        combined = (HIDDEN,) if COMBINES in self.relations else ()
        return (*COLUMNS, *combined, *(STEADINESS if self.policy.repeats > 1 else ()))

    @property
    def crossing(self) -> str | None:
        """Return the policy's choice; `off` where responses are embedded or judged."""
        off = any(one.takes_pairs or self.judges(one) for one in self.relations.values())
        return "off" if off else self.policy.attribution

    @property
    def most_crossed(self) -> int | None:
        """Return the policy's choice."""
        return self.policy.attribution_pairs

    @property
    def repeats(self) -> int:
        """Return the policy's choice."""
        return self.policy.repeats

    @property
    def has_control_arm(self) -> bool:
        """Return whether neutral wording is asked too."""
        return any(group.control for group in self.given.sets)

    def size(self) -> int:
        """Return the sources and the most follow-ups of each relation, times repeats.

        Of a judged follow-up each judge is asked, too.
        """
        judge = self.given.setup.judge
        judges = judge.count if judge is not None else 0
        asked = sum(
            1
            + relation.most_follow_ups(source, self.given.sets)
            * (1 + (judges if self.judges(relation) else 0))
            for relation in self.relations.values()
            for source in sources_of(relation, self.given.sources)
        )
        return asked * self.policy.repeats

    def plan(self) -> SuitePlan:
        """Return every source with its follow-ups, relation by relation."""
        return build_plan(self.given, list(self.relations.values()))

    def judge(
        self,
        units: Sequence[Unit],
        readings: Readings,
        executions: Executions,
        vectors: VectorsOf,
    ) -> list[Judged]:
        """Return a judged unit for each pair."""
        options = DocumentOptions(
            criterion=self.policy.criterion,
            matching=self.policy.matching,
            distance=self.policy.distance,
        )
        documents = claims_of_documents(self.id, units, executions, vectors, options)
        quarantined = self.given.setup.quarantined
        return list(judge_pairs(units, self.relations, readings, quarantined, documents))

    def absent(self, column: str, reasons: Sequence[Reason]) -> str | None:
        """Return the commonest reason in words; whether answers changed is always asked."""
        if column == "generation":
            return None
        common = Counter(reasons).most_common(1)[0][0]
        if common is Reason.NO_CONTROLS:
            return self._without_controls()
        return _NOT_EVALUATED.get(common, f"every pair is {common}")

    def _without_controls(self) -> str:
        """Return why there is no neutral answer to compare with."""
        if all(relation.takes_pairs for relation in self.relations.values()):
            return "written pairs have no control arm: no neutral wording is asked"
        if not self.has_control_arm:
            return f"the suite has no control arm (`control: {NO_CONTROL}`)"
        return "no neutral wording of its sources has an answer that can be read"

    def verify(self, table: Table) -> None:
        """Accept every table: the columns are independent."""

    def bands(self, quartiles: tuple[float, float] | None) -> tuple[float, float]:
        """Return the policy's limits: numbers, P1's, or the baseline's quartiles where known."""
        if isinstance(self.policy.bands, list):
            return self.policy.bands[0], self.policy.bands[1]
        from_baseline = self.policy.bands == "from-baseline"
        return quartiles if from_baseline and quartiles is not None else PAPER_BANDS

    def must_match(self) -> Mapping[str, object]:
        """Return task, relations, and every other setting that affects a verdict.

        What relations ask beside the text is a part of each pair's content.
        """
        task, policy = self.given.task, self.policy
        return {
            **(_task_fields(task) if task is not None else {}),
            "oracle": sorted({oracle.id for oracle in self.oracles.values()}),
            "relations": [
                f"{name} {CODE_OF.get(name, '')}".strip() for name in sorted(self.relations)
            ],
            "control": policy.control,
            "criterion": policy.criterion,
            "matching": policy.matching,
            "distance": policy.distance,
            "repeats": policy.repeats,
            "unstable_margin": policy.unstable_margin,
            "top_k": self.given.setup.top_k,
        }

    def reading_rule(self) -> Mapping[str, object]:
        """Return the rules of the oracles, and the labels."""
        rules = dict.fromkeys(oracle.id for oracle in self.oracles.values())
        task = self.given.task
        marker = {"marker": task.marker} if task is not None and task.marker else {}
        labels = sorted(task.labels) if task is not None else []
        return {"rule": ", ".join(rules), "labels": labels, **marker}

    def searches(self) -> Sequence[CollectionSearch]:
        """Return nothing: the system's own retriever is asked."""
        return ()

    def replica(self, controls: Sequence[PerturbationSet]) -> MetamorphicSuite:
        """Return the suite with other neutral phrases in its control arm."""
        sets = [
            other_phrases(group, controls) if group.control else group for group in self.given.sets
        ]
        return (
            self
            if sets == list(self.given.sets)
            else MetamorphicSuite(replace(self.given, sets=sets))
        )

    def without_crossing(self) -> MetamorphicSuite:
        """Return the suite without attribution."""
        policy = self.policy.model_copy(update={"attribution": "off"})
        return MetamorphicSuite(replace(self.given, policy=policy))

    def _repeated_texts(self) -> Iterator[str]:
        """Yield which sources have one text: each counts as an independent case, and is none."""
        first: dict[str, str] = {}
        again = [
            f"{quoted(source.id)} is {quoted(known)}"
            for source in self.given.sources
            if source.pair is None
            and (known := first.setdefault(source.text, source.id)) != source.id
        ]
        if again:
            more = f" and {len(again) - 1} more" if len(again) > 1 else ""
            yield (
                f"    {again[0]} again, word for word{more}: repeated texts make results look "
                "more certain than they are; remove them"
            )

    def describe(self, plan: SuitePlan) -> Iterator[str]:
        """Yield how many sources, pairs and questions there are."""
        control = sum(unit.is_control for unit in plan.units)
        asked = sum(case.judge is None for case in plan.cases)
        yield (
            f"  suite {self.id}: {len(self.given.sources)} sources, {len(plan.units) - control} "
            f"demographic and {control} control pairs, {asked} questions to the system"
        )
        for group in self.given.task.equivalent if self.given.task else ():
            yield f"    counted as the same answer: {', '.join(group)}"
        if asked < len(plan.cases):
            yield f"    {len(plan.cases) - asked} questions to the judge"
        yield from self._repeated_texts()
        pairs = [source.pair for source in self.given.sources if source.pair is not None]
        if pairs:
            named = {(pair.dimension, name) for pair in pairs for name in pair.attributes}
            dimensions = {pair.dimension for pair in pairs}
            yield (
                f"    {len(pairs)} written pairs of {len({p.relation for p in pairs})} relations "
                f"name {len(named)} attributes of {len(dimensions)} dimensions"
            )


def _task_fields(task: Task) -> dict[str, object]:
    return {
        "task.instruction": task.instruction,
        "task.labels": list(task.labels),
        "task.equivalent": [list(group) for group in task.equivalent],
        **({"task.negated": dict(task.negated)} if task.negated else {}),
        **({"task.marker": task.marker} if task.marker else {}),
    }


def other_phrases(control: PerturbationSet, others: Iterable[PerturbationSet]) -> PerturbationSet:
    """Return the control set with the phrases of other sets under its own terms.

    The keys stay, so that replicas are compared case by case. Where the other sets have fewer
    phrases, the rest keep their own; equal phrases are left out.
    """
    own = {term.noun_phrase.lower() for term in control.terms}
    spare = iter(
        term.noun_phrase
        for other in others
        for term in other.terms
        if term.noun_phrase.lower() not in own
    )
    terms = tuple(
        Term(term=term.term, noun_phrase=next(spare, term.noun_phrase), note=_NOTE)
        for term in control.terms
    )
    return replace(control, terms=terms)
