"""Which part of a change explains a red verdict, and which of the changed documents.

BASE and HEAD are crossed over the factors that differ, on the cases of the rules that fail at HEAD
and not at BASE; the change of each rule's value is divided among the factors by their Shapley
values. Where taking back the corpus alone restores the verdict, delta debugging finds a 1-minimal
set of changed documents that does. All judging is the gate's own, with BASE's run as the baseline.

L. S. Shapley, "A value for n-person games", Contributions to the Theory of Games II (1953) 307-317:
the mean, over all orders in which factors could have changed, of what the value moved when this one
did. The values add up to the whole change. Up to three factors, all 2^k combinations are run.
Beyond, each factor is changed alone and taken back alone (2k + 2 combinations), and its value is
the mean of these two moves: equal to the Shapley value where no three factors interact (with pairs,
the first move lacks what the last one counts twice). What the values miss of the whole change is
shared equally, and `residual` states it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, combinations
from math import factorial
from typing import TypeVar

import numpy as np

from fairgate.domain.cases import SYSTEM_RETRIEVER, Case, TestPlan, first_asked
from fairgate.domain.errors import BaselineError, ModelError, RetrievalError
from fairgate.domain.outcomes import Outcome, RuleResult, Slice, slice_of
from fairgate.domain.ports import SILENT, Progress, Staged
from fairgate.domain.units import Unit
from fairgate.features.blame.mixed_corpus import ChangedDocument
from fairgate.features.blame.sides import Factor, LocalSides
from fairgate.gate.accepted_runs import baseline_of
from fairgate.gate.baseline import NO_REFERENCES, References
from fairgate.gate.delta_debugging import OutOfQuestions, smaller_and_smaller
from fairgate.gate.gate import GateInput, GateRun, run_gate
from fairgate.gate.parity import Prompts
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import observe
from fairgate.metrics.parity import OUTCOMES
from fairgate.policy.schema import GatePolicy, ParityPolicy
from fairgate.reports.figures import is_rate, metric_in
from fairgate.stats.observations import Observations, estimate, select

MOST_CROSSED = 3
"""Up to so many factors, all combinations are run."""
_DECIMALS = 6
F = TypeVar("F")
Weights = dict[frozenset[F], float]
"""What each combination's value is multiplied by; the sum is linear in the values."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRule:
    """A rule that fails at HEAD and not at BASE, on the cases that every combination decided."""

    metric: str
    suite: str
    where: Mapping[str, str]
    who: Sequence[str]
    """Of parity, who fails; the values are those of the first."""
    is_rate: bool
    base: float | None
    head: float | None
    """None where no case is decided in every combination: then nothing is divided."""
    cases: int
    left_out: int
    """Cases that some combination did not decide: they count in the gate, and not here."""
    residual: float
    """What the moves from both ends missed and share equally; 0 where all combinations were run."""
    moves: Sequence[Move]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedDocuments:
    """The result of the search among the changed documents."""

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
    """Sentences about other differences, and about limits of the explanation."""
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


_GENERATOR = (Factor.MODEL, Factor.PROMPT, Factor.DECODING)
"""Factors that make up a generator."""
FactorSet = frozenset[Factor]
"""The factors that have HEAD's level; the others have BASE's."""
Runs = Mapping[FactorSet, GateRun]


# Combinations, and the Shapley value of each factor over them.


def design(factors: Sequence[F]) -> list[frozenset[F]]:
    """Return the combinations that are run: none changed first, all last. `factors` are unique."""
    k = len(factors)
    sizes = range(k + 1) if k <= MOST_CROSSED else (0, 1, k - 1, k)
    return [frozenset(chosen) for size in sizes for chosen in combinations(factors, size)]


def shapley_weights(factors: Sequence[F]) -> dict[F, Weights[F]]:
    """Return for each factor the weights of its value; over all factors they add up to the change.

    Over all combinations where they are run, else over those of `design`.
    """
    k = len(factors)
    if k > MOST_CROSSED:
        missed = residual_weights(factors)
        return {f: _total((_two_moves(f, factors), 1.0), (missed, 1 / k)) for f in factors}
    by_factor: dict[F, Weights[F]] = {}
    for factor in factors:
        others = [other for other in factors if other != factor]
        weights = by_factor[factor] = {}
        for before in chain.from_iterable(combinations(others, n) for n in range(k)):
            share = factorial(len(before)) * factorial(k - len(before) - 1) / factorial(k)
            weights[frozenset({*before, factor})] = share
            weights[frozenset(before)] = -share
    return by_factor


def residual_weights(factors: Sequence[F]) -> Weights[F]:
    """Return the weights of the residual of both ends' moves; empty where all combinations are run.

    It is 0 where no three factors interact.
    """
    if len(factors) <= MOST_CROSSED:
        return {}
    whole: Weights[F] = {frozenset(factors): 1.0, frozenset(): -1.0}
    return _total((whole, 1.0), *((_two_moves(factor, factors), -1.0) for factor in factors))


