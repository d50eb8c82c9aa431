"""The result of every rule: bounds on the estimate, changes since baseline and anchor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fairgate.domain.outcomes import (
    Change,
    IdentityFinding,
    Measurement,
    Measurements,
    Outcome,
    RuleResult,
    Subject,
    slice_of,
)
from fairgate.domain.units import Reason
from fairgate.gate.baseline import Reference
from fairgate.gate.bounds import Check, check_identity, judge_bounds, p_of_bounds
from fairgate.gate.changes import HALF, Comparison, TestKey, as_often_as_neutral, tests_since
from fairgate.gate.measure import identity_finding, measure_slice
from fairgate.gate.rules import Rule
from fairgate.metrics.metric import Metric, Table, observed_rows
from fairgate.policy.schema import Policy
from fairgate.stats.permutation import Corrected, holm, uncorrected

REPORTED = "only reported: the policy sets no limit for it"
_UNEQUAL = (Reason.NO_DOCUMENTS, Reason.UNEQUAL_DEPTH)
"""Why documents of two questions are not compared although their lists differ."""


def rule_results(
    rules: Sequence[Rule],
    tables: Mapping[str, Table],
    measurements: Sequence[Measurement],
    identities: Sequence[IdentityFinding],
    comparison: Comparison,
    policy: Policy,
) -> list[RuleResult]:
    """Return a result for every rule, in the order of the policy.

    Regression rules with their margins and budgets, identity rules, the tests for more undecided
    cases and bounds of signed values for single identities form one family whose levels are
    corrected together; other bounds do not. What a line of the policy becomes in a suite
    (`for_each`) shares that line's part of the level.
    """
    values = Measurements(measurements)
    findings = {
        slice_of(finding.metric, finding.suite, finding.where): finding for finding in identities
    }
    differing = {
        TestKey(None, rule.suite, rule.position, number): finding
        for number, rule in enumerate(rules)
        if rule.metric.compares_terms and not rule.gate.report
        if (finding := findings.get(slice_of(rule.metric.id, rule.suite, rule.where))) is not None
    }
    changes = [
        tests_since(reference, rules, tables, comparison, policy.seed) for reference in Reference
    ]
    tests = {key: p for since in changes for key, p in since.p_values.items()}
    tests |= {key: finding.p_value for key, finding in differing.items()}
    bounded = {
        TestKey(None, rule.suite, rule.position, number): p
        for number, rule in enumerate(rules)
        if rule.is_of_family and (p := p_of_bounds(rule, tables[rule.suite])) is not None
    }
    tests |= bounded
    least = {key: p for since in changes for key, p in since.least_p_values.items()}
    least |= {key: finding.least_p for key, finding in differing.items()}
    p_values, many = [*tests.values()], Counter(key[:3] for key in tests)
    corrected = uncorrected(p_values, alpha=1 - policy.confidence)
    if policy.correction == "holm":
        weights = [1 / many[key[:3]] for key in tests]
        corrected = holm(
            p_values,
            alpha=1 - policy.confidence,
            weights=weights,
            least=[least.get(key, 0.0) for key in tests],
        )
    levels = dict(zip(tests, corrected, strict=True))
    base_cases = {name: comparison.on_base_cases(table) for name, table in tables.items()}
    results = []
    for number, rule in enumerate(rules):
        table, key = tables[rule.suite], TestKey(None, rule.suite, rule.position, number)
        measured = values.get(rule.metric.id, rule.suite, rule.where)
        measured = measured or _measured_apart(rule, table, policy)
        moved: dict[Reference, Change | None] = {}
        is_incomplete, level = False, 0.0
        if key in differing:
            level, alpha = levels[key].level, 1 - policy.confidence
            checks = [check_identity(rule.gate, differing[key], levels[key], alpha=alpha)]
        else:
            level = levels[key].level if key in bounded else 1 - policy.confidence
            measured, checks = judge_bounds(rule, table, measured, 1 - level)
        for since in changes:
            change = moved[since.reference] = since.change(number, rule, levels)
            more, is_lacking = since.checks(rule, measured, change, levels)
            checks, is_incomplete = [*checks, *more], is_incomplete or is_lacking
        open_ones, is_diluted = _diluted(rule, checks, base_cases[rule.suite], level, policy)
        checks += open_ones
        outcome, reasons = _outcome(rule, measured, checks, table, policy)
        failed = [check.name for check in checks if check.outcome is Outcome.FAIL]
        beside = ""
        if outcome is Outcome.FAIL and policy.waivers:
            rest = [check for check in checks if check.outcome is not Outcome.FAIL]
            cases_to_judge = [] if {"bound", "identity"} & {*failed} else base_cases[rule.suite]
            more, is_fatal = _diluted(rule, rest, cases_to_judge, level, policy)
            is_fatal |= not _warns(rule, [*rest, *more], policy)
            stops = (e.reason for e in [*more, *rest] if e.outcome is Outcome.INCONCLUSIVE)
            beside = _too_few(rule, measured, table, policy) or (is_fatal and next(stops, "")) or ""
        limits = rule.gate.limits
        results.append(
            RuleResult(
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
                is_first_run=lacks_base(rule.metric, table)
                or (
                    (
                        Reference.BASELINE not in comparison.runs
                        or comparison.is_elsewhere(rule.metric, Reference.BASELINE)
                    )
                    and measured.value is not None
                    and rule.gate.regression is not None
                    and moved[Reference.ANCHOR] is None
                    and not limits
                ),
                warns=_warns(rule, checks, policy),
                failed=list(dict.fromkeys(failed)),
                by_default=rule.by_default,
                is_not_in_baseline=is_incomplete,
                is_diluted=is_diluted,
                is_bare=bool(failed)
                and all(check.is_bare for check in checks if check.outcome is Outcome.FAIL),
                open_evidence=beside,
            )
        )
    return results


def lacks_base(metric: Metric, table: Table) -> bool:
    """Return whether a metric has no value only because no base commit is known."""
    if metric.column not in table.not_evaluated:
        return False
    return Reason.NO_BASE in table.reasons.get(metric.column, {}).values()


def _diluted(
    rule: Rule,
    checks: Sequence[Check],
    base_cases: Sequence[tuple[str, Table]],
    level: float,
    policy: Policy,
) -> tuple[list[Check], bool]:
    """Return open checks where a bound that holds does not hold on the baseline's cases.

    Otherwise easy cases that are added, or hard ones that are left out, would make harm green.
    """
    now, checks_open, is_diluted = _worst(checks), [], False
    if rule.gate.report or now in (Outcome.FAIL, Outcome.NOT_EVALUATED):
        return [], False
    for words, table in base_cases:
        for check in _checks_on(rule, table, level, policy):
            fails = check.outcome is Outcome.FAIL
            if fails or (check.outcome is Outcome.INCONCLUSIVE and now is Outcome.PASS):
                reason = f"{words}, {check.reason}"
                checks_open.append(replace(check, outcome=Outcome.INCONCLUSIVE, reason=reason))
                is_diluted |= fails
    return checks_open, is_diluted


def _checks_on(rule: Rule, table: Table, level: float, policy: Policy) -> list[Check]:
    """Judge the bounds of a rule on other cases; nothing where these have no such value."""
    metric, alpha = rule.metric, 1 - policy.confidence
    if metric.column not in table.values or metric.column in table.not_evaluated:
        return []
    if not metric.compares_terms:
        measured = _measured_apart(rule, table, policy)
        is_measured = measured.value is not None
        return judge_bounds(rule, table, measured, 1 - level)[1] if is_measured else []
    finding = identity_finding(metric, table, rule.where, alpha=alpha, seed=policy.seed)
    if finding is None:
        return []
    p = finding.p_value
    adjusted = min(1.0, p * alpha / level)
    own = Corrected(p_value=p, adjusted_p=adjusted, level=level, rejected=p <= level)
    return [check_identity(rule.gate, finding, own, alpha=alpha)]


def _measured_apart(rule: Rule, table: Table, policy: Policy) -> Measurement:
    """Measure a slice without a report line; identity metrics have a finding, not a value."""
    if rule.metric.compares_terms:
        note = "there are not two terms to compare"
        note = table.not_evaluated.get(rule.metric.column, note)
        return Measurement(metric=rule.metric.id, suite=rule.suite, where=rule.where, note=note)
    return measure_slice(
        rule.metric, table, rule.where, confidence=policy.confidence, seed=policy.seed
    )


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
    if rule.metric.compares_terms:
        return ""
    planned = measured.decided + measured.inconclusive
    needed = HALF if rule.where else policy.min_decided
    if measured.decided >= needed * planned:
        return ""
    # Not counted: cases that are no more often unstable than neutral wording is.
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


def _warns(rule: Rule, checks: Sequence[Check], policy: Policy) -> bool:
    """Return whether an inconclusive rule only warns; an open `evidence: interval` bound fails."""
    is_open = any(
        check.name == "bound" and check.outcome is Outcome.INCONCLUSIVE for check in checks
    )
    default = "fail" if is_open and rule.gate.evidence == "interval" else policy.on_inconclusive
    return (rule.gate.on_inconclusive or default) == "warn"


def _worst(checks: Sequence[Check]) -> Outcome:
    """Return fail before inconclusive before pass; not-evaluated only where nothing else is."""
    outcomes = {check.outcome for check in checks}
    ranked = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
    return next((outcome for outcome in ranked if outcome in outcomes), Outcome.NOT_EVALUATED)
