"""The kind `metamorphic`: sources, relations, perturbation sets and the control arm (P1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise

from fairgate.domain.cases import WRITTEN, Source, Task, TestPlan, follow_up_key
from fairgate.domain.errors import DataError
from fairgate.domain.executions import CorpusDocument
from fairgate.domain.ports import Executed
from fairgate.domain.units import UNREPORTED, Claim, Reason, Unit
from fairgate.domain.wording import first_few, listed, quoted
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
from fairgate.relations.catalogue import CODE_OF, RELATIONS, relations_named
from fairgate.relations.linter import Linter
from fairgate.relations.oracles.judge import JudgeOracle
from fairgate.relations.oracles.oracle import Oracle
from fairgate.relations.oracles.text import spoken
from fairgate.relations.oracles.tone import ToneOracle
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.relations.relation import (
    MetamorphicRelation,
    NotApplicable,
    Varies,
    judge_instruction,
)
from fairgate.suites.metamorphic.assess import (
    COLUMNS,
    CONTROLS,
    DOCUMENT_CLAIMS,
    EXCLUDED,
    assess_pairs,
    document_columns,
)
from fairgate.suites.metamorphic.plan import FOLLOW_UP, JUDGE, build_plan, sources_of
from fairgate.suites.metamorphic.policy import LABEL_PLACE, NO_CONTROL, NO_TASK, SuitePolicy
from fairgate.suites.metamorphic.pools import pool_columns_of
from fairgate.suites.metamorphic.sentences import (
    SENTENCES,
    SENTENCES_RULE,
    why_unread,
)
from fairgate.suites.metamorphic.shift import shift_columns
from fairgate.suites.metamorphic.speakers import cautions
from fairgate.suites.readings import Readings
from fairgate.suites.suite import DEGREES_FIELD, LABEL_ORDER, JudgeSetup, Setup, Suite

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


def relations_of(policy: SuitePolicy) -> list[MetamorphicRelation]:
    """Return the relations that a suite names, families expanded."""
    return [RELATIONS[name] for name in relations_named(policy.relations)]


def misfits(
    policy: SuitePolicy,
    judge: JudgeSetup | None,
    relations: Sequence[MetamorphicRelation],
    task: Task | None,
) -> Iterator[tuple[str, str]]:
    """Yield field and sentence for each pair of settings that do not fit together."""
    reads = [
        relation.id for relation in relations if relation.reads_task and not policy.retrieve_only
    ]
    if policy.reads_degrees:
        yield from _unscorable(policy, reads, task)
    others = [relation.id for relation in relations if relation.varies is not Varies.DOCUMENTS]
    if others and len(others) < len(relations):
        needs = "changes questions, and `documents/subject` documents: give each a suite of its own"
        yield "relations", f"{listed(others, last='and')} {needs}"
    if policy.repeats > 1 and policy.retrieve_only:
        yield "repeats", "nothing varies that is only retrieved; leave it out"
    if policy.task == NO_TASK and reads:
        yield "task", f"{listed(reads)} reads labels, so the suite needs a `task`; add one"
    answered = () if policy.retrieve_only else relations
    judged = [relation for relation in answered if judge_instruction(relation, task)]
    if several := [relation.id for relation in judged if relation.compares_three]:
        sentence = (
            f"{listed(several, last='and')} compares three answers, which no judge does: name a "
            "task with `labels` or `tone` for it"
        )
        yield "relations", sentence
    elif judge is None and judged:
        names = listed([relation.id for relation in judged], last="and")
        sentence = (
            f"{names} compares open answers, which language models judge: "
            "name them with `judge` at the top of the policy, or name only relations that need "
            "none"
        )
        yield "relations", sentence
    if policy.turns and not any(relation.varies is Varies.TURNS for relation in relations):
        turning = listed(
            [f"`{relation.id}`" for relation in RELATIONS if relation.varies is Varies.TURNS]
        )
        yield "turns", f"no relation of the suite asks in turns; add {turning}, or remove them"
    if policy.reads_sentences and policy.retrieve_only:
        yield "read", "the suite asks for no answers, only for documents; leave it out"
    if task is not None and task.is_judged and policy.control != NO_CONTROL:
        sentence = (
            "judges compare an answer with the source's, not with those of control prompts; set "
            "`control: none`"
        )
        yield "control", sentence


def _unscorable(
    policy: SuitePolicy, reads: Sequence[str], task: Task | None
) -> Iterator[tuple[str, str]]:
    """Yield why a suite that asks for degrees cannot have them."""
    if not reads or task is None or not task.labels:
        sentence = (
            "degrees are those of a task's labels, and the suite reads none: take `degrees` out, "
            "or name a task with `labels`"
        )
        yield "read", sentence
    elif not task.scale:
        sentence = (
            "degrees need labels from the worst to the best: give the task an `order`, or take "
            "`degrees` out"
        )
        yield "read", sentence
    else:
        texts = sorted(answer_forms(task, policy.forms), key=lambda form: form[1])
        for (label, text), (other, longer) in pairwise(texts):
            if longer.startswith(text):
                sentence = (
                    f"{quoted(longer)} ({quoted(other)}) begins with {quoted(text)} "
                    f"({quoted(label)}), so that one probability would count twice; remove a form, "
                    "or rename a label"
                )
                yield "forms", sentence
    if not policy.generates and policy.repeats > 1:
        yield "repeats", "degrees do not vary where nothing is generated; leave it out"


def answer_forms(task: Task, forms: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Canonical label and text of every form, each text once."""
    texts: dict[str, str] = {}
    for form in forms:
        for label in task.labels:
            for word in (label, label[:1].upper() + label[1:]):
                texts.setdefault(form.replace(LABEL_PLACE, word), task.canonical(label))
    return tuple((label, text) for text, label in texts.items())


