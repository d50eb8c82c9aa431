"""Which part of a change explains a red verdict, and which of the changed documents.

BASE and HEAD are crossed over the factors that differ, on the cases of the rules that fail at HEAD
and not at BASE; the change of each rule's value is divided among the factors (`shapley.py`).
Where taking back the corpus alone restores the verdict, delta debugging finds a 1-minimal set of
changed documents that does. All judging is the gate's own, with BASE's run as the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairgate.domain.cases import Case, TestPlan, first_asked
from fairgate.domain.errors import BaselineError, ModelError, RetrievalError
from fairgate.domain.measurements import Measurements, slice_of
from fairgate.domain.outcomes import Outcome, RuleResult
from fairgate.domain.ports import SILENT, Progress, Staged
from fairgate.domain.units import Unit
from fairgate.features.blame.documents import (
    Blame,
    DocumentSearch,
    ExplainedRule,
    Factor,
    Known,
    Move,
    Sides,
    Verdict,
)
from fairgate.features.blame.shapley import Weights, design, residual_weights, shapley_weights
from fairgate.gate.accepted_runs import baseline_of
from fairgate.gate.delta_debugging import OutOfQuestions
from fairgate.gate.gate import GateInput, GateRun, run_gate, without_attribution
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import observe
from fairgate.metrics.table import Table
from fairgate.policy.schema import MOST_UNREADABLE, GatePolicy
from fairgate.stats.bootstrap import BootstrapSettings, bootstrap_many
from fairgate.stats.interval import Interval, IntervalOrReason, NoInterval
from fairgate.stats.observations import (
    ClusterTotals,
    Observations,
    cluster_totals,
    estimate,
    select,
)

_GENERATOR = (Factor.MODEL, Factor.PROMPT, Factor.DECODING)
"""What a generator is made of."""
_DECIMALS = 6
_NO_MOVE = "it moved no source"
_MAXIMUM = "the largest of several differences: it has no interval"
Combination = frozenset[Factor]


@dataclass(frozen=True, slots=True)
class _Runner:
    """Runs combinations on the same cases, compared with BASE's run."""

    given: GateInput
    sides: Sides
    progress: Progress

    def run(self, new: frozenset[Factor]) -> GateRun:
        shown = Staged(self.progress, _called(new, self.sides.factors))
        return run_gate(self.given, self.sides.system(new), shown)

    def against(self, base: GateRun) -> _Runner:
        try:
            made = baseline_of(self.given, base, reason="BASE", date="")
        except BaselineError as error:
            raise BaselineError(
                f"BASE has no verdict of its own, so nothing can be compared with it: {error}"
            ) from error
        return replace(self, given=replace(self.given, baseline=made))


def blame(given: GateInput, sides: Sides, progress: Progress = SILENT) -> Blame:
    """Return what explains the verdict; `given` is HEAD's policy and plan.

    Deterministic for systems that are; a second call with the same store asks nothing again.
    Raises BaselineError where BASE's run has no verdict, which nothing can be compared with.
    """
    started = sides.limit.asked
    lean, left_out = without_attribution(replace(given, baseline=None, anchor=None))
    notes = [f"attribution is not computed: {', '.join(left_out)} left out"] if left_out else []
    found = Blame(
        known=Known.NOTHING_DIFFERS,
        factors=list(sides.factors),
        notes=notes,
        budget=sides.limit.most,
    )
    try:
        for stage in _stages(found, _Runner(lean, sides, progress)) if sides.factors else ():
            found = stage
    except OutOfQuestions:
        found = replace(found, known=Known.OUT_OF_BUDGET)
    except (ModelError, RetrievalError) as error:
        if not found.failing:  # BASE or HEAD itself cannot be run
            raise
        why = f"a combination of BASE and HEAD cannot be run: {error}"
        found = replace(found, known=Known.NOT_COMBINABLE, notes=[*found.notes, why])
    return replace(found, asked=sides.limit.asked - started)


