"""The kind `metamorphic`: sources, relations, perturbation sets and the control arm (P1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property

from fairgate.domain.cases import TestPlan, follow_up_key
from fairgate.domain.executions import CorpusDocument
from fairgate.domain.ports import Executed
from fairgate.domain.units import UNREPORTED, Claim, Reason, Unit
from fairgate.domain.wording import first_few, quoted
from fairgate.metrics import shift
from fairgate.metrics.attack_success_rate import COLUMNS as STEADINESS
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.columns import AssessedSuite, Column, PoolColumns, VectorsOf
from fairgate.metrics.degrees import degree_columns
from fairgate.metrics.direction import COLUMN as DIRECTION
from fairgate.metrics.exposure import COLUMNS as EXPOSURE
from fairgate.metrics.exposure import NET
from fairgate.metrics.parity import CONTROLLED, SCORES
from fairgate.metrics.retriever_robustness import OVERLAP, PAPER_BANDS
from fairgate.metrics.sentences import SENTENCES_RULE
from fairgate.relations.catalogue import CODE_OF, RELATIONS
from fairgate.relations.linter import Linter
from fairgate.relations.oracles.text import spoken
from fairgate.relations.relation import NotApplicable, Varies
from fairgate.suites.metamorphic.assess import (
    COLUMNS,
    CONTROLS,
    DOCUMENT_CLAIMS,
    EXCLUDED,
    assess_pairs,
    document_columns,
)
from fairgate.suites.metamorphic.definition import SuiteDefinition
from fairgate.suites.metamorphic.plan import FOLLOW_UP, build_plan, sources_of
from fairgate.suites.metamorphic.policy import NO_CONTROL
from fairgate.suites.metamorphic.pools import pool_columns_of
from fairgate.suites.metamorphic.speakers import cautions
from fairgate.suites.readings import Readings
from fairgate.suites.suite import DEGREES_FIELD, LABEL_ORDER

_BEFORE_WHAT_DIFFERS = 20
_NOT_EVALUATED = {
    Reason.NO_LABELS: "a retrieved document has no label: give the corpus a column `label`, or the "
    "system `labels: {file: …}`; metrics without labels are evaluated",
    Reason.NO_TOXIC_LABEL: "no retrieved document has a label that is known as toxic (`toxic`, "
    "`toxicity`, `true`, `yes`, `1`), which `criterion: any` looks for: rename yours, or take "
    "`criterion: count`",
    Reason.NO_TEXT: "the documents' texts are not known, so they have no embeddings",
    Reason.NO_DOCUMENTS: UNREPORTED,
    Reason.NOT_ASKED: "the suite asks for no answers, only for documents",
    Reason.NOT_TAKEN: "the system returns changed documents as they were: it searched its own",
}


@dataclass(frozen=True, kw_only=True)
class MetamorphicSuite(SuiteDefinition):
    """A suite of metamorphic tests: plans and assesses what its definition says."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the claims about answers and documents."""
        ordered: tuple[str, ...] = ()
        if self.task is not None and self.task.order:
            ordered = (DIRECTION,)
        steady = STEADINESS if self.policy.repeats > 1 else ()
        several = dict.fromkeys(each for those in self.pool_columns.values() for each in those)
        pooled = (name for each in several for name in each.names)
        of_reference = self.shift_columns if self.setup.names_reference else ()
        ordered += self._score_columns
        return (*COLUMNS, *ordered, *self._own_columns, *steady, *pooled, *of_reference)

    @property
    def _score_columns(self) -> tuple[str, ...]:
        """The column of the task's scores; none where answers are no numbers."""
        score = None if self.task is None else self.task.score
        return () if score is None else (SCORES[score.better == "lower"],)

    @property
    def selected_from(self) -> float | None:
        """The score from which the task says that somebody is selected."""
        score = None if self.task is None else self.task.score
        return None if score is None or score.selected is None else score.selected.low

    @cached_property
    def pool_columns(self) -> Mapping[str, Sequence[PoolColumns]]:
        """What is computed from all answers to a source, by the id of the relation."""
        of_sentences: list[PoolColumns] = []
        if self.policy.reads_sentences:
            from fairgate.suites.metamorphic.sentences import SENTENCES

            of_sentences = [SENTENCES]
        own = {
            name: (*relation.pool_columns, *of_sentences, *_of_metrics(name))
            for name, relation in self.relations.items()
        }
        if self.task is None or not self.forms:
            return own
        degrees = degree_columns(self.task.scale, self.policy.least_mass)
        reading = {name for name, relation in self.relations.items() if relation.reads_task}
        return {
            name: (*several, degrees) if name in reading else several
            for name, several in own.items()
        }

    @cached_property
    def crossing(self) -> str | None:
        """Return the policy's choice; `off` where responses are embedded, judged, or none asked."""
        off = any(one.varies is Varies.PAIRS or self.judges(one) for one in self.relations.values())
        off |= bool(self._score_columns)
        chosen = "sampled" if self.most_crossed else str(self.policy.attribution)
        return "off" if off or self.policy.retrieve_only else chosen

    @property
    def why_uncrossed(self) -> str:
        """Why attribution crosses nothing where it is `off`."""
        if self.policy.retrieve_only:
            return "no answer is asked for, so there is none to attribute"
        if self.policy.attribution == "off":
            return "attribution is off: the policy says so (`attribution: off`)"
        judged = any(self.judges(relation) for relation in self.relations.values())
        why = "a judge compares the answers" if judged else "the pairs are written"
        why = "answers are scores" if self._score_columns else why
        return f"attribution is off: {why}"

    def lacks(self, column: str) -> str:
        """Say that no answer is asked for where the column is about answers."""
        documents = (*DOCUMENT_CLAIMS, *EXPOSURE, shift.DOCUMENTS, shift.EXPOSURE)
        if column == CONTROLLED and self._score_columns:
            return "answers are scores: their means are compared (`parity: score`)"
        is_lacking = self.policy.retrieve_only is not None and column not in documents
        return _NOT_EVALUATED[Reason.NOT_ASKED] if is_lacking else ""

    def why_unread(self, response: str) -> str:
        """Say that an answer in sentences has more of them than are read."""
        if not self.policy.reads_sentences:
            return ""
        from fairgate.suites.metamorphic.sentences import why_unread

        return why_unread(spoken(response, self.thinking))

    @property
    def own_control_phrases(self) -> Sequence[str]:
        """Those of a control set that is no bundled one, and written texts: what differs first."""
        phrases = [
            term.noun_phrase
            for group in self.sets
            if group.control and group.is_own
            for term in group.terms
        ]
        written = (
            _from_what_differs(pair.follow_up, source.text)
            for source in self.sources
            for pair in source.pairs
            if pair.is_control
        )
        return [*phrases, *dict.fromkeys(written)]

    @property
    def has_control_arm(self) -> bool:
        """Return whether control prompts are asked too."""
        written = (pair for source in self.sources for pair in source.pairs)
        return any(group.control for group in self.sets) or any(pair.is_control for pair in written)

    def size(self) -> int:
        """Return the sources and the most follow-ups of each relation, times repeats.

        Of a judged follow-up each judge is asked, too.
        """
        questions, judge = 0, self.setup.judge
        for relation in self.relations.values():
            judges = judge.count if judge is not None and self.judges(relation) else 0
            for source in sources_of(relation, self.sources):
                questions += 1 + relation.most_follow_ups(source, self.sets) * (1 + judges)
        return questions * self.policy.repeats

    def plan(self) -> TestPlan:
        """Return every source with its follow-ups, relation by relation."""
        return build_plan(self, list(self.relations.values()))

    def assess(
        self, units: Sequence[Unit], readings: Readings, executions: Executed, vectors: VectorsOf
    ) -> AssessedSuite:
        """Return every pair assessed, as columns."""
        documents = document_columns(self.policy, units, executions, vectors)
        label_ranks = self.task.ranks if self.task is not None else {}
        assessed = assess_pairs(units, self.relations, readings, documents, label_ranks)
        more = {name: _scores(assessed) for name in self._score_columns}
        if any(self.pool_columns.values()):
            more |= pool_columns_of(self.pool_columns, assessed, readings, executions, vectors)
        if self.setup.has_reference:
            from fairgate.suites.metamorphic.shift import shift_columns

            more |= shift_columns(self, assessed, readings, executions, vectors)
        elif self.setup.lacks_base:
            more |= dict.fromkeys(self.shift_columns, Column.of([Reason.NO_BASE] * len(units)))
        if more:
            assessed = replace(assessed, columns={**assessed.columns, **more}, alike=None)
        if not self.policy.retrieve_only:
            return assessed
        return replace(assessed, decisive=NET if EXPOSURE[0] in self.columns else OVERLAP.column)

    def absent(self, column: str, reasons: Sequence[Reason]) -> str | None:
        """Return the commonest reason in words; whether answers changed is always asked."""
        if column == "generation" and not self.policy.retrieve_only:
            return None
        common = Counter(reasons).most_common(1)[0][0]
        if column in shift.COLUMNS and self.setup.lacks_base:
            return self.setup.lacks_base
        if column in shift.COLUMNS and common in (Reason.NO_REFERENCE, Reason.UNREADABLE):
            return shift.NOT_DECIDED
        for several in self.pool_columns.values():
            for group in several:
                if column in group.names:
                    sentence = group.not_evaluated.get(common)
                    return sentence or f"every pair is {common}"
        if common is not Reason.NO_CONTROLS:
            return _NOT_EVALUATED.get(common, f"every pair is {common}")
        takes_pairs = all(relation.varies is Varies.PAIRS for relation in self.relations.values())
        if not self.has_control_arm and takes_pairs:
            return "the table holds no written control prompts (columns `control/…`)"
        if not self.has_control_arm:
            return f"the suite asks no control prompts (`control: {NO_CONTROL}`)"
        return "no control prompt of its sources has an answer that can be read"

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
        task, policy = self.task, self.policy
        fields: dict[str, object] = {}
        if task is not None:
            fields["task.instruction"] = task.instruction
            fields["task.labels"] = list(task.labels)
            fields["task.equivalent"] = [list(group) for group in task.equivalent]
            fields |= {"task.negated": dict(task.negated)} if task.negated else {}
            fields |= {LABEL_ORDER: list(task.order)} if task.order else {}
            fields |= {"task.marker": task.marker} if task.marker else {}
        if self.forms:
            fields[DEGREES_FIELD] = [*map(list, self.forms), policy.least_mass]
            fields |= {} if policy.generates else {"generates": False}
        if EXPOSURE[0] in self.columns:
            fields |= {"retrieve_only": policy.retrieve_only}
        return {
            **fields,
            "oracle": sorted({oracle.id for oracle in self.oracles.values()}),
            "relations": [
                f"{name} {CODE_OF.get(name) or RELATIONS.brought_by(name)}".strip()
                for name in sorted(self.relations)
            ],
            "control": policy.control,
            "criterion": policy.criterion,
            "matching": policy.matching,
            "distance": policy.distance,
            "repeats": policy.repeats,
            "unstable_margin": policy.unstable_margin,
            "top_k": self.setup.top_k,
            **({"thinking": list(map(list, self.thinking))} if self.thinking else {}),
            **({"read": SENTENCES_RULE} if policy.reads_sentences else {}),
        }

    def reading_rule(self) -> Mapping[str, object]:
        """Return the rules of the oracles, and the labels."""
        rules = dict.fromkeys(oracle.id for oracle in self.oracles.values())
        task = self.task
        marker = {"marker": task.marker} if task is not None and task.marker else {}
        labels = sorted(task.labels) if task is not None else []
        own: dict[str, object] = {"read": SENTENCES_RULE} if self.policy.reads_sentences else {}
        own |= {"thinking": list(map(list, self.thinking))} if self.thinking else {}
        return {"rule": ", ".join(rules), "labels": labels, **marker, **own}

    def without_crossing(self) -> MetamorphicSuite:
        """Return the suite without attribution."""
        return replace(self, policy=self.policy.model_copy(update={"attribution": "off"}))

    def describe(self, plan: TestPlan) -> Iterator[str]:
        """Yield how many sources, pairs and questions there are."""
        control = sum(unit.is_control for unit in plan.units)
        questions = sum(case.judge is None for case in plan.cases)
        yield (
            f"  suite {self.id}: {len(self.sources)} sources, {len(plan.units) - control} "
            f"demographic and {control} control pairs, {questions} questions to the system"
        )
        if turns := sum(1 + len(case.before) for case in plan.cases if case.before):
            yield f"    of these, conversations of {turns} turns in all"
        if self.policy.reads_sentences:
            yield "    answers are read sentence by sentence, beside those to control prompts"
        elif self.task and self.task.tone and not self.task.is_judged:
            yield "    the tone of answers is compared, not what they say or refuse to say"
        for terms in self.sets:
            if terms.review:
                yield f"    the words of {quoted(terms.id)}: {terms.review}"
        if own := self.own_control_phrases:
            yield f"    called neutral by a file of your own: {first_few([*map(quoted, own)])}"
        for group in self.task.equivalent if self.task else ():
            yield f"    counted as the same answer: {', '.join(group)}"
        if questions < len(plan.cases):
            yield f"    {len(plan.cases) - questions} questions to the judge"
        first: dict[tuple[str, CorpusDocument | None], str] = {}
        again = [
            f"{quoted(source.id)} is {quoted(earlier)}"
            for source in self.sources
            if not source.pairs
            and (earlier := first.setdefault((source.text, source.document), source.id))
            != source.id
        ]
        if again:
            more = f" and {len(again) - 1} more" if len(again) > 1 else ""
            yield (
                f"    {again[0]} again, word for word{more}: repeated texts make results look "
                "more certain than they are; remove them"
            )
        yield from cautions(self.relations.values(), self.sources, self.sets)
        pairs = [pair for source in self.sources for pair in source.pairs]
        if pairs:
            relations = {pair.relation for pair in pairs}
            people = [pair for pair in pairs if not pair.is_control]
            attributes = {(pair.dimension, name) for pair in people for name in pair.attributes}
            dimensions = {pair.dimension for pair in people}
            yield (
                f"    {len(pairs)} written pairs of {len(relations)} relations "
                f"name {len(attributes)} attributes of {len(dimensions)} dimensions"
            )
        if comments := list(self._comments()):
            key, comment = comments[0]
            yield (
                f"    the linter comments on {len(comments)} of them, which are asked as they "
                f"stand; {quoted(key)}: {comment}"
            )

    def _comments(self) -> Iterator[tuple[str, str]]:
        """Yield the key of each written follow-up that the linter comments on, and what it says."""
        for relation in self.relations.values():
            linter = Linter(relation.fault, ())
            for source in (
                sources_of(relation, self.sources) if relation.varies is Varies.PAIRS else ()
            ):
                written = relation.follow_ups(source, ())
                if not isinstance(written, NotApplicable):
                    comments = linter.rejections(relation.source_text(source), written)
                    for follow_up, comment in zip(written, comments, strict=True):
                        if comment:
                            yield follow_up_key(source.id, relation.id, follow_up.variant), comment


