"""Mutants of a suite of question items: stereotyped answers, refusals and noise, by category."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution
from fairgate.domain.items import Alignment, Condition
from fairgate.domain.ports import Executed
from fairgate.domain.units import Unit
from fairgate.features.mutation.mutants import CaseId, Kind, Mutant, Reach, chance
from fairgate.relations.oracles.choice import ChoiceOracle
from fairgate.relations.oracles.oracle import read_together
from fairgate.suites.question_items.judge import BIAS
from fairgate.suites.question_items.plan import ANSWER, LETTERS
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