def divided(
    rule: RuleResult,
    factors: Sequence[Factor],
    tables: Mapping[Combination, Mapping[str, Table]],
    values: Mapping[Combination, Measurements],
    *,
    confidence: float,
    seed: int,
) -> ExplainedRule:
    """Return what each factor moved the rule's value by, on the cases decided in all combinations.

    The moves add up to the whole change. Intervals resample whole sources.
    """
    metric = BY_ID[rule.metric]
    weights = shapley_weights(factors)
    everything = frozenset(factors)
    asked = len(observe(metric, tables[everything][rule.suite], rule.where).keys)
    if metric.compares_terms:
        found = {
            new: measured.value(rule.metric, rule.suite, rule.where) or 0.0
            for new, measured in values.items()
        }
        intervals: list[IntervalOrReason] = [NoInterval(reason=_MAXIMUM)] * len(factors)
        cases = asked
    else:
        observed = _decided_in_all(
            {new: observe(metric, suites[rule.suite], rule.where) for new, suites in tables.items()}
        )
        found = {new: estimate(seen) for new, seen in observed.items()}
        totals = {new: cluster_totals(seen) for new, seen in observed.items()}
        slices = [_combined(weights[factor], totals) for factor in factors]
        settings = BootstrapSettings(confidence=confidence)
        intervals = [
            found if one.informative else NoInterval(reason=_NO_MOVE)
            for one, found in zip(slices, bootstrap_many(slices, settings, seed=seed), strict=True)
        ]
        cases = len(observed[everything].keys)
    is_known = all(math.isfinite(value) for value in found.values())
    whole = found[everything] - found[frozenset()]
    return ExplainedRule(
        metric=rule.metric,
        suite=rule.suite,
        where=dict(rule.where),
        base=_rounded(found[frozenset()]) if is_known else None,
        head=_rounded(found[everything]) if is_known else None,
        cases=cases,
        left_out=asked - cases,
        moves=[
            _move(factor, _weighed(weights[factor], found), whole, interval)
            for factor, interval in zip(factors, intervals, strict=True)
            if is_known
        ],
        residual=_rounded(_weighed(residual_weights(factors), found)) if is_known else 0.0,
    )


def _move(factor: Factor, change: float, whole: float, interval: IntervalOrReason) -> Move:
    if isinstance(interval, Interval):
        ends, note = (_rounded(interval.low), _rounded(interval.high)), ""
    else:
        ends, note = None, interval.reason
    return Move(
        factor=factor,
        change=_rounded(change),
        share=_rounded(change / whole) if abs(whole) > 10**-_DECIMALS else None,
        interval=ends,
        note=note,
    )


def _decided_in_all(
    observed: Mapping[Combination, Observations],
) -> dict[Combination, Observations]:
    """Return the cases that have a value in every combination."""
    decided = np.logical_and.reduce([seen.decided for seen in observed.values()])
    return {new: select(seen, decided) for new, seen in observed.items()}


def _weighed(weights: Weights[Factor], values: Mapping[Combination, float]) -> float:
    return sum(weight * values[new] for new, weight in weights.items())