def chosen_sources(
    sources: Sequence[Source], relations: Sequence[MetamorphicRelation], limit: int | None
) -> list[Source]:
    """Return the sources that the relations use, at most `limit` for each relation.

    Written follow-ups belong to the relation that they name, everything else to the relations that
    make their own. Those of other relations are left out. Raises DataError where a relation has
    none, where written ones that name none are not asked, and where a row is none of its relation.
    """
    if any(each.varies is Varies.DOCUMENTS for each in relations) and not any(
        each.document for each in sources
    ):
        raise DataError(
            "no source names a document: give the table the columns `document_id` and `document`, "
            "its text with braces around whom it names"
        )
    makes = [relation.id for relation in relations if relation.varies is not Varies.PAIRS]
    counts = dict.fromkeys(
        (relation.id for relation in relations if relation.varies is Varies.PAIRS), 0
    )
    free = 0
    chosen: list[Source] = []
    for source in sources:
        name = source.pairs[0].relation if source.pairs else ""
        if name == WRITTEN and WRITTEN not in counts:
            raise DataError(
                f"source {quoted(source.id)} has written follow-ups, such as "
                f"{quoted(source.pairs[0].variant)}, which none of the suite's relations asks: add "
                "`written` to `relations`, or rename the table's columns that have a `/`"
            )
        free += (is_plain := name in ("", WRITTEN))
        if name in counts:
            counts[name] += 1
            reason = RELATIONS[name].follow_ups(source, ())
            if isinstance(reason, NotApplicable):
                raise DataError(f"source {quoted(source.id)} {reason.reason}; change its row")
            if limit is None or counts[name] <= limit:
                chosen.append(source)
        elif is_plain and makes and (limit is None or free <= limit):
            chosen.append(source)
    without = [name for name, count in counts.items() if not count]
    if without:
        there = Counter(source.pairs[0].relation for source in sources if source.pairs)
        offered = f"; it has pairs of {listed(sorted(there), last='and')}" if there else ""
        raise DataError(
            f"the table has no pairs of {listed(without)}{offered}: name another table "
            "(`meta-fair` is embedded), or take the relation out"
        )
    if makes and not free:
        raise DataError(
            f"every row of the table names its relation, and {listed(makes)} makes its follow-ups "
            "from rows that name none: give that relation a suite of its own"
        )
    return chosen


