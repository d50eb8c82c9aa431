"""A recorded run, suite by suite, from which mutants are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairgate.domain.cases import TestPlan
from fairgate.domain.executions import Execution
from fairgate.domain.ports import Executed
from fairgate.features.mutation.mutants import CaseId, Kind, Mutant, NotMutated, Variants
from fairgate.features.mutation.mutated_items import ItemVariants
from fairgate.features.mutation.mutated_pairs import PairVariants
from fairgate.suites.metamorphic.plan import FOLLOW_UP
from fairgate.suites.question_items.plan import ANSWER
from fairgate.suites.suite import Suite

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
