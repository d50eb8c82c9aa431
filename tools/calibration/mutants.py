"""Biased variants of a recorded run: what a mutant replaces, suite by suite.

A mutant of strength e changes each of its cases with probability e. Whether a case is changed
follows from a hash of seed, mutant and case alone, so the cases that a weak mutant changes are
among those that a stronger one of the same seed changes. Nothing is asked: every replacement is an
answer or a document list that the run itself has, an option of the question, or an empty answer.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import product
from typing import NamedTuple

from fairgate.domain.cases import Alignment, Case, Condition, TestPlan, first_asked
from fairgate.domain.degrees import LEAST_NATS, Degrees
from fairgate.domain.executions import Document, Execution
from fairgate.domain.ports import Executed
from fairgate.domain.units import Reading, Unit
from fairgate.relations.oracles.choice import ChoiceOracle
from fairgate.relations.oracles.oracle import Oracle, read_together
from fairgate.suites.metamorphic.assess import document_key
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE
from fairgate.suites.question_items.suite import ANSWER, BIAS, LETTERS
from fairgate.suites.suite import Suite

CaseId = tuple[str, str]
STEREOTYPE, COUNTER, UNKNOWN = BIAS
_CELL = ("category", "setting", "retriever", "k", "instruction")
"""What rules can tell apart: a control is balanced in every such cell."""


class MutationKind(StrEnum):
    """What a mutant replaces."""

    ANSWERS = "answers"
    """The answer by another one that the run gives, which the oracle reads as a different one."""
    REFUSALS = "refusals"
    """The answer by an empty one, which no oracle can read."""
    DOCUMENTS = "documents"
    """All documents by those that another source was shown; the answer stays."""
    STEREOTYPES = "stereotypes"
    """The answer to a question item by the option that fits the stereotype."""


class MutationReach(StrEnum):
    """Whose cases a mutant changes."""

    TERM = "term"
    CATEGORY = "category"
    EVERYTHING = "everything"
    """Sources, identities and control prompts alike, each case for itself: more noise."""
    ALIKE = "alike"
    """All wordings of a source or none, in the same way; of question items as many towards the
    stereotype as against it: a change that is about no identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One kind of change to one part of a suite."""

    kind: MutationKind
    reach: MutationReach
    suite: str
    where: Mapping[str, str] = field(default_factory=dict)
    """Category, category and term, or category and condition; empty for the other reaches."""

    @property
    def is_control(self) -> bool:
        """Return whether it is about no identity, so that rules that compare people pass it."""
        return not self.where

    @property
    def target(self) -> str:
        """Return who is treated differently: `race/black`, `race`, or empty for nobody."""
        return "/".join(self.where.values())

    @property
    def name(self) -> str:
        """Return a name that no other mutant has."""
        return "\0".join((self.kind, self.reach, self.suite, *self.where.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotMutated:
    """A change that cannot be made of the run, and why."""

    suite: str
    what: str
    reason: str


class Mutation(NamedTuple):
    """A change that can be made of a suite: a mutant for each level of the dimensions `about`."""

    kind: MutationKind
    reach: MutationReach
    about: tuple[str, ...]
    noun: str
    """What a mutant is called, without whom it is about."""


_EVERYBODY_NOISIER = Mutation(
    MutationKind.ANSWERS, MutationReach.EVERYTHING, (), "control: a noisier model"
)
OF_PAIRS = (
    Mutation(
        MutationKind.ANSWERS, MutationReach.TERM, ("category", "term"), "other answers"
    ),
    Mutation(
        MutationKind.ANSWERS, MutationReach.CATEGORY, ("category",), "other answers"
    ),
    _EVERYBODY_NOISIER,
    Mutation(MutationKind.ANSWERS, MutationReach.ALIKE, (), "control: other answers"),
    Mutation(
        MutationKind.REFUSALS, MutationReach.TERM, ("category", "term"), "refusals"
    ),
    Mutation(MutationKind.REFUSALS, MutationReach.ALIKE, (), "control: refusals"),
    Mutation(
        MutationKind.DOCUMENTS, MutationReach.TERM, ("category", "term"), "other documents"
    ),
    Mutation(
        MutationKind.DOCUMENTS, MutationReach.EVERYTHING, (), "control: a worse retriever"
    ),
    Mutation(MutationKind.DOCUMENTS, MutationReach.ALIKE, (), "control: other documents"),
)  # fmt: skip
OF_ITEMS = (
    Mutation(
        MutationKind.STEREOTYPES, MutationReach.CATEGORY,
        ("category", "condition"), "stereotyped answers"
    ),
    Mutation(
        MutationKind.STEREOTYPES, MutationReach.ALIKE,
        (), "control: as many stereotyped as opposite answers",
    ),
    _EVERYBODY_NOISIER,
    Mutation(
        MutationKind.REFUSALS, MutationReach.CATEGORY, ("category",), "refusals"
    ),
)  # fmt: skip
_CHANGES = {(each.kind, each.reach): each for each in (*OF_PAIRS, *OF_ITEMS)}


def noun_of(mutant: Mutant) -> str:
    """Return a mutant's noun, without its target."""
    return _CHANGES[mutant.kind, mutant.reach].noun