def _two_moves(factor: F, factors: Sequence[F]) -> Weights[F]:
    everything, own = frozenset(factors), frozenset({factor})
    return {own: 0.5, frozenset(): -0.5, everything: 0.5, everything - own: -0.5}


def _total(*parts: tuple[Weights[F], float]) -> Weights[F]:
    """Return the sum of weights, each times a number."""
    total: Weights[F] = {}
    for weights, by in parts:
        for combination, weight in weights.items():
            total[combination] = total.get(combination, 0.0) + weight * by
    return total


# Runs of combinations.


@dataclass(frozen=True, slots=True)
class _Runner:
    """Runs combinations on the same cases, compared with BASE's run."""

    gate_input: GateInput
    sides: LocalSides
    progress: Progress

    def run(self, new: frozenset[Factor]) -> GateRun:
        title = f"BASE with HEAD's {', '.join(sorted(new))}" if new else "BASE"
        title = "HEAD" if len(new) == len(self.sides.factors) else title
        return run_gate(
            self.gate_input, self.sides.system(new), Staged(self.progress, title), verdict_with=()
        )

    def against(self, base: GateRun) -> _Runner:
        try:
            baseline = baseline_of(base, reason="BASE", date="")
        except BaselineError as error:
            raise BaselineError(
                f"BASE has no verdict of its own, so nothing can be compared with it: {error}"
            ) from error
        return replace(
            self, gate_input=replace(self.gate_input, references=References(baseline=baseline))
        )


def blame(gate_input: GateInput, sides: LocalSides, progress: Progress = SILENT) -> Blame:
    """Explain the verdict by the factors that differ; `gate_input` is HEAD's policy and plan.

    Deterministic for systems that are; a second call with the same store asks nothing again.
    Raises BaselineError where BASE's run has no verdict, which nothing can be compared with.
    """
    started = sides.limit.asked
    lean, left_out = replace(gate_input, references=NO_REFERENCES).without_attribution()
    notes = [f"attribution is not computed: {', '.join(left_out)} left out"] if left_out else []
    blamed = Blame(
        known=Known.NOTHING_DIFFERS, factors=list(sides.factors), notes=notes,
        budget=sides.limit.most,
    )  # fmt: skip
    try:
        for stage in _stages(blamed, _Runner(lean, sides, progress)) if sides.factors else ():
            blamed = stage
    except OutOfQuestions:
        blamed = replace(blamed, known=Known.OUT_OF_BUDGET)
    except (ModelError, RetrievalError) as error:
        if not blamed.failing:  # BASE or HEAD itself cannot be run
            raise
        why = f"a combination of BASE and HEAD cannot be run: {error}"
        blamed = replace(blamed, known=Known.NOT_COMBINABLE, notes=[*blamed.notes, why])
    return replace(blamed, asked=sides.limit.asked - started)


def _divided(rule: RuleResult, factors: Sequence[Factor], runs: Runs) -> ExplainedRule:
    """Divide the rule's change among the factors, on the cases decided in all combinations.

    The moves add up to the whole change.
    """
    weights = shapley_weights(factors)
    everything = frozenset(factors)
    observed = {new: _observed(rule, run) for new, run in runs.items()}
    planned = len(observed[everything].keys)
    decided = np.logical_and.reduce([column.decided for column in observed.values()])
    observed = {new: select(column, decided) for new, column in observed.items()}
    values = {new: estimate(column) for new, column in observed.items()}
    cases = len(observed[everything].keys)
    is_known = all(math.isfinite(value) for value in values.values())
    whole = values[everything] - values[frozenset()]
    return ExplainedRule(
        metric=rule.metric,
        suite=rule.suite,
        where=dict(rule.where),
        who=_names(rule),
        is_rate=is_rate(rule.metric),
        base=_rounded(values[frozenset()]) if is_known else None,
        head=_rounded(values[everything]) if is_known else None,
        cases=cases,
        left_out=planned - cases,
        residual=_rounded(_weighed(residual_weights(factors), values)) if is_known else 0.0,
        moves=[
            _move(factor, _weighed(weights[factor], values), whole)
            for factor in factors
            if is_known
        ],
    )