def _combined(
    weights: Weights[Factor], totals: Mapping[Combination, ClusterTotals]
) -> ClusterTotals:
    """Return a weighted sum of contrasts as one contrast, each combination's arms its own."""
    parts = [totals[new] for new, weight in weights.items() if weight]
    kept = [weight for weight in weights.values() if weight]
    scaled = [part.weights * weight for part, weight in zip(parts, kept, strict=True)]
    joined = ClusterTotals(
        sums=np.concatenate([part.sums for part in parts], axis=1),
        counts=np.concatenate([part.counts for part in parts], axis=1),
        weights=np.concatenate(scaled),
        informative=0,
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = joined.weights / joined.counts.sum(axis=0)
        moved = np.abs((joined.sums * scale).sum(axis=1)) > 1e-12
    return replace(joined, informative=int(np.count_nonzero(moved)))


def _rounded(value: float) -> float:
    return round(float(value), _DECIMALS) + 0.0


def _stages(found: Blame, runner: _Runner) -> Iterator[Blame]:
    """Yield what is known, ever more, until it is all."""
    everything = frozenset(runner.sides.factors)
    base = runner.run(frozenset())
    head = runner.against(base).run(everything)
    red, also = _red(base, head)
    notes = [*found.notes, *(f"fails at BASE too, so no change explains it: {n}" for n in also)]
    found = replace(found, notes=notes, failing=[rule_name(rule) for rule in red])
    if not red:
        yield replace(found, known=Known.GREEN)
        return
    yield found
    narrow = _narrowed(runner, red, head)
    narrow = narrow.against(narrow.run(frozenset()))
    # Combinations with one generator follow each other, so that it is opened once.
    order = sorted(design(runner.sides.factors), key=lambda new: [f in new for f in _GENERATOR])
    runs = {new: narrow.run(new) for new in order}
    verdict = Verdict(red, base)
    restoring = [f for f in runner.sides.factors if verdict.is_restored(runs[everything - {f}])]
    policy = runner.given.policy
    tables = {new: run.tables for new, run in runs.items()}
    values = {new: Measurements(run.result.measurements) for new, run in runs.items()}
    explained = [
        divided(
            rule,
            runner.sides.factors,
            tables,
            values,
            confidence=policy.confidence,
            seed=policy.seed,
        )
        for rule in red
    ]
    found = replace(
        found,
        known=Known.EXPLAINED,
        combinations=len(runs),
        rules=explained,
        restoring=restoring,
    )
    yield found
    if Factor.CORPUS in runner.sides.factors:
        search = DocumentSearch(narrow.given, runner.sides, verdict, runner.progress)
        documents = search.searched(is_enough=Factor.CORPUS in restoring)
        yield replace(found, documents=documents)


def _called(new: Collection[Factor], everything: Collection[Factor]) -> str:
    if not new:
        return "BASE"
    return "HEAD" if len(new) == len(everything) else f"BASE with HEAD's {', '.join(sorted(new))}"


def rule_name(rule: RuleResult | ExplainedRule) -> str:
    """Return a rule in words: metric, slice and suite."""
    where = ", ".join(f"{name} {value}" for name, value in rule.where.items())
    return f"{rule.metric}{f' ({where})' if where else ''} in suite {rule.suite}"


def _red(base: GateRun, head: GateRun) -> tuple[list[RuleResult], list[str]]:
    """Return the rules that fail at HEAD alone, and the names of those that fail at BASE too."""
    before = {_slice(rule) for rule in base.result.rules if rule.outcome is Outcome.FAIL}
    failing = [r for r in head.result.rules if r.outcome is Outcome.FAIL and not r.advisory]
    red = [rule for rule in failing if _slice(rule) not in before]
    return red, [rule_name(rule) for rule in failing if _slice(rule) in before]


def _slice(rule: RuleResult) -> tuple[object, ...]:
    return (*slice_of(rule.metric, rule.suite, rule.where), rule.position)


def _narrowed(runner: _Runner, red: Sequence[RuleResult], head: GateRun) -> _Runner:
    """Return the runner on the cases of the red rules alone, judged by these rules alone."""
    given = runner.given
    gates = [*given.policy.gates]
    asked = [
        gates[rule.position].model_copy(
            update={"suite": rule.suite, "where": dict(rule.where), "for_each": None}
        )
        if rule.position < len(gates)
        else GatePolicy(metric=rule.metric, suite=rule.suite, max=MOST_UNREADABLE)
        for rule in red
    ]
    plan = _plan_of(given.plan, red, head)
    suites = {name: suite for name, suite in given.suites.items() if plan.units_of(name)}
    kept = [suite for suite in given.policy.suites if suite.id in suites]
    policy = given.policy.model_copy(update={"gates": asked, "suites": kept})
    return replace(runner, given=replace(given, policy=policy, plan=plan, suites=suites))


def _plan_of(plan: TestPlan, red: Sequence[RuleResult], head: GateRun) -> TestPlan:
    """Return the units that the rules count, with all neutral ones of their suites."""
    counted: dict[str, set[str]] = {}
    for rule in red:
        metric = BY_ID[rule.metric]
        where = {} if metric.compares_terms else rule.where
        keys = observe(metric, head.tables[rule.suite], where).keys
        counted.setdefault(rule.suite, set()).update(keys)
    units = [
        unit
        for unit in plan.units
        if unit.suite in counted and (unit.is_control or unit.key in counted[unit.suite])
    ]
    return TestPlan(cases=_cases_of(plan, units), units=units)


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
