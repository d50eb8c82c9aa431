"""What a metamorphic suite consists of, and what follows from that alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fairgate.domain.cases import Source, Task
from fairgate.metrics import shift
from fairgate.metrics.exposure import COLUMNS as EXPOSURE
from fairgate.relations.catalogue import RELATIONS, relations_named
from fairgate.relations.oracles.judge import JudgeOracle
from fairgate.relations.oracles.oracle import Oracle
from fairgate.relations.oracles.tone import ToneOracle
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.relations.relation import MetamorphicRelation, judge_instruction
from fairgate.suites.metamorphic.policy import LABEL_PLACE, SuitePolicy
from fairgate.suites.suite import Setup, Suite

JUDGE = "judge"
"""Name of the oracle that reads verdicts."""


def relations_of(policy: SuitePolicy) -> list[MetamorphicRelation]:
    """Return the relations that a suite names, families expanded."""
    return [RELATIONS[name] for name in relations_named(policy.relations)]


def answer_forms(task: Task, forms: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Canonical label and text of every form, each text once."""
    texts: dict[str, str] = {}
    for form in forms:
        for label in task.labels:
            for word in (label, label[:1].upper() + label[1:]):
                texts.setdefault(form.replace(LABEL_PLACE, word), task.canonical(label))
    return tuple((label, text) for text, label in texts.items())


@dataclass(frozen=True, kw_only=True)
class SuiteDefinition(Suite):
    """A suite's policy, task, sources and perturbation sets, as they were read."""

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