def _observed(rule: RuleResult, run: GateRun) -> Observations:
    """Describe a rule's subject: a metric's contrast, or who fails first beside control prompts."""
    table = run.tables[rule.suite]
    if not rule.failing or rule.parity is None:
        return observe(BY_ID[rule.metric], table, rule.where)
    node = rule.failing[0]
    column = OUTCOMES[rule.parity.outcome].by_column[node.column].of(table)
    values = np.full(len(table.keys), np.nan) if column is None else column
    categories, terms = table.dimension("category"), table.dimension("term")
    rows = Prompts.of(table, rule.where).rows
    who = set(node.who)
    is_node = np.asarray([(categories[row], terms[row]) in who for row in rows.tolist()], np.bool_)
    is_node &= ~table.control[rows]
    is_used = is_node | table.control[rows]
    return Observations(
        keys=[table.keys[row] for row in rows[is_used].tolist()],
        clusters=table.clusters[rows[is_used]],
        arms=(~is_node[is_used]).astype(np.int8),
        values=values[rows[is_used]],
        weights=(1.0, -1.0),
        n_clusters=len(table.cluster_names),
    )


def _move(factor: Factor, change: float, whole: float) -> Move:
    share = _rounded(change / whole) if abs(whole) > 10**-_DECIMALS else None
    return Move(factor=factor, change=_rounded(change), share=share)


def _weighed(weights: Weights[Factor], values: Mapping[FactorSet, float]) -> float:
    return sum(weight * values[new] for new, weight in weights.items())


def _rounded(value: float) -> float:
    return round(float(value), _DECIMALS) + 0.0


def _stages(blamed: Blame, runner: _Runner) -> Iterator[Blame]:
    """Yield the explanation after each stage, the last one complete."""
    factors = runner.sides.factors
    everything = frozenset(factors)
    base = runner.run(frozenset())
    head = runner.against(base).run(everything)
    before = {
        (_slice(rule), rule.position): _names(rule)
        for rule in base.result.rules
        if rule.outcome is Outcome.FAIL
    }
    red, also = [], []
    for rule in head.result.rules:
        if not rule.fails_gate:
            continue
        failing_before = before.get((_slice(rule), rule.position))
        new = [node for node in rule.failing if node.name not in (failing_before or ())]
        if failing_before is None or new:
            red.append(replace(rule, failing=new))
        else:
            also.append(f"fails at BASE too, so no change explains it: {rule_name(rule)}")
    blamed = replace(
        blamed, notes=[*blamed.notes, *also], failing=[rule_name(rule) for rule in red]
    )
    if not red:
        yield replace(blamed, known=Known.GREEN)
        return
    yield blamed
    narrow = _narrowed(runner, red, head)
    narrow = narrow.against(narrow.run(frozenset()))
    # Combinations with one generator follow each other, so that it is opened once.
    order = sorted(design(factors), key=lambda new: [f in new for f in _GENERATOR])
    runs = {new: narrow.run(new) for new in order}
    verdict = RedVerdict(red, base)
    restoring = [f for f in factors if verdict.is_restored(runs[everything - {f}])]
    blamed = replace(
        blamed,
        known=Known.EXPLAINED,
        combinations=len(runs),
        rules=[_divided(rule, factors, runs) for rule in red],
        restoring=restoring,
    )
    yield blamed
    if Factor.CORPUS in factors:
        documents = _searched(narrow, verdict, is_enough=Factor.CORPUS in restoring)
        yield replace(blamed, documents=documents)


def rule_name(rule: RuleResult | ExplainedRule) -> str:
    """Return a rule in words: metric, slice, who fails, and suite."""
    who = rule.who if isinstance(rule, ExplainedRule) else _names(rule)
    whom = f" for {', '.join(who)}" if who else ""
    return f"{metric_in(rule.metric, rule.where)}{whom} in suite {rule.suite}"


def _names(rule: RuleResult) -> list[str]:
    """Name who fails; of metrics nobody."""
    return [node.name for node in rule.failing]


def _slice(rule: RuleResult) -> Slice:
    return slice_of(rule.metric, rule.suite, rule.where)


def _narrowed(runner: _Runner, red: Sequence[RuleResult], head: GateRun) -> _Runner:
    """Return the runner on the cases that the red rules count, judged by these rules alone.

    All control prompts of their suites are among them, and everybody of whom parity is asked.
    """
    gate_input = runner.gate_input
    wanted: list[ParityPolicy | GatePolicy] = []
    counted: dict[str, set[str]] = {}
    for rule in red:
        table = head.tables[rule.suite]
        gate = gate_input.policy.gates[rule.position].model_copy(update={"suite": rule.suite})
        if rule.parity is None:
            keys: Sequence[str] = observe(BY_ID[rule.metric], table, rule.where).keys
        else:
            gate = gate.model_copy(update={"parity": rule.parity.outcome})
            keys = table.keys
        if gate not in wanted:
            wanted.append(gate)
        counted.setdefault(rule.suite, set()).update(keys)
    units = [
        unit
        for unit in gate_input.plan.units
        if unit.suite in counted and (unit.is_control or unit.key in counted[unit.suite])
    ]
    plan = TestPlan(cases=_cases_of(gate_input.plan, units), units=units)
    suites = {name: suite for name, suite in gate_input.suites.items() if plan.units_of(name)}
    suites_left = [suite for suite in gate_input.policy.suites if suite.id in suites]
    policy = gate_input.policy.model_copy(update={"gates": wanted, "suites": suites_left})
    return replace(runner, gate_input=replace(gate_input, policy=policy, plan=plan, suites=suites))


