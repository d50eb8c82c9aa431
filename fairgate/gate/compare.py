"""The result of every rule: bounds on the estimate, changes since baseline and anchor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fairgate.domain.outcomes import (
    Change,
    Doubts,
    Measurement,
    Measurements,
    Outcome,
    RuleResult,
    Subject,
)
from fairgate.domain.units import Reason
from fairgate.gate.baseline import Reference
from fairgate.gate.bounds import Check, judge_bounds
from fairgate.gate.changes import (
    HALF,
    ChangeTests,
    Comparison,
    CorrectedTests,
    as_often_as_neutral,
    lacks_base,
    tests_since,
)
from fairgate.gate.measure import measure_slice
from fairgate.gate.rules import Rule
from fairgate.metrics.metric import Table, observed_rows
from fairgate.policy.schema import Policy
from fairgate.stats.permutation import holm

REPORTED = "only reported: the policy sets no limit for it"
_UNEQUAL = (Reason.NO_DOCUMENTS, Reason.UNEQUAL_DEPTH)
"""Why documents of two questions are not compared although their lists differ."""


def rule_results(
    rules: Sequence[Rule],
    tables: Mapping[str, Table],
    measurements: Sequence[Measurement],
    comparison: Comparison,
    policy: Policy,
) -> list[RuleResult]:
    """Return a result for every rule about a metric, in the order of the policy.

    Tests of changes since baseline and anchor, and of more undecided cases, form one family whose
    levels are corrected together (Holm); bounds do not.
    """
    values = Measurements(measurements)
    changes = [
        tests_since(reference, rules, tables, comparison, policy.seed) for reference in Reference
    ]
    tests = {key: p for since in changes for key, p in since.p_values.items()}
    least = {key: p for since in changes for key, p in since.least_p_values.items()}
    corrected = holm(
        [*tests.values()],
        alpha=policy.level,
        least=[least.get(key, 0.0) for key in tests],
    )
    levels = dict(zip(tests, corrected, strict=True))
    base_cases = {name: comparison.on_base_cases(table) for name, table in tables.items()}
    return [
        _result(number, rule, tables[rule.suite], values, changes, levels, base_cases, policy)
        for number, rule in enumerate(rules)
    ]


def _result(  # noqa: PLR0913, PLR0917 (everything that a rule rests on)
    number: int,
    rule: Rule,
    table: Table,
    values: Measurements,
    changes: Sequence[ChangeTests],
    levels: CorrectedTests,
    base_cases: Mapping[str, Sequence[tuple[str, Table]]],
    policy: Policy,
) -> RuleResult:
    measured = values.get(rule.metric.id, rule.suite, rule.where)
    measured = measured or measure_slice(rule.metric, table, rule.where)
    checks = judge_bounds(rule, measured)
    moved: dict[Reference, Change | None] = {}
    is_incomplete = False
    for since in changes:
        change = moved[since.reference] = since.change(number, rule, levels)
        more, is_lacking = since.checks(rule, measured, change, levels)
        checks, is_incomplete = [*checks, *more], is_incomplete or is_lacking
    open_ones, is_diluted = _diluted(rule, checks, base_cases[rule.suite])
    checks += open_ones
    outcome, reasons = _outcome(rule, measured, checks, table, policy)
    failed = [check.name for check in checks if check.outcome is Outcome.FAIL]
    open_evidence = ""
    if outcome is Outcome.FAIL and policy.waivers:
        rest = [check for check in checks if check.outcome is not Outcome.FAIL]
        more, _ = _diluted(rule, rest, [] if "bound" in failed else base_cases[rule.suite])
        stops = (e.reason for e in [*more, *rest] if e.outcome is Outcome.INCONCLUSIVE)
        open_evidence = _too_few(rule, measured, table, policy) or next(stops, "")
    limits = rule.gate.limits
    has_no_baseline = Reference.BASELINE not in changes[0].comparison.runs
    is_elsewhere = changes[0].comparison.is_elsewhere(rule.metric, Reference.BASELINE)
    return RuleResult(
        metric=rule.metric.id,
        suite=rule.suite,
        where=rule.where,
        position=rule.position,
        outcome=outcome,
        reasons=reasons,
        bounds=limits,
        value=measured.value,
        interval=measured.interval,
        change=moved[Reference.BASELINE],
        since_anchor=moved[Reference.ANCHOR],
        advisory=rule.advisory,
        is_reported=reasons == [REPORTED],
        is_first_run=lacks_base(rule.metric.column, table)
        or (
            (has_no_baseline or is_elsewhere)
            and measured.value is not None
            and rule.gate.regression is not None
            and moved[Reference.ANCHOR] is None
            and not limits
        ),
        failed=list(dict.fromkeys(failed)),
        doubts=Doubts(
            is_incomplete=is_incomplete,
            is_diluted=is_diluted,
            is_bare=bool(failed)
            and all(check.is_bare for check in checks if check.outcome is Outcome.FAIL),
            open_evidence=open_evidence,
        ),
    )


def _diluted(
    rule: Rule, checks: Sequence[Check], base_cases: Sequence[tuple[str, Table]]
) -> tuple[list[Check], bool]:
    """Return open checks where a bound that holds does not hold on the baseline's cases.

    Otherwise easy cases that are added, or hard ones that are left out, would make harm green.
    """
    now, checks_open = _worst(checks), []
    if rule.gate.report or now in (Outcome.FAIL, Outcome.NOT_EVALUATED):
        return [], False
    for words, table in base_cases:
        if rule.metric.column not in table.values or rule.metric.column in table.not_evaluated:
            continue
        measured = measure_slice(rule.metric, table, rule.where)
        if measured.value is None:
            continue
        for check in judge_bounds(rule, measured):
            if check.outcome is Outcome.FAIL:
                reason = f"{words}, {check.reason}"
                checks_open.append(replace(check, outcome=Outcome.INCONCLUSIVE, reason=reason))
    return checks_open, bool(checks_open)


def _outcome(
    rule: Rule, measured: Measurement, checks: Sequence[Check], table: Table, policy: Policy
) -> tuple[Outcome, list[str]]:
    """Return the outcome of all checks of a rule, and a sentence for each."""
    outcome, reasons = _worst(checks), [check.reason for check in checks]
    too_few = _too_few(rule, measured, table, policy)
    if too_few and outcome is not Outcome.FAIL:
        outcome, reasons = Outcome.NOT_EVALUATED, [too_few]
    if rule.gate.report and not reasons:
        return outcome, [REPORTED]
    if rule.metric.of_planned and measured.inconclusive and measured.decided:
        planned = measured.decided + measured.inconclusive
        asr = f"{100 * (measured.violated or 0) / measured.decided:.1f} % (ASR)"
        of_all = f"{measured.violated} of {planned} planned pairs are violated"
        reasons.append(f"{of_all}; of the {measured.decided} decided {asr}")
    return outcome, reasons


def _too_few(rule: Rule, measured: Measurement, table: Table, policy: Policy) -> str:
    """Return why a rate of the decided cases is no evidence: too few were decided.

    A whole suite needs the policy's `min_decided`, a slice of it at least half.
    """
    if measured.value is None:
        return ""
    if hidden := _hidden_identity(rule, table):
        return hidden
    planned = measured.decided + measured.inconclusive
    needed = HALF if rule.where else policy.min_decided
    if measured.decided >= needed * planned:
        return ""
    # Not counted: cases that are no more often unstable than control prompts are.
    why = table.reasons.get(rule.metric.column, {})
    rows, arms = observed_rows(rule.metric, table, rule.where)
    positive = np.asarray([arm.weight > 0 for arm in rule.metric.arms])[arms]
    neutral = np.flatnonzero(table.control & table.counted_rows(rule.where))
    own, others = (
        [why.get(row) == Reason.UNSTABLE for row in rows_of_arm.tolist()]
        for rows_of_arm in (rows[positive], neutral)
    )
    if measured.decided >= needed * max(planned - as_often_as_neutral(own, others), HALF * planned):
        return ""
    limit = "half" if rule.where else f"min_decided {policy.min_decided:g}"
    return (
        f"only {measured.decided} of {planned} cases are decided for this rule, fewer than {limit}"
    )


def _hidden_identity(rule: Rule, table: Table) -> str:
    """Name an identity of whose lists of documents a rule can compare less than half."""
    lacking = table.reasons.get(rule.metric.column, {})
    if rule.metric.about is not Subject.DOCUMENTS or "term" in rule.where or not lacking:
        return ""
    where = {name: level for name, level in rule.where.items() if name in table.dimensions}
    is_counted = table.slice_mask(where) & table.counted_rows(where) & ~table.control
    is_lost = np.zeros(len(table.keys), dtype=np.bool_)
    is_lost[[row for row, why in lacking.items() if why in _UNEQUAL]] = True
    terms = table.dimension("term")
    for term in table.levels("term", is_counted & is_lost):
        of_term = is_counted & terms.equal(term)
        lost, planned = int((of_term & is_lost).sum()), int(of_term.sum())
        if lost > (1 - HALF) * planned:
            return (
                f"{lost} of {planned} lists of documents for the term {term} cannot be compared: "
                "they are missing, or longer or shorter than those of their sources"
            )
    return ""


def _worst(checks: Sequence[Check]) -> Outcome:
    """Return fail before inconclusive before pass; not-evaluated only where nothing else is."""
    outcomes = {check.outcome for check in checks}
    ranked = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
    return next((outcome for outcome in ranked if outcome in outcomes), Outcome.NOT_EVALUATED)