def _scores(assessed: AssessedSuite) -> Column:
    """Return the score of each follow-up, or why it has none."""
    read, of_controls = assessed.readings[FOLLOW_UP], assessed.readings.get(CONTROLS)
    claims: list[Claim] = []
    for row in range(len(assessed)):
        excluded = None if of_controls is None else of_controls[row].reason
        answer = read[row]
        if excluded in EXCLUDED and excluded is not None:
            claims.append(excluded)
        elif isinstance(answer.value, float):
            claims.append(answer.value)
        else:
            claims.append(answer.reason or Reason.UNREADABLE)
    return Column.of(claims)


def _of_metrics(relation: str) -> Iterator[PoolColumns]:
    """Yield what metrics bring to compute their own columns from a relation's answers."""
    for metric in METRICS:
        if metric.pool_columns is not None and fnmatchcase(relation, metric.needs.relation or "*"):
            yield metric.pool_columns


def _from_what_differs(text: str, source: str) -> str:
    """Return a text from shortly before where it leaves its source."""
    pairs = enumerate(zip(text, source, strict=False))
    same = next((n for n, (own, other) in pairs if own != other), min(len(text), len(source)))
    start = max(0, same - _BEFORE_WHAT_DIFFERS)
    return f"{'…' * bool(start)}{text[start:]}"