def _cases_of(plan: TestPlan, units: Sequence[Unit]) -> list[Case]:
    """Return the cases that units ask, and those whose answers or documents these need."""
    wanted = {(unit.suite, key) for unit in units for key in (*unit.asks.values(), *unit.verdicts)}
    while True:
        cases = [case for case in plan.cases if (case.suite, first_asked(case.key)) in wanted]
        more = {
            (case.suite, key)
            for case in cases
            for key in (case.documents_of, case.embeds, *case.judged)
            if key is not None
        } - wanted
        if not more:
            return cases
        wanted |= more


# Among the changed documents.


class RedVerdict:
    """Whether the rules that were red are no longer so."""

    def __init__(self, red: Sequence[RuleResult], base: GateRun) -> None:
        """Take the rules that fail at HEAD and not at BASE, and BASE's own run."""
        self._red = list(red)
        self._before: dict[Slice, set[str]] = {}
        for rule in base.result.rules:
            self._before.setdefault(_slice(rule), set()).update(_names(rule))

    def is_restored(self, run: GateRun) -> bool:
        """Return whether each of them was judged and holds, but for whom it fails at BASE too."""
        return all(
            rules
            and all(
                rule.outcome is Outcome.PASS
                or (bool(rule.failing) and {*_names(rule)} <= self._before.get(_slice(rule), set()))
                for rule in rules
            )
            for rules in self._rules_of(run)
        )

    def values(self, run: GateRun) -> list[float | None]:
        """Return the values of these rules."""
        values = [estimate(_observed(rule, run)) for rule in self._red]
        return [_rounded(value) if math.isfinite(value) else None for value in values]

    def _rules_of(self, run: GateRun) -> list[list[RuleResult]]:
        return [
            [rule for rule in run.result.rules if _slice(rule) == _slice(red)] for red in self._red
        ]


def _searched(runner: _Runner, verdict: RedVerdict, *, is_enough: bool) -> SearchedDocuments:
    """Return a 1-minimal set of changed documents whose reversal restores the verdict.

    `runner` has the narrowed cases with BASE's run as the baseline; `is_enough`: taking back the
    whole corpus restores the verdict.
    """
    search = runner.sides.search()
    changed = search.union.changed
    searched = SearchedDocuments(
        changed=dict(sorted(Counter(document.kind for document in changed).items()))
    )
    if not is_enough:
        return replace(
            searched, why_not="taking back the corpus alone does not restore the verdict"
        )
    if not changed:
        why = "the documents are the same, in another order or under other names"
        return replace(searched, why_not=why)
    cases = [case for case in runner.gate_input.plan.cases if case.retriever == SYSTEM_RETRIEVER]
    verdicts: dict[object, tuple[bool, list[float | None]]] = {}

    def tried(reverted: Sequence[ChangedDocument]) -> tuple[bool, list[float | None]]:
        """Return whether that restores the verdict, and the rules' values.

        Mixtures that retrieve the same for all queries are judged once.
        """
        mixture = search.mixture(reverted)
        if any(mixture.size < case.top_k for case in cases):
            return False, []
        name: object = frozenset(document.name for document in reverted)
        if not any(case.waits for case in cases):
            name = tuple(
                mixture.names([case.query for case in cases if case.top_k == depth], depth)
                for depth in sorted({case.top_k for case in cases})
            )
        if name not in verdicts:
            run = run_gate(
                runner.gate_input, runner.sides.searching(mixture), SILENT, verdict_with=()
            )
            verdicts[name] = verdict.is_restored(run), verdict.values(run)
        return verdicts[name]

    restoring: Sequence[ChangedDocument] = ()
    runner.progress.start("documents", len(changed), 0)
    try:
        if not tried(changed)[0]:
            why = "the verdict depends on the order of equally similar documents"
            return replace(searched, why_not=why)
        restoring = changed
        for smaller in smaller_and_smaller(changed, lambda reverted: tried(reverted)[0]):
            runner.progress.advance(len(restoring) - len(smaller))
            restoring = smaller
    except OutOfQuestions:
        why = "the budget ended before it was known that none of them can be left out"
        return replace(searched, found=list(restoring), trials=len(verdicts), why_not=why)
    finally:
        runner.progress.finish()
    values = tried(restoring)[1]
    return replace(
        searched, found=list(restoring), minimal=True, trials=len(verdicts), reverted=values
    )
