"""What explains a red verdict: the parts of the result, and the search among changed documents.

The documents that are found are a 1-minimal set, by delta debugging.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol, cast

from fairgate.domain.executions import Answer, GenerationRequest
from fairgate.domain.measurements import slice_of
from fairgate.domain.outcomes import Outcome, RuleResult
from fairgate.domain.ports import (
    SILENT,
    Generator,
    OptionScorer,
    Progress,
    Retriever,
    SystemUnderTest,
)
from fairgate.features.blame.mixed_corpus import ChangedDocument, UnionSearch
from fairgate.gate.delta_debugging import OutOfQuestions, smaller_and_smaller
from fairgate.gate.gate import GateInput, GateRun, run_gate

OWN_RETRIEVER = "default"
"""Key of the retriever over the policy's corpus."""


@dataclass(slots=True)
class QuestionLimit:
    """How many questions may be asked, and how many were; stored answers cost none."""

    most: int
    asked: int = 0

    def allowed(self, wanted: int) -> int:
        """Count at most `wanted` questions as asked, and return how many may be."""
        found = min(wanted, self.most - self.asked)
        self.asked += found
        return found


class LimitedGenerator:
    """A port `Generator` that raises OutOfQuestions after the last question that may be asked.

    What was answered until then is given first, so that it is stored.
    """

    def __init__(self, inner: Generator, limit: QuestionLimit) -> None:
        """Take the generator and the limit that it shares."""
        self._inner = inner
        self._limit = limit
        if hasattr(inner, "score_options"):
            self.score_options = self._score_options

    @property
    def fingerprint(self) -> str:
        """Identify the generator: a limit changes no answer."""
        return self._inner.fingerprint

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Answer]]:
        """Yield `(position in requests, answer)`."""
        allowed = self._limit.allowed(len(requests))
        if allowed:
            yield from self._inner.generate(requests[:allowed])
        if allowed < len(requests):
            raise OutOfQuestions

    def _score_options(self, requests: Sequence[GenerationRequest]) -> list[list[float]]:
        """Return the log-probabilities of each request's options, all or none."""
        if self._limit.allowed(len(requests)) < len(requests):
            raise OutOfQuestions
        return cast("OptionScorer", self._inner).score_options(requests)


class Factor(StrEnum):
    """A part of a system that a change can replace alone."""

    MODEL = "model"
    PROMPT = "prompt"
    DECODING = "decoding"
    EMBEDDER = "embedder"
    CORPUS = "corpus"
    TOP_K = "top_k"


class Known(StrEnum):
    """How far the question is answered."""

    NOTHING_DIFFERS = "nothing-differs"
    GREEN = "green"
    """HEAD fails no rule that BASE does not fail."""
    EXPLAINED = "explained"
    OUT_OF_BUDGET = "out-of-budget"
    """The budget ended before every combination was run: nothing is claimed."""
    NOT_COMBINABLE = "not-combinable"
    """A combination of both sides cannot be run, such as a prompt that BASE's model refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What one factor moved a rule's value by."""

    factor: Factor
    change: float
    """Shapley value, in the metric's unit; all factors' add up to the whole change."""
    share: float | None
    """Of the whole change; None where that is 0."""
    interval: tuple[float, float] | None
    note: str = ""
    """Why there is no interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRule:
    """A rule that fails at HEAD and not at BASE, on the cases that every combination decided."""

    metric: str
    suite: str
    where: Mapping[str, str]
    base: float | None
    head: float | None
    """None where no case is decided in every combination: then nothing is divided."""
    cases: int
    left_out: int
    """Cases that some combination did not decide: they count in the gate, and not here."""
    moves: Sequence[Move]
    residual: float = 0.0
    """What the moves from both ends missed and share equally; 0 where all combinations were run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedDocuments:
    """What the search among the changed documents found."""

    changed: Mapping[str, int]
    """Kind of change to the number of documents."""
    found: Sequence[ChangedDocument] = ()
    """Reverting these alone restores the verdict; empty where that is known of no set."""
    minimal: bool = False
    """Whether leaving any one of them as it is at HEAD keeps the verdict red."""
    reverted: Sequence[float | None] = ()
    """Values of the rules at HEAD with the found documents as they were, in the rules' order."""
    trials: int = 0
    """How often the gate was run on a mixture of both corpora."""
    why_not: str = ""
    """Why no documents are named, or why the set is no claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Which part of a change explains a red verdict."""

    known: Known
    factors: Sequence[Factor]
    """Those that differ between BASE and HEAD, in the order of `Factor`."""
    notes: Sequence[str]
    """What differs besides, and what a reader must know."""
    combinations: int = 0
    rules: Sequence[ExplainedRule] = ()
    failing: Sequence[str] = ()
    """The rules that fail at HEAD and not at BASE, in words; also where nothing is explained."""
    restoring: Sequence[Factor] = ()
    """Factors of which taking back one alone restores the verdict."""
    documents: SearchedDocuments | None = None
    asked: int = 0
    """Questions that the model answered; stored answers cost none."""
    budget: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    """`base` and `head`: how the user named the sides."""


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