def chance(*parts: object) -> float:
    """Return a number in [0, 1) that follows from the parts."""
    text = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big") / 2**56


def _is_about(unit: Unit, mutant: Mutant) -> bool:
    return all(unit.dimensions[name] == value for name, value in mutant.where.items())


def reading_of(oracle: Oracle, execution: Execution, case: Case) -> Reading | None:
    """Read an answer; None where there is none that can be read."""
    if execution.response is None:
        return None
    reading = oracle.read(execution, case)
    return None if reading.value is None else reading


@dataclass
class Variants:
    """A suite's cases and units, what happened, and the policy's seed."""

    suite: Suite
    cases: Sequence[Case]
    units: Sequence[Unit]
    executions: Executed
    seed: int


class ItemVariants(Variants):
    """Mutants of a suite whose units are question items."""

    changes = OF_ITEMS

    @cached_property
    def _answers(self) -> list[tuple[Unit, Case, Execution]]:
        by_key = {case.key: case for case in self.cases}
        pairs = [(unit, by_key[unit.asks[ANSWER]]) for unit in self.units]
        answers = [
            (unit, case, self.executions.get((case.suite, case.key))) for unit, case in pairs
        ]
        return [
            (unit, case, execution)
            for unit, case, execution in answers
            if execution is not None and execution.response is not None
        ]

    @cached_property
    def _roles(self) -> dict[str, str | None]:
        """Return the role of each answer; None where it has none."""
        roles: dict[str, str | None] = {}
        for _, case, execution in self._answers:
            oracle = self._oracle(case)
            read = read_together([oracle.read(execution, case)], oracle, self.suite.unstable_margin)
            roles[case.key] = None if read.value is None else str(read.value)
        return roles

    def why_not(self, kind: MutationKind) -> str:
        """Return why nothing of a kind can be made of this run; empty where it can."""
        return ""

    def targets(self, change: Mutation) -> list[dict[str, str]]:
        """Return the targets of a change: categories, and every condition where it matters."""
        categories = dict.fromkeys(unit.dimensions["category"] for unit, _, _ in self._answers)
        levels = {"category": list(categories), "condition": list(map(str, Condition))}
        chosen = product(*(levels[name] for name in change.about))
        return [dict(zip(change.about, combination, strict=True)) for combination in chosen]

    def mutated(self, mutant: Mutant, strength: float, seed: int) -> dict[CaseId, Execution]:
        """Return the executions that the mutant replaces."""
        drawn = [
            (unit, case, execution)
            for unit, case, execution in self._answers
            if _is_about(unit, mutant) and chance(self.seed, seed, mutant.name, case.key) < strength
        ]
        wanted = self._balanced(drawn) if mutant.reach is MutationReach.ALIKE else {}
        replaced: dict[CaseId, Execution] = {}
        for unit, case, execution in drawn:
            if mutant.kind is MutationKind.REFUSALS:
                replaced[case.suite, case.key] = execution._replace(response="")
                continue
            role: str | None = STEREOTYPE
            if mutant.reach is MutationReach.ALIKE:
                role = wanted.get(case.key)
            elif mutant.kind is MutationKind.ANSWERS:
                own = self._roles[case.key]
                others = [role for role in BIAS if role != own]
                drawn_number = chance("role", self.seed, seed, mutant.name, case.key)
                role = None if own is None else others[int(drawn_number * len(others))]
            elif unit.dimensions["alignment"] == Alignment.STEREOTYPE:
                continue  # the context says so: it is the right answer
            changed = self._naming(case, execution, role)
            if changed is not None:
                replaced[case.suite, case.key] = changed
        return replaced

    def _balanced(self, drawn: Sequence[tuple[Unit, Case, Execution]]) -> dict[str, str]:
        """Return new roles for answers to ambiguous questions, which move no Diff-Bias.

        In every cell as many answers move towards the stereotype as against it: those that are
        "unknown" in turn to either side, and as many stereotyped ones as counter ones change sides.
        """
        cells: dict[tuple[str, ...], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for unit, case, _ in drawn:
            role = self._roles[case.key]
            if role is not None and unit.dimensions["condition"] == Condition.AMBIGUOUS:
                cells[tuple(unit.dimensions[name] for name in _CELL)][role].append(case.key)
        roles: dict[str, str] = {}
        for cell in cells.values():
            for first, second in zip(cell[UNKNOWN][::2], cell[UNKNOWN][1::2], strict=False):
                roles |= {first: STEREOTYPE, second: COUNTER}
            for with_it, against in zip(cell[STEREOTYPE], cell[COUNTER], strict=False):
                roles |= {with_it: COUNTER, against: STEREOTYPE}
        return roles

    def _naming(self, case: Case, execution: Execution, role: str | None) -> Execution | None:
        """Return the execution with an answer that names the option of a role.

        None where it does so already, or where no answer is read as that option.
        """
        if role is None or self._roles[case.key] == role:
            return None
        oracle = self._oracle(case)
        item = oracle.items[case.key]
        option = next(text for index, text in enumerate(item.options) if item.role(index) == role)
        options = list(execution.options)
        letters = [LETTERS[options.index(option)]] if option in options else []
        before = f"{oracle.marker} " if oracle.marker else ""
        for text in (option, *letters):
            changed = execution._replace(response=f"{before}{text}")
            if oracle.read(changed, case).value == role:
                return changed
        return None

    def _oracle(self, case: Case) -> ChoiceOracle:
        oracle = self.suite.oracles[case.oracle]
        assert isinstance(oracle, ChoiceOracle)
        return oracle


class _Answer(NamedTuple):
    """What was answered, and how probable each label was."""

    response: str
    degrees: Degrees | None


def _refused(execution: Execution) -> Execution:
    """Replace the answer by an empty one, no label of which is probable."""
    degrees = execution.degrees
    if degrees is not None:
        labels = [label for label, _ in degrees.log_probabilities]
        degrees = Degrees.summed(labels, [LEAST_NATS] * len(labels))
    return execution._replace(response="", degrees=degrees)


class PairVariants(Variants):
    """Mutants of a suite whose units are a source and a follow-up."""

    changes = OF_PAIRS

    @cached_property
    def _others(self) -> dict[tuple[str, ...], list[tuple[_Answer, tuple[object, ...]]]]:
        return {}

    def why_not(self, kind: MutationKind) -> str:
        """Return why nothing of a kind can be made of this run; empty where it can."""
        if kind is MutationKind.DOCUMENTS and len(self._lists) < 2:
            return "the run does not say that two sources were shown different documents"
        if kind is MutationKind.ANSWERS and any(unit.verdicts for unit in self.units):
            return "judges compare its answers, and what they would say of others is not known"
        readers = {name for names in self._readers.values() for name in names}
        if kind is MutationKind.ANSWERS and all(
            len(self._different_answers((n,))) < 2 for n in readers
        ):
            return "the run gives no two different answers"
        return ""

    def targets(self, change: Mutation) -> list[dict[str, str]]:
        """Return the targets of a change: terms or categories; a control needs control prompts."""
        if not change.about:
            return (
                [{}]
                if change.reach is MutationReach.EVERYTHING or self.suite.has_control_arm
                else []
            )
        units = [unit for unit in self.units if not unit.is_control]
        levels = dict.fromkeys(tuple(u.dimensions[name] for name in change.about) for u in units)
        return [dict(zip(change.about, combination, strict=True)) for combination in levels]

    def mutated(self, mutant: Mutant, strength: float, seed: int) -> dict[CaseId, Execution]:
        """Return the executions that the mutant replaces."""
        replaced: dict[CaseId, Execution] = {}
        sources: dict[str, str] = {}  # of the cases that it may change
        for unit in self.units:
            if mutant.reach is MutationReach.EVERYTHING:
                sources[unit.asks[SOURCE]] = unit.cluster
            if not mutant.where or (_is_about(unit, mutant) and not unit.is_control):
                sources[unit.asks[FOLLOW_UP]] = unit.cluster
        for case in self.cases:
            key = first_asked(case.key)
            if key not in sources:
                continue
            execution = self.executions.get((case.suite, case.key))
            of_what = sources[key] if mutant.reach is MutationReach.ALIKE else key
            drawn = (self.seed, seed, mutant.name, of_what)
            if execution is None or chance(*drawn) >= strength:
                continue
            changed: Execution | None = _refused(execution)
            if mutant.kind is MutationKind.DOCUMENTS:
                changed = self._other_documents(execution, drawn)
            elif mutant.kind is MutationKind.ANSWERS:
                changed = self._other_answer(case, execution, drawn)
            if changed is not None:
                replaced[case.suite, case.key] = changed
        return replaced

    def _other_answer(
        self, case: Case, execution: Execution, drawn: Sequence[object]
    ) -> Execution | None:
        """Return the execution with another answer of the run; None where it cannot have one.

        Another one to every oracle that reads it, or else to one of them. Answers are taken in a
        circle from a place that the drawing decides, counted from the own one: equal answers that
        are drawn together become equal answers.
        """
        own = {name: read for name, read in self._read(execution, case).items() if read is not None}
        answers = self._different_answers(tuple(own))
        if len(answers) < 2:
            return None
        values = tuple(read.value for read in own.values())
        same = (number for number, (_, read) in enumerate(answers) if read == values)
        position = next(same, 0)
        step = int(chance("step", *drawn) * (len(answers) - 1))
        nearest = None
        for number in range(len(answers) - 1):
            turn = 1 + (step + number) % (len(answers) - 1)
            (response, degrees), _ = answers[(position + turn) % len(answers)]
            changed = execution._replace(response=response, degrees=degrees)
            readings = self._read(changed, case)
            differ = [
                read is not None and not self.suite.oracles[name].same(own[name], read)
                for name, read in readings.items()
                if name in own
            ]
            if all(differ):
                return changed
            nearest = nearest or (changed if any(differ) else None)
        return nearest

    def _read(self, execution: Execution, case: Case) -> dict[str, Reading | None]:
        """Read an answer with each of its oracles."""
        names = self._readers.get(first_asked(case.key), (case.oracle,))
        return {name: reading_of(self.suite.oracles[name], execution, case) for name in names}

    def _other_documents(self, execution: Execution, drawn: Sequence[object]) -> Execution | None:
        own = [document_key(document) for document in execution.documents or ()]
        start = int(chance("documents", *drawn) * len(self._lists))
        for documents in (*self._lists[start:], *self._lists[:start]) if own else ():
            other = [document_key(document) for document in documents]
            if len(other) == len(own) and not set(other) & set(own):
                return execution._replace(documents=documents)
        return None

    @cached_property
    def _readers(self) -> dict[str, tuple[str, ...]]:
        """Return the keys of cases with the oracles that read them; of equal ones the first."""
        oracles = self.suite.oracles
        first = {
            name: next(other for other, oracle in oracles.items() if oracle == own)
            for name, own in oracles.items()
        }
        readers: dict[str, dict[str, None]] = {}
        for unit in self.units:
            for key in unit.asks.values():
                readers.setdefault(key, {})[first[unit.dimensions["relation"]]] = None
        return {key: tuple(names) for key, names in readers.items()}

    def _different_answers(
        self, names: tuple[str, ...]
    ) -> list[tuple[_Answer, tuple[object, ...]]]:
        """Return one answer for each combination of values that these oracles read in the run."""
        if names in self._others:
            return self._others[names]
        answers: dict[tuple[object, ...], _Answer] = {}
        for case in self.cases:
            execution = self.executions.get((self.suite.id, case.key))
            if execution is None or execution.response is None:
                continue
            if set(names).isdisjoint(self._readers.get(first_asked(case.key), (case.oracle,))):
                continue
            read = [reading_of(self.suite.oracles[name], execution, case) for name in names]
            values = tuple(reading.value for reading in read if reading is not None)
            if len(values) == len(names):
                answers.setdefault(values, _Answer(execution.response, execution.degrees))
        self._others[names] = [
            (answer, values)
            for values, answer in sorted(answers.items(), key=lambda item: str(item[0]))
        ]
        return self._others[names]

    @cached_property
    def _lists(self) -> list[Sequence[Document]]:
        """Return the different document lists of the sources."""
        lists: dict[tuple[str | None, ...], Sequence[Document]] = {}
        for key in dict.fromkeys(unit.asks[SOURCE] for unit in self.units):
            execution = self.executions.get((self.suite.id, key))
            if execution is not None and execution.documents:
                keys = tuple(document_key(document) for document in execution.documents)
                lists.setdefault(keys, execution.documents)
        return list(lists.values())


class RecordedRun:
    """A run's plan and executions, from which mutants are made."""

    def __init__(
        self, plan: TestPlan, suites: Mapping[str, Suite], executions: Executed, seed: int
    ) -> None:
        """Take what was asked, what happened, and the policy's seed."""
        self._variants: dict[str, PairVariants | ItemVariants | None] = dict.fromkeys(suites)
        for name, suite in suites.items():
            for role, made_by in ((FOLLOW_UP, PairVariants), (ANSWER, ItemVariants)):
                if units := [unit for unit in plan.units_of(name) if role in unit.asks]:
                    cases = plan.cases_of(name)
                    self._variants[name] = made_by(suite, cases, units, executions, seed)

    def mutants(
        self, kinds: Sequence[MutationKind] = tuple(MutationKind)
    ) -> list[Mutant | NotMutated]:
        """Return every mutant of the run, and what cannot be made of it."""
        results: list[Mutant | NotMutated] = []
        for suite, variants in self._variants.items():
            changes = () if variants is None else variants.changes
            possible = dict.fromkeys(change.kind for change in changes)
            wanted = [kind for kind in kinds if kind in possible]
            if variants is None or not wanted:
                can = (
                    f"only {', '.join(possible)} can be"
                    if possible
                    else "nothing that it asks can be"
                )
                results.append(NotMutated(suite=suite, what=", ".join(kinds), reason=can))
                continue
            for kind in wanted:
                if why_not := variants.why_not(kind):
                    results.append(NotMutated(suite=suite, what=kind, reason=why_not))
                    continue
                mutants = [
                    Mutant(kind=kind, reach=change.reach, suite=suite, where=where)
                    for change in changes
                    if change.kind is kind
                    for where in variants.targets(change)
                ]
                for mutant in mutants:
                    subject = f"{kind} of {mutant.target or mutant.reach}"
                    none = NotMutated(
                        suite=suite, what=subject, reason="no case of it can be changed"
                    )
                    results.append(mutant if self.mutated(mutant, strength=1.0, seed=0) else none)
        return results

    def mutated(self, mutant: Mutant, strength: float, seed: int) -> dict[CaseId, Execution]:
        """Return the executions that the mutant replaces; deterministic."""
        variants = self._variants[mutant.suite]
        return variants.mutated(mutant, strength, seed) if variants is not None else {}
