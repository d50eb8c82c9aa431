"""The result of every rule: bounds on the estimate, changes since baseline and anchor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
from fairgate.gate.baseline import AcceptedRun
from fairgate.gate.bounds import Check, judge_bounds
from fairgate.gate.changes import (
    HALF,
    Comparison,
    as_often_as_controls,
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
        tests_since(accepted, rules, tables, comparison, policy.seed) for accepted in AcceptedRun
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
    results = []
    for number, rule in enumerate(rules):
        table = tables[rule.suite]
        measured = values.get(rule.metric.id, rule.suite, rule.where)
        measured = measured or measure_slice(rule.metric, table, rule.where)
        moved = {since.accepted: since.change(number, rule, levels) for since in changes}
        checks, is_incomplete = judge_bounds(rule, measured), False
        for since in changes:
            more, is_lacking = since.checks(rule, measured, moved[since.accepted], levels)
            checks, is_incomplete = [*checks, *more], is_incomplete or is_lacking
        judged = _JudgedRule(rule, table, measured, checks, moved, base_cases[rule.suite], policy)
        is_first = judged.is_first_run(comparison)
        results.append(judged.result(is_first_run=is_first, is_incomplete=is_incomplete))
    return results


@dataclass(frozen=True, slots=True)
class _JudgedRule:
    """A rule with what it rests on."""

    rule: Rule
    table: Table
    measured: Measurement
    checks: Sequence[Check]
    """Of its bounds, and of the changes since baseline and anchor."""
    moved: Mapping[AcceptedRun, Change | None]
    base_cases: Sequence[tuple[str, Table]]
    """Tables with the baseline's cases, where they are others, and words for each."""
    policy: Policy

    def result(self, *, is_first_run: bool, is_incomplete: bool) -> RuleResult:
        """Return the result of all checks, also on the baseline's cases."""
        rule, measured = self.rule, self.measured
        on_base_cases, is_diluted = _diluted(rule, self.checks, self.base_cases)
        checks = [*self.checks, *on_base_cases]
        outcome, reasons = _outcome(rule, measured, checks, self.table, self.policy)
        failed = [check for check in checks if check.outcome is Outcome.FAIL]
        is_waivable = outcome is Outcome.FAIL and bool(self.policy.waivers)
        return RuleResult(
            metric=rule.metric.id,
            suite=rule.suite,
            where=rule.where,
            position=rule.position,
            outcome=outcome,
            reasons=reasons,
            bounds=rule.gate.limits,
            value=measured.value,
            interval=measured.interval,
            change=self.moved[AcceptedRun.BASELINE],
            since_anchor=self.moved[AcceptedRun.ANCHOR],
            advisory=rule.advisory,
            is_reported=reasons == [REPORTED],
            is_first_run=is_first_run,
            failed=list(dict.fromkeys(check.name for check in failed)),
            doubts=Doubts(
                is_incomplete=is_incomplete,
                is_diluted=is_diluted,
                is_bare=bool(failed) and all(check.is_bare for check in failed),
                open_evidence=self._open_evidence(checks) if is_waivable else "",
            ),
        )

    def is_first_run(self, comparison: Comparison) -> bool:
        """Return whether the rule has nothing to compare with, which the next run will have."""
        rule = self.rule
        has_no_baseline = AcceptedRun.BASELINE not in comparison.runs
        return lacks_base(rule.metric.column, self.table) or (
            (has_no_baseline or comparison.is_elsewhere(rule.metric, AcceptedRun.BASELINE))
            and self.measured.value is not None
            and rule.gate.regression is not None
            and self.moved[AcceptedRun.ANCHOR] is None
            and not rule.gate.limits
        )

    def _open_evidence(self, checks: Sequence[Check]) -> str:
        """Return what would still allow no verdict if the failed checks were waived; else empty."""
        rest = [check for check in checks if check.outcome is not Outcome.FAIL]
        breaks_bound = any(
            check.name == "bound" and check.outcome is Outcome.FAIL for check in checks
        )
        more, _ = _diluted(self.rule, rest, () if breaks_bound else self.base_cases)
        stops = (c.reason for c in [*more, *rest] if c.outcome is Outcome.INCONCLUSIVE)
        too_few = _too_few(self.rule, self.measured, self.table, self.policy)
        return too_few or next(stops, "")


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
    controls = np.flatnonzero(table.control & table.counted_rows(rule.where))
    own, others = (
        [why.get(row) == Reason.UNSTABLE for row in rows_of_arm.tolist()]
        for rows_of_arm in (rows[positive], controls)
    )
    if measured.decided >= needed * max(
        planned - as_often_as_controls(own, others), HALF * planned
    ):
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
