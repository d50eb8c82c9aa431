"""Which of the changed documents turn a verdict red: a 1-minimal set, by delta debugging."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from fairgate.domain.measurements import slice_of
from fairgate.domain.outcomes import Outcome, RuleResult
from fairgate.domain.ports import SILENT, Progress, Retriever, SystemUnderTest
from fairgate.features.blame.mixed_corpus import ChangedDocument, UnionSearch
from fairgate.features.blame.question_limit import QuestionLimit
from fairgate.features.blame.result import Factor, SearchedDocuments
from fairgate.gate.delta_debugging import OutOfQuestions, smaller_and_smaller
from fairgate.gate.gate import GateInput, GateRun, run_gate

OWN_RETRIEVER = "default"
"""Key of the retriever over the policy's corpus."""


class Sides(Protocol):
    """Two versions of a system whose parts can be combined. All share one limit of questions."""

    limit: QuestionLimit

    @property
    def factors(self) -> Sequence[Factor]:
        """Return those that differ."""
        ...

    def system(self, new: frozenset[Factor]) -> SystemUnderTest:
        """Return the system with HEAD's level of these factors, and BASE's of the others."""
        ...

    def search(self) -> UnionSearch:
        """Return HEAD's retriever over the documents of both versions."""
        ...

    def searching(self, retriever: Retriever) -> SystemUnderTest:
        """Return HEAD's system with this retriever over its corpus."""
        ...


class Verdict:
    """Whether the rules that were red are no longer so."""

    def __init__(self, red: Sequence[RuleResult], base: GateRun) -> None:
        """Take the rules that fail at HEAD and not at BASE, and BASE's own run."""
        self._red = [slice_of(rule.metric, rule.suite, rule.where) for rule in red]
        self._open_at_base = {
            slice_of(rule.metric, rule.suite, rule.where)
            for rule in base.result.rules
            if rule.outcome is Outcome.INCONCLUSIVE
        }

    def is_restored(self, run: GateRun) -> bool:
        """Return whether none of them fails, and each was judged.

        One that is only too noisy to tell holds if it stops no build, or was so at BASE.
        """
        return all(rules and all(self._holds(rule) for rule in rules) for rules in self._found(run))

    def _holds(self, rule: RuleResult) -> bool:
        was_open = slice_of(rule.metric, rule.suite, rule.where) in self._open_at_base
        is_open = rule.outcome is Outcome.INCONCLUSIVE and (rule.warns or was_open)
        return rule.outcome is Outcome.PASS or is_open

    def values(self, run: GateRun) -> list[float | None]:
        """Return the values of these rules."""
        return [rules[0].value if rules else None for rules in self._found(run)]

    def _found(self, run: GateRun) -> list[list[RuleResult]]:
        by_slice: dict[object, list[RuleResult]] = {}
        for rule in run.result.rules:
            by_slice.setdefault(slice_of(rule.metric, rule.suite, rule.where), []).append(rule)
        return [by_slice.get(name, []) for name in self._red]


class DocumentSearch:
    """Searches the changed documents for a 1-minimal set whose reversal restores the verdict."""

    def __init__(
        self, given: GateInput, sides: Sides, verdict: Verdict, progress: Progress
    ) -> None:
        """Take the narrowed cases with BASE's run as the baseline."""
        self._given, self._sides, self._verdict = given, sides, verdict
        self._progress = progress
        self._known: dict[object, tuple[bool, list[float | None]]] = {}
        self._search: UnionSearch
        self._own = [case for case in given.plan.cases if case.retriever == OWN_RETRIEVER]
        self._queries = {
            depth: [case.query for case in self._own if case.top_k == depth]
            for depth in sorted({case.top_k for case in self._own})
        }
        self.trials = 0

    def searched(self, *, is_enough: bool) -> SearchedDocuments:
        """Return what is found; `is_enough`: taking back the whole corpus restores the verdict."""
        self._search = self._sides.search()
        changed = self._search.union.changed
        kinds = Counter(each.kind for each in changed)
        found = SearchedDocuments(changed=dict(sorted(kinds.items())))
        if not is_enough:
            return replace(
                found, why_not="taking back the corpus alone does not restore the verdict"
            )
        if not changed:
            why = "the documents are the same, in another order or under other names"
            return replace(found, why_not=why)
        kept: Sequence[ChangedDocument] = ()
        self._progress.start("documents", len(changed), 0)
        try:
            if not self._restores(changed):
                why = "the verdict depends on the order of equally similar documents"
                return replace(found, why_not=why)
            kept = changed
            for smaller in smaller_and_smaller(changed, self._restores):
                self._progress.advance(len(kept) - len(smaller))
                kept = smaller
        except OutOfQuestions:
            why = "the budget ended before it was known that none of them can be left out"
            return replace(found, found=list(kept), trials=self.trials, why_not=why)
        finally:
            self._progress.finish()
        values = self._judged(kept)[1]
        return replace(found, found=list(kept), minimal=True, trials=self.trials, reverted=values)

    def _restores(self, reverted: Sequence[ChangedDocument]) -> bool:
        """Return whether the verdict is restored with these documents as they were at BASE."""
        return self._judged(reverted)[0]

    def _judged(self, reverted: Sequence[ChangedDocument]) -> tuple[bool, list[float | None]]:
        """Return whether that restores the verdict, and the rules' values.

        Mixtures that retrieve the same for all queries are judged once.
        """
        mixture = self._search.mixture(reverted)
        if any(mixture.size < case.top_k for case in self._own):
            return False, []
        name: object = frozenset(each.name for each in reverted)
        if not any(case.waits for case in self._own):
            name = tuple(mixture.names(queries, k) for k, queries in self._queries.items())
        if name not in self._known:
            run = run_gate(self._given, self._sides.searching(mixture), SILENT)
            self._known[name] = self._verdict.is_restored(run), self._verdict.values(run)
            self.trials += 1
        return self._known[name]