@dataclass(frozen=True, kw_only=True)
class MetamorphicSuite(Suite):
    """A suite of metamorphic tests, loaded."""

    policy: SuitePolicy
    setup: Setup
    task: Task | None
    """None where every relation has an oracle of its own."""
    sources: Sequence[Source]
    sets: Sequence[PerturbationSet]
    """The perturbation sets, the control arm's last."""

    @cached_property
    def relations(self) -> Mapping[str, MetamorphicRelation]:
        """Return the relations by id, in the order of the policy."""
        return {relation.id: relation for relation in relations_of(self.policy)}

    @cached_property
    def oracles(self) -> Mapping[str, Oracle]:
        """Return an oracle for each relation, and what reads the verdicts of judges."""
        if self.policy.retrieve_only:
            return {}
        oracles_by_name = {
            name: relation.oracle(self.task) for name, relation in self.relations.items()
        }
        if self.policy.reads_sentences:
            for name, oracle in oracles_by_name.items():
                if isinstance(oracle, ToneOracle):
                    oracles_by_name[name] = replace(oracle, is_beside=True)
        judge = self.setup.judge
        if judge is not None and any(self.judges(one) for one in self.relations.values()):
            oracles_by_name[JUDGE] = JudgeOracle(judge.definition, shows_pair=judge.shows_pair)
        return oracles_by_name

    def judges(self, relation: MetamorphicRelation) -> bool:
        """Return whether judges compare the answers to a relation's pairs."""
        return bool(self.asked_of_judge(relation))

    def asked_of_judge(self, relation: MetamorphicRelation) -> str:
        """Return the judges' instruction for a relation's pairs; empty where none is asked."""
        judge = self.setup.judge
        return judge_instruction(
            relation,
            self.task,
            has_judge=judge is not None,
            shows_pair=judge is None or judge.shows_pair,
        )

    @cached_property
    def forms(self) -> tuple[tuple[str, str], ...]:
        """Labels, one of each group of equals, and the texts that are scored for them."""
        if self.task is None or not self.policy.reads_degrees:
            return ()
        return answer_forms(self.task, self.policy.forms)

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

    @property
    def _own_columns(self) -> tuple[str, ...]:
        """Columns that single relations fill, each once."""
        return tuple(
            dict.fromkeys(
                name for relation in self.relations.values() for name in relation.own_columns
            )
        )

    @property
    def shift_columns(self) -> tuple[str, ...]:
        """Columns that compare with the policy's reference."""
        ordered = (shift.DIRECTION,) if self.task is not None and self.task.order else ()
        degrees = (shift.DEGREE,) if self.forms else ()
        ranked = (shift.EXPOSURE,) if EXPOSURE[0] in self._own_columns else ()
        answers = shift.ANSWER, shift.CHANGES, shift.UNREADABLE
        return (*answers, *ordered, *degrees, shift.DOCUMENTS, *ranked)

    @cached_property
    def pool_columns(self) -> Mapping[str, Sequence[PoolColumns]]:
        """What is computed from all answers to a source, by the id of the relation."""
        of_sentences = [SENTENCES] if self.policy.reads_sentences else []
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
        is_read = self.policy.reads_sentences
        return why_unread(spoken(response, self.thinking)) if is_read else ""

    @property
    def own_control_phrases(self) -> Sequence[str]:
        """Those of a control set that is no embedded one, and written texts: what differs first."""
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

    @cached_property
    def first_phrases(self) -> Mapping[tuple[str, str], str]:
        """Category and term of identities that several phrases say, to what reports call them.

        A group of a pool of names is called by its own word. Empty where one phrase says each.
        """
        return {
            (group.id, term.group or term.term): term.group or term.noun_phrase
            for group in self.sets
            for term in group.terms
            if term.group or term.also
        }

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
        for name in self._score_columns:
            scores = {name: _scores(assessed)}
            assessed = replace(assessed, columns={**assessed.columns, **scores}, alike=None)
        if any(self.pool_columns.values()):
            pooled = pool_columns_of(self.pool_columns, assessed, readings, executions, vectors)
            assessed = replace(assessed, columns={**assessed.columns, **pooled}, alike=None)
        if self.setup.has_reference:
            shifts = shift_columns(self, assessed, readings, executions, vectors)
            assessed = replace(assessed, columns={**assessed.columns, **shifts}, alike=None)
        elif self.setup.lacks_base:
            none = Column.of([Reason.NO_BASE] * len(units))
            shifts = dict.fromkeys(self.shift_columns, none)
            assessed = replace(assessed, columns={**assessed.columns, **shifts}, alike=None)
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
