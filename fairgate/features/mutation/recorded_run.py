"""A recorded run, suite by suite, from which mutants are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from fairgate.domain.cases import Case, TestPlan, first_asked
from fairgate.domain.executions import Document, Execution
from fairgate.domain.items import Alignment, Condition
from fairgate.domain.ports import Executed
from fairgate.domain.units import Reading, Unit
from fairgate.features.mutation.mutants import (
    CaseId,
    Kind,
    Mutant,
    NotMutated,
    Reach,
    Variants,
    chance,
    reading_of,
)
from fairgate.relations.oracles.choice import ChoiceOracle
from fairgate.relations.oracles.oracle import read_together
from fairgate.suites.metamorphic.documents import document_key
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE
from fairgate.suites.question_items.plan import ANSWER, LETTERS
from fairgate.suites.question_items.suite import BIAS
from fairgate.suites.suite import Suite

STEREOTYPE, COUNTER, UNKNOWN = BIAS
_CELL = ("category", "setting", "retriever", "k", "instruction")
"""What rules can tell apart: a control is balanced in every such cell."""


class ItemVariants:
    """Mutants of a suite whose units are question items. Implements `Variants`."""

    kinds: ClassVar[tuple[Kind, ...]] = (Kind.STEREOTYPES, Kind.ANSWERS, Kind.REFUSALS)

    def __init__(
        self,
        suite: Suite,
        cases: Sequence[Case],
        units: Sequence[Unit],
        executions: Executed,
        seed: int,
    ) -> None:
        """Take the suite's cases and units, what happened, and the policy's seed."""
        self._suite = suite
        self._seed = seed
        by_key = {case.key: case for case in cases}
        asked = [(unit, by_key[unit.asks[ANSWER]]) for unit in units]
        found = [(unit, case, executions.get((suite.id, case.key))) for unit, case in asked]
        self._answers = [
            (unit, case, execution)
            for unit, case, execution in found
            if execution is not None and execution.response is not None
        ]
        self._roles = {
            case.key: self._role(case, execution) for _, case, execution in self._answers
        }

    def why_not(self, kind: Kind) -> str:
        """Return nothing: an item has its options, whatever the run answered."""
        del kind
        return ""

    def of_kind(self, kind: Kind) -> Iterator[Mutant]:
        """Yield a mutant for each category, and condition where it matters, or for everything."""
        suite = self._suite.id
        if kind is Kind.ANSWERS:
            yield Mutant(kind=kind, reach=Reach.EVERYTHING, suite=suite)
            return
        for category in dict.fromkeys(unit.dimensions["category"] for unit, _, _ in self._answers):
            where = {"category": category}
            if kind is Kind.REFUSALS:
                yield Mutant(kind=kind, reach=Reach.CATEGORY, suite=suite, where=where)
                continue
            for condition in Condition:
                narrow = {**where, "condition": str(condition)}
                yield Mutant(kind=kind, reach=Reach.CATEGORY, suite=suite, where=narrow)
        if kind is Kind.STEREOTYPES:
            yield Mutant(kind=kind, reach=Reach.ALIKE, suite=suite)

    def mutated(self, mutant: Mutant, strength: float, seed: int) -> dict[CaseId, Execution]:
        """Return the executions that the mutant replaces; deterministic."""
        drawn = [
            (unit, case, execution)
            for unit, case, execution in self._answers
            if all(unit.dimensions[name] == value for name, value in mutant.where.items())
            and chance(self._seed, seed, mutant.name, case.key) < strength
        ]
        wanted = self._balanced(drawn) if mutant.is_control else {}
        found: dict[CaseId, Execution] = {}
        for unit, case, execution in drawn:
            if mutant.kind is Kind.REFUSALS:
                found[case.suite, case.key] = execution._replace(response="")
                continue
            role: str | None = STEREOTYPE
            if mutant.is_control:
                role = wanted.get(case.key)
            elif mutant.kind is Kind.ANSWERS:
                role = self._other_role(case, (self._seed, seed, mutant.name, case.key))
            elif unit.dimensions["alignment"] == Alignment.STEREOTYPE:
                continue  # the context says so: it is the right answer
            changed = self._naming(case, execution, role)
            if changed is not None:
                found[case.suite, case.key] = changed
        return found

    def _balanced(self, drawn: Sequence[tuple[Unit, Case, Execution]]) -> dict[str, str]:
        """Return new roles for answers to ambiguous questions, which move no Diff-Bias.

        In every cell as many answers move towards the stereotype as against it: those that are
        "unknown" in turn to either side, and as many stereotyped ones as counter ones change sides.
        """
        cells: dict[tuple[str, ...], dict[str, list[str]]] = {}
        for unit, case, _ in drawn:
            role = self._roles[case.key]
            if role is None or unit.dimensions["condition"] != Condition.AMBIGUOUS:
                continue
            cell = cells.setdefault(tuple(unit.dimensions[name] for name in _CELL), {})
            cell.setdefault(role, []).append(case.key)
        found: dict[str, str] = {}
        for cell in cells.values():
            unknown = cell.get(UNKNOWN, [])
            for first, second in zip(unknown[::2], unknown[1::2], strict=False):
                found |= {first: STEREOTYPE, second: COUNTER}
            for with_it, against in zip(
                cell.get(STEREOTYPE, []), cell.get(COUNTER, []), strict=False
            ):
                found |= {with_it: COUNTER, against: STEREOTYPE}
        return found

    def _other_role(self, case: Case, drawn: Sequence[object]) -> str | None:
        """Return one of the two roles that the answer does not have; None where it has none."""
        own = self._roles[case.key]
        others = [role for role in BIAS if role != own]
        return None if own is None else others[int(chance("role", *drawn) * len(others))]

    def _naming(self, case: Case, execution: Execution, role: str | None) -> Execution | None:
        """Return the execution with an answer that names the option of a role.

        None where it does so already, or where no answer is read as that option.
        """
        if role is None or self._roles[case.key] == role:
            return None
        oracle = self._oracle(case)
        item = oracle.items[case.key]
        option = next(text for index, text in enumerate(item.options) if item.role(index) == role)
        shown = list(execution.options)
        letters = [LETTERS[shown.index(option)]] if option in shown else []
        before = f"{oracle.marker} " if oracle.marker else ""
        for text in (option, *letters):
            changed = execution._replace(response=f"{before}{text}")
            if oracle.read(changed, case).value == role:
                return changed
        return None

    def _role(self, case: Case, execution: Execution) -> str | None:
        """Return what the answer counts as; None where it counts as nothing."""
        oracle = self._oracle(case)
        raw = oracle.read(execution, case)
        found = read_together([raw], oracle, self._suite.unstable_margin)
        return None if found.value is None else str(found.value)

    def _oracle(self, case: Case) -> ChoiceOracle:
        oracle = self._suite.oracles[case.oracle]
        if not isinstance(oracle, ChoiceOracle):
            raise TypeError(f"question items are read by {type(oracle).__name__}, not by choices")
        return oracle


class PairVariants:
    """Mutants of a suite whose units are a source and a follow-up. Implements `Variants`."""

    kinds: ClassVar[tuple[Kind, ...]] = (Kind.ANSWERS, Kind.REFUSALS, Kind.DOCUMENTS)

    def __init__(
        self,
        suite: Suite,
        cases: Sequence[Case],
        units: Sequence[Unit],
        executions: Executed,
        seed: int,
    ) -> None:
        """Take the suite's cases and units, what happened, and the policy's seed."""
        self._suite = suite
        self._cases = cases
        self._units = units
        self._executions = executions
        self._seed = seed
        self._readers = self._read_by_whom()
        self._others: dict[tuple[str, ...], list[tuple[str, tuple[object, ...]]]] = {}
        self._lists = self._document_lists()

    def why_not(self, kind: Kind) -> str:
        """Return why nothing of a kind can be made of this run; empty where it can."""
        if kind is Kind.DOCUMENTS and len(self._lists) < 2:
            return "the run does not say that two sources were shown different documents"
        if kind is Kind.ANSWERS and any(unit.verdicts for unit in self._units):
            return "judges compare its answers, and what they would say of others is not known"
        readers = {name for names in self._readers.values() for name in names}
        if kind is Kind.ANSWERS and all(len(self._different_answers((n,))) < 2 for n in readers):
            return "the run gives no two different answers"
        return ""

    def of_kind(self, kind: Kind) -> Iterator[Mutant]:
        """Yield a mutant for each term, each category, everything, and the control."""
        suite = self._suite.id
        units = [unit for unit in self._units if not unit.is_control]
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
        if self._suite.has_control_arm:
            yield Mutant(kind=kind, reach=Reach.ALIKE, suite=suite)

    def mutated(self, mutant: Mutant, strength: float, seed: int) -> dict[CaseId, Execution]:
        """Return the executions that the mutant replaces; deterministic."""
        found: dict[CaseId, Execution] = {}
        sources = self._drawn_by(mutant)
        for case in self._cases:
            key = first_asked(case.key)
            if key not in sources:
                continue
            execution = self._executions.get((case.suite, case.key))
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
        for unit in self._units:
            if _is_meant(unit, mutant):
                found[unit.asks[FOLLOW_UP]] = unit.cluster
            if mutant.reach is Reach.EVERYTHING:
                found[unit.asks[SOURCE]] = unit.cluster
        return found

    def _changed(
        self, kind: Kind, case: Case, execution: Execution, drawn: Sequence[object]
    ) -> Execution | None:
        if kind is Kind.REFUSALS:
            return execution._replace(response="")
        if kind is Kind.DOCUMENTS:
            documents = self._other_documents(execution, drawn)
            return None if documents is None else execution._replace(documents=documents)
        return self._other_answer(case, execution, drawn)

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
        place = next(same, 0)
        step = int(chance("step", *drawn) * (len(answers) - 1))
        nearest = None
        for number in range(len(answers) - 1):
            turn = 1 + (step + number) % (len(answers) - 1)
            response, _ = answers[(place + turn) % len(answers)]
            changed = execution._replace(response=response)
            found = self._read(changed, case)
            differ = [
                read is not None and not self._suite.oracles[name].same(own[name], read)
                for name, read in found.items()
                if name in own
            ]
            if all(differ):
                return changed
            nearest = nearest or (changed if any(differ) else None)
        return nearest

    def _read(self, execution: Execution, case: Case) -> dict[str, Reading | None]:
        """Return what each oracle reads in an answer."""
        names = self._readers.get(first_asked(case.key), (case.oracle,))
        return {name: reading_of(self._suite.oracles[name], execution, case) for name in names}

    def _other_documents(
        self, execution: Execution, drawn: Sequence[object]
    ) -> Sequence[Document] | None:
        if not execution.documents:
            return None
        own = [document_key(document) for document in execution.documents]
        lists = self._lists
        start = int(chance("documents", *drawn) * len(lists))
        for number in range(len(lists)):
            documents = lists[(start + number) % len(lists)]
            other = [document_key(document) for document in documents]
            if len(other) == len(own) and not set(other) & set(own):
                return documents
        return None

    def _read_by_whom(self) -> dict[str, tuple[str, ...]]:
        """Return the keys of cases with the oracles that read them; of equal ones the first."""
        oracles = self._suite.oracles
        first = {
            name: next(other for other, each in oracles.items() if each == own)
            for name, own in oracles.items()
        }
        found: dict[str, dict[str, None]] = {}
        for unit in self._units:
            for key in unit.asks.values():
                found.setdefault(key, {})[first[unit.dimensions["relation"]]] = None
        return {key: tuple(names) for key, names in found.items()}

    def _different_answers(self, names: tuple[str, ...]) -> list[tuple[str, tuple[object, ...]]]:
        """Return one response for each combination of values that these oracles read in the run."""
        known = self._others.get(names)
        if known is not None:
            return known
        found: dict[tuple[object, ...], str] = {}
        for case in self._cases:
            execution = self._executions.get((self._suite.id, case.key))
            if execution is None or execution.response is None:
                continue
            if set(names).isdisjoint(self._readers.get(first_asked(case.key), (case.oracle,))):
                continue
            read = [reading_of(self._suite.oracles[name], execution, case) for name in names]
            values = tuple(each.value for each in read if each is not None)
            if len(values) == len(names):
                found.setdefault(values, execution.response)
        known = [(text, values) for values, text in sorted(found.items(), key=str)]
        self._others[names] = known
        return known

    def _document_lists(self) -> list[Sequence[Document]]:
        """Return the different document lists of the sources."""
        found: dict[tuple[str | None, ...], Sequence[Document]] = {}
        for key in dict.fromkeys(unit.asks[SOURCE] for unit in self._units):
            execution = self._executions.get((self._suite.id, key))
            if execution is not None and execution.documents:
                keys = tuple(document_key(document) for document in execution.documents)
                found.setdefault(keys, execution.documents)
        return list(found.values())


def _is_meant(unit: Unit, mutant: Mutant) -> bool:
    if mutant.reach in (Reach.EVERYTHING, Reach.ALIKE):
        return True
    own = all(unit.dimensions[name] == value for name, value in mutant.where.items())
    return own and not unit.is_control


_BY_ROLE: Mapping[str, type[PairVariants | ItemVariants]] = {
    FOLLOW_UP: PairVariants,
    ANSWER: ItemVariants,
}
"""What is asked for a unit, to what makes its mutants."""


class RecordedRun:
    """A run's plan and executions, from which mutants are made."""

    def __init__(
        self, plan: TestPlan, suites: Mapping[str, Suite], executions: Executed, seed: int
    ) -> None:
        """Take what was asked, what happened, and the policy's seed."""
        self.suites = suites
        self._variants: dict[str, Variants] = {}
        for name, suite in suites.items():
            for role, made_by in _BY_ROLE.items():
                units = [unit for unit in plan.units_of(name) if role in unit.asks]
                if units:
                    cases = plan.cases_of(name)
                    self._variants[name] = made_by(suite, cases, units, executions, seed)

    def mutants(self, kinds: Sequence[Kind] = tuple(Kind)) -> list[Mutant | NotMutated]:
        """Return every mutant of the run, and what cannot be made of it."""
        found: list[Mutant | NotMutated] = []
        for suite in self.suites:
            variants = self._variants.get(suite)
            known = variants.kinds if variants is not None else ()
            wanted = [kind for kind in kinds if kind in known]
            if variants is None or not wanted:
                can = f"only {', '.join(known)} can be" if known else "nothing that it asks can be"
                found.append(NotMutated(suite=suite, what=", ".join(kinds), reason=can))
                continue
            for kind in wanted:
                why_not = variants.why_not(kind)
                if why_not:
                    found.append(NotMutated(suite=suite, what=kind, reason=why_not))
                else:
                    found += map(self._checked, variants.of_kind(kind))
        return found

    def _checked(self, mutant: Mutant) -> Mutant | NotMutated:
        """Return the mutant, unless even the strongest one changes nothing."""
        if self.mutated(mutant, strength=1.0, seed=0):
            return mutant
        what = f"{mutant.kind} of {mutant.target or mutant.reach}"
        return NotMutated(suite=mutant.suite, what=what, reason="no case of it can be changed")

    def mutated(self, mutant: Mutant, strength: float, seed: int) -> dict[CaseId, Execution]:
        """Return the executions that the mutant replaces; deterministic."""
        return self._variants[mutant.suite].mutated(mutant, strength, seed)
