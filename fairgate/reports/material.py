"""What sections are built from: a run, what it was compared with, and what many of them look up."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from fairgate.domain.cases import Case
from fairgate.domain.measurements import Measurements
from fairgate.domain.outcomes import GateResult
from fairgate.engine.baseline import Baseline
from fairgate.engine.gate import GateRun
from fairgate.reports import judged_rows
from fairgate.reports.beside import Beside, what_is_beside
from fairgate.reports.judged_rows import Identity, PairRow, QuestionRow
from fairgate.reports.rule_rows import RuleRow, rule_rows
from fairgate.reports.view import ReportOptions


@dataclass(frozen=True, kw_only=True)
class Material:
    """A run and its baseline, indexed once."""

    run: GateRun
    options: ReportOptions
    baseline: Baseline | None = None
    anchor: Baseline | None = None
    _identities: dict[str, dict[str, Identity]] = field(init=False, default_factory=dict)

    @property
    def result(self) -> GateResult:
        """Return the verdict with everything that was decided."""
        return self.run.result

    @property
    def confidence(self) -> str:
        """Return `95 %`."""
        return f"{100 * self.options.confidence:g} %"

    @cached_property
    def now(self) -> Measurements:
        """Return what this run measured."""
        return Measurements(self.result.measurements)

    @cached_property
    def choices(self) -> Sequence[Beside]:
        """Return what the run can be shown beside, the usual one first."""
        return what_is_beside(self.result, self.baseline, self.anchor)

    @cached_property
    def beside(self) -> Beside:
        """Return what the run is shown beside: the baseline, where there is one."""
        return self.choices[0]

    def shown_beside(self, other: Beside) -> Material:
        """Return the same run beside something else; what was looked up is not looked up again."""
        found = copy.copy(self)
        for name in ("unchanged_before", "changed_before"):
            found.__dict__.pop(name, None)
        found.__dict__["beside"] = other
        return found

    @property
    def before(self) -> Measurements:
        """Return the values of what the run is shown beside."""
        return self.beside.values

    @cached_property
    def rules(self) -> list[RuleRow]:
        """Return the rules in the order of the policy."""
        return rule_rows(self.result.rules)

    @cached_property
    def pairs(self) -> list[PairRow]:
        """Return the judged pairs in the order of the plan."""
        return list(judged_rows.pair_rows(self.result))

    @cached_property
    def changed_pairs(self) -> list[PairRow]:
        """Return the pairs that name an identity and have a changed answer."""
        return [row for row in self.pairs if not row.is_control and row.claim == 1.0]

    @cached_property
    def questions(self) -> list[QuestionRow]:
        """Return the judged question items in the order of the plan."""
        return list(judged_rows.question_rows(self.result))

    @cached_property
    def cases(self) -> Mapping[tuple[str, str], Case]:
        """Return every case of the plan, by suite and key, with the responses that it embeds."""
        cases = {(case.suite, case.key): case for case in self.result.plan.cases}
        return cases | {(c.suite, c.key): c for c in self.run.added if c.embeds is not None}

    @cached_property
    def unchanged_before(self) -> AbstractSet[tuple[str, str]]:
        """Return the pairs whose answer was unchanged then, by suite and key."""
        return self._found_before(0.0)

    @cached_property
    def changed_before(self) -> AbstractSet[tuple[str, str]]:
        """Return the pairs whose answer was changed then, by suite and key."""
        return self._found_before(1.0)

    def _found_before(self, claim: float) -> AbstractSet[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        run = self.beside.run
        for suite, known in run.suites.items() if run else ():
            values = known.table.values
            column = values.get("controlled", values.get("generation"))
            if column is not None:
                decided = zip(known.table.keys, column.tolist(), strict=True)
                found.update((suite, key) for key, value in decided if value == claim)
        return found

    def identities(self, suite: str) -> dict[str, Identity]:
        """Return what the terms of a suite are called."""
        if suite not in self._identities:
            self._identities[suite] = judged_rows.identities(self.result, suite)
        return self._identities[suite]

    def identity(self, suite: str, term: str) -> str:
        """Return what names a term in the texts: `An elderly person`."""
        known = self.identities(suite).get(term)
        return known.name if known else term
