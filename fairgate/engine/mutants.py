"""Biased variants of a recorded run: which answers and documents a mutant replaces, and by what.

A mutant of strength e changes each of its cases with probability e. Whether a case is changed
follows from a hash of seed, mutant and case alone, so the cases that a weak mutant changes are
among those that a stronger one of the same seed changes. Nothing is asked: every replacement is an
answer or a document list that the run itself has, or an empty answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.executions import Document, Execution
from fairgate.domain.keys import first_asked
from fairgate.domain.units import Reading, Unit
from fairgate.engine.ports import Executed
from fairgate.oracles.oracle import Oracle
from fairgate.suites.metamorphic.documents import document_key
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE
from fairgate.suites.suite import Suite

CaseId = tuple[str, str]


class Kind(StrEnum):
    """What a mutant replaces."""

    ANSWERS = "answers"
    """The answer by another one that the run gives, which the oracle reads as a different one."""
    REFUSALS = "refusals"
    """The answer by an empty one, which no oracle can read."""
    DOCUMENTS = "documents"
    """All documents by those that another source was shown; the answer stays."""


class Reach(StrEnum):
    """Whose cases a mutant changes."""

    TERM = "term"
    CATEGORY = "category"
    EVERYTHING = "everything"
    """Sources, demographic and neutral wording alike, each case for itself: a worse system."""
    ALIKE = "alike"
    """All wordings of a source or none, in the same way: a change that is about no identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One kind of change to one part of a suite."""

    kind: Kind
    reach: Reach
    suite: str
    where: Mapping[str, str] = field(default_factory=dict)
    """Category, or category and term; empty for the other reaches."""

    @property
    def is_control(self) -> bool:
        """Return whether the gate should let the mutant pass."""
        return self.reach is Reach.ALIKE

    @property
    def target(self) -> str:
        """Return whom it is about: `race/black`, `race`, or nobody."""
        return "/".join(self.where.values())

    @property
    def name(self) -> str:
        """Return what tells the mutant from all others."""
        return "\0".join((self.kind, self.reach, self.suite, *self.where.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotMutated:
    """What could not be changed, and why."""

    suite: str
    what: str
    reason: str


def chance(*parts: object) -> float:
    """Return a number in [0, 1) that follows from the parts."""
    text = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big") / 2**56


class RecordedRun:
    """A run's plan and executions, from which mutants are made."""

    def __init__(
        self, plan: TestPlan, suites: Mapping[str, Suite], executions: Executed, seed: int
    ) -> None:
        """Take what was asked, what happened, and the policy's seed."""
        self.suites = suites
        self.executions = executions
        self._seed = seed
        self._cases = {name: plan.cases_of(name) for name in suites}
        self._units = {
            name: [unit for unit in plan.units_of(name) if FOLLOW_UP in unit.asks]
            for name in suites
        }
        self._others = {name: self._different_answers(name) for name in self.mutable}
        self._lists = {name: self._document_lists(name) for name in self.mutable}

    @property
    def mutable(self) -> list[str]:
        """Return the suites of pairs, in the order of the policy."""
        return [name for name, units in self._units.items() if units]

    def mutants(self, kinds: Sequence[Kind] = tuple(Kind)) -> list[Mutant | NotMutated]:
        """Return every mutant of the run, and what cannot be made of it."""
        found: list[Mutant | NotMutated] = [
            NotMutated(suite=name, what="every kind", reason="its cases are no pairs")
            for name in self.suites
            if name not in self.mutable
        ]
        for suite in self.mutable:
            for kind in kinds:
                why_not = self._why_not(suite, kind)
                if why_not:
                    found.append(NotMutated(suite=suite, what=kind, reason=why_not))
                else:
                    found += map(self._checked, self._of_kind(suite, kind))
        return found

    def _checked(self, mutant: Mutant) -> Mutant | NotMutated:
        """Return the mutant, unless even the strongest one changes nothing."""
        if self.mutated(mutant, strength=1.0, seed=0):
            return mutant
        what = f"{mutant.kind} of {mutant.target or mutant.reach}"
        return NotMutated(suite=mutant.suite, what=what, reason="no case of it can be changed")

    def _why_not(self, suite: str, kind: Kind) -> str:
        if kind is Kind.DOCUMENTS and len(self._lists[suite]) < 2:
            return "the run does not say that two sources were shown different documents"
        if kind is Kind.ANSWERS and all(len(o) < 2 for o in self._others[suite].values()):
            return "the run gives no two different answers"
        return ""

    def _of_kind(self, suite: str, kind: Kind) -> Iterator[Mutant]:
        units = [unit for unit in self._units[suite] if not unit.is_control]
        pairs = dict.fromkeys((u.dimensions["category"], u.dimensions["term"]) for u in units)
        for category, term in pairs:
            where = {"category": category, "term": term}
            yield Mutant(kind=kind, reach=Reach.TERM, suite=suite, where=where)
        if kind is Kind.ANSWERS:
            for category in dict.fromkeys(category for category, _ in pairs):
                where = {"category": category}
                yield Mutant(kind=kind, reach=Reach.CATEGORY, suite=suite, where=where)
        if kind is not Kind.REFUSALS:
            yield Mutant(kind=kind, reach=Reach.EVERYTHING, suite=suite)
        if self.suites[suite].has_control_arm:
            yield Mutant(kind=kind, reach=Reach.ALIKE, suite=suite)

    def mutated(self, mutant: Mutant, strength: float, seed: int) -> dict[CaseId, Execution]:
        """Return the executions that the mutant replaces; deterministic."""
        found: dict[CaseId, Execution] = {}
        sources = self._drawn_by(mutant)
        for case in self._cases[mutant.suite]:
            key = first_asked(case.key)
            if key not in sources:
                continue
            execution = self.executions.get((case.suite, case.key))
            drawn = (self._seed, seed, mutant.name, sources[key] if mutant.is_control else key)
            if execution is None or chance(*drawn) >= strength:
                continue
            changed = self._changed(mutant.kind, case, execution, drawn)
            if changed is not None:
                found[case.suite, case.key] = changed
        return found

    def _drawn_by(self, mutant: Mutant) -> dict[str, str]:
        """Return the keys of the cases that the mutant may change, each with its source."""
        found: dict[str, str] = {}
        for unit in self._units[mutant.suite]:
            if _is_meant(unit, mutant):
                found[unit.asks[FOLLOW_UP]] = unit.cluster
            if mutant.reach is Reach.EVERYTHING:
                found[unit.asks[SOURCE]] = unit.cluster
        return found

    def _changed(
        self, kind: Kind, case: Case, execution: Execution, drawn: Sequence[object]
    ) -> Execution | None:
        if kind is Kind.REFUSALS:
            return replace(execution, response="")
        if kind is Kind.DOCUMENTS:
            documents = self._other_documents(case, execution, drawn)
            return None if documents is None else replace(execution, documents=documents)
        return self._other_answer(case, execution, drawn)

    def _other_answer(
        self, case: Case, execution: Execution, drawn: Sequence[object]
    ) -> Execution | None:
        """Return the execution with another answer of the run; None where it cannot have one.

        Answers are taken in a circle from a place that the drawing decides, counted from the own
        one: equal answers that are drawn together become equal answers.
        """
        oracle = self.suites[case.suite].oracles[case.oracle]
        own = _read(oracle, execution, case)
        answers = self._others[case.suite].get(case.oracle, ())
        if own is None or len(answers) < 2:
            return None
        same = (number for number, (_, read) in enumerate(answers) if read == own.value)
        place = next(same, 0)
        step = int(chance("step", *drawn) * (len(answers) - 1))
        for number in range(len(answers) - 1):
            turn = 1 + (step + number) % (len(answers) - 1)
            response, _ = answers[(place + turn) % len(answers)]
            changed = replace(execution, response=response)
            read = _read(oracle, changed, case)
            if read is not None and not oracle.same(own, read):
                return changed
        return None

    def _other_documents(
        self, case: Case, execution: Execution, drawn: Sequence[object]
    ) -> Sequence[Document] | None:
        if not execution.documents:
            return None
        own = [document_key(document) for document in execution.documents]
        lists = self._lists[case.suite]
        start = int(chance("documents", *drawn) * len(lists))
        for number in range(len(lists)):
            documents = lists[(start + number) % len(lists)]
            other = [document_key(document) for document in documents]
            if len(other) == len(own) and not set(other) & set(own):
                return documents
        return None

    def _different_answers(self, suite: str) -> dict[str, list[tuple[str, object]]]:
        """Return by oracle one response for each value that is read in the run."""
        found: dict[str, dict[object, str]] = {}
        for case in self._cases[suite]:
            execution = self.executions.get((suite, case.key))
            if execution is None or execution.response is None:
                continue
            read = _read(self.suites[suite].oracles[case.oracle], execution, case)
            if read is not None and read.value is not None:
                found.setdefault(case.oracle, {}).setdefault(read.value, execution.response)
        return {
            oracle: [(claimed, value) for value, claimed in sorted(values.items(), key=str)]
            for oracle, values in found.items()
        }

    def _document_lists(self, suite: str) -> list[Sequence[Document]]:
        """Return the different document lists of the sources."""
        found: dict[tuple[str | None, ...], Sequence[Document]] = {}
        for key in dict.fromkeys(unit.asks[SOURCE] for unit in self._units[suite]):
            execution = self.executions.get((suite, key))
            if execution is not None and execution.documents:
                keys = tuple(document_key(document) for document in execution.documents)
                found.setdefault(keys, execution.documents)
        return list(found.values())


def _is_meant(unit: Unit, mutant: Mutant) -> bool:
    if mutant.reach in (Reach.EVERYTHING, Reach.ALIKE):
        return True
    own = all(unit.dimensions[name] == value for name, value in mutant.where.items())
    return own and not unit.is_control


def _read(oracle: Oracle, execution: Execution, case: Case) -> Reading | None:
    """Return what an answer says; None where there is none that can be read."""
    if execution.response is None:
        return None
    found = oracle.read(execution, case)
    return None if found.value is None else found
