"""What sections are built from: a run, what it was compared with, and what many of them look up."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fairgate.domain.cases import Case
from fairgate.domain.measurements import Measurements
from fairgate.domain.outcomes import Change, GateResult, RuleResult
from fairgate.gate.baseline import AcceptedRun, Baseline
from fairgate.gate.gate import GateRun
from fairgate.reports import judged_rows
from fairgate.reports.judged_rows import Identity, PairRow, QuestionRow
from fairgate.reports.rule_rows import RuleRow, rule_rows
from fairgate.reports.spans import Inline, Kind, Span, Words, code
from fairgate.reports.view import ReportOptions

ALONE = "alone"
_BASELINE, _ANCHOR = "baseline", "anchor"
_ACCEPTED = 4
"""Earlier accepted runs that can be chosen, the latest ones; the file holds further ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a run is shown beside.

    Showing decides nothing: a run is judged against the baseline, and its budgets against the
    anchor. Only what is stored is shown. Baseline and anchor hold every case; an accepted run
    before them is kept as the values of the rules alone, so no case is new or fixed beside it.
    """

    id: str
    """Unique in a report, kebab-case."""
    label: Inline
    word: str
    """What sentences call it."""
    values: Measurements
    run: Baseline | None = None
    """Where it holds every case, and what was under test."""

    @property
    def is_baseline(self) -> bool:
        """Return whether it is what the run's regression rules were decided against."""
        return self.id == _BASELINE

    def change(self, rule: RuleResult) -> Change | None:
        """Return how a rule's value moved since then, on the cases of both; None: not tested."""
        if self.id == _BASELINE:
            return rule.change
        return rule.since_anchor if self.id == _ANCHOR else None


NOTHING = Beside(id=ALONE, label="nothing: this run alone", word="", values=Measurements(()))


def what_is_beside(
    result: GateResult, baseline: Baseline | None, anchor: Baseline | None
) -> list[Beside]:
    """Return everything that a run can be shown beside, the usual one first, nothing last or alone.

    An anchor that was made under other conditions is left out: its values are of other questions.
    """
    found = [] if baseline is None else [_stored(_BASELINE, baseline)]
    overlap = result.anchor_overlap
    if anchor is not None and not (overlap and overlap.incompatible):
        found.append(_stored(_ANCHOR, anchor))
    found += _accepted(baseline.history if baseline else ())
    return [*found, NOTHING] if baseline is not None else [NOTHING, *found]


def _stored(word: str, run: Baseline) -> Beside:
    since: Words = [" of ", Span(run.date, Kind.DATE)] if run.date else []
    values = Measurements(run.measurements)
    return Beside(id=word, label=[word, *since], word=word, values=values, run=run)


def _accepted(history: Sequence[AcceptedRun]) -> list[Beside]:
    """Return the accepted runs before the baseline, the latest first."""
    return [
        Beside(
            id=f"accepted-{place}",
            label=["accepted run", *_when(run)],
            word="accepted run",
            values=Measurements(run.measurements),
        )
        for place, run in enumerate(reversed(history[-_ACCEPTED:]), start=1)
        if run.measurements
    ]


def _when(run: AcceptedRun) -> Words:
    if run.date:
        return [" of ", Span(run.date, Kind.DATE)]
    return [" ", code(run.commit)] if run.commit else []


@dataclass(frozen=True, kw_only=True)
class Material:
    """A run and its baseline, indexed once."""

    run: GateRun
    options: ReportOptions
    baseline: Baseline | None = None
    anchor: Baseline | None = None
    clearest: dict[str, list[PairRow]] = field(init=False, default_factory=dict)
    """The changed pairs in the order of `sections/cases.py`, by what the run is shown beside."""
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
        found.__dict__.pop("_before", None)
        found.__dict__["beside"] = other
        return found

    @property
    def before(self) -> Measurements:
        """Return the values of what the run is shown beside."""
        return self.beside.values

    @cached_property
    def rules(self) -> list[RuleRow]:
        """Return the rules in the order of the policy."""
        return rule_rows(self.result.rules, self.identity)

    @cached_property
    def pairs(self) -> list[PairRow]:
        """Return the judged pairs in the order of the plan."""
        return list(judged_rows.pair_rows(self.result))

    @cached_property
    def named_pairs(self) -> list[PairRow]:
        """Return the pairs that name an identity."""
        return [row for row in self.pairs if not row.is_control]

    @cached_property
    def control_pairs(self) -> list[PairRow]:
        """Return the pairs with neutral wording."""
        return [row for row in self.pairs if row.is_control]

    @cached_property
    def changed_pairs(self) -> list[PairRow]:
        """Return the pairs that name an identity and have a changed answer."""
        return [row for row in self.named_pairs if row.claim == 1.0]

    @cached_property
    def questions(self) -> list[QuestionRow]:
        """Return the judged question items in the order of the plan."""
        return list(judged_rows.question_rows(self.result))

    def planned(self, suite: str, key: str) -> Case | None:
        """Return a case as it was asked, with the response that it embeds; None: none is planned.

        Readings know all that were asked, so that no run of a million pairs indexes them again.
        """
        known = self.run.readings.get(suite)
        found = None if known is None else known.case(key)
        return self._unasked.get((suite, key)) if found is None else found

    def case(self, suite: str, key: str) -> Case:
        """Return the same of a case that is planned. Raises KeyError."""
        found = self.planned(suite, key)
        if found is None:
            raise KeyError((suite, key))
        return found

    @cached_property
    def _unasked(self) -> Mapping[tuple[str, str], Case]:
        known = self.run.readings
        return {
            (case.suite, case.key): case
            for case in self.result.plan.cases
            if case.suite not in known or case.key not in known[case.suite]
        }

    def was_unchanged(self, row: PairRow) -> bool:
        """Return whether a pair's answer was decided and unchanged then."""
        return self._before.get(row.suite, {}).get(row.key) == 0

    def was_changed(self, row: PairRow) -> bool:
        """Return whether a pair's answer was changed then."""
        return self._before.get(row.suite, {}).get(row.key) == 1

    @cached_property
    def _before(self) -> Mapping[str, Mapping[str, int]]:
        """Return suite to pair to its main claim in what the run is shown beside; -1: undecided."""
        found: dict[str, Mapping[str, int]] = {}
        run = self.beside.run
        for suite, known in run.suites.items() if run else ():
            values = known.table.values
            column = values.get("controlled", values.get("generation"))
            if column is not None:
                claims = np.nan_to_num(column, nan=-1.0).astype(np.int8).tolist()
                found[suite] = dict(zip(known.table.keys, claims, strict=True))
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
