"""Judge every rule: bounds on the estimate, changes since baseline and anchor (SPEC 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairgate.domain.measurements import Measurement, Measurements
from fairgate.domain.outcomes import Change, IdentityFinding, Outcome, RuleResult
from fairgate.domain.units import Reason
from fairgate.gate.baseline import Reference
from fairgate.gate.bounds import Attainable, Check, attainable_values, check_bounds, range_of
from fairgate.gate.changes import HALF, as_often_as_neutral, changes_since
from fairgate.gate.comparison import Comparison
from fairgate.gate.identity import check_identity, identity_finding
from fairgate.gate.measure import measure_slice
from fairgate.gate.rules import Rule
from fairgate.metrics.metric import observe, observed_rows
from fairgate.metrics.table import Table
from fairgate.policy.schema import Policy
from fairgate.stats.likely_range import LikelyRange
from fairgate.stats.multiplicity import Corrected, holm, uncorrected

REPORTED = "only reported: the policy sets no limit for it"


def compare(
    rules: Sequence[Rule],
    tables: Mapping[str, Table],
    measurements: Sequence[Measurement],
    comparison: Comparison,
    policy: Policy,
) -> list[RuleResult]:
    """Return a result for every rule, in the order of the policy.

    Regression rules with their margins and budgets, identity rules and the tests for more undecided
    cases form one family whose levels are corrected together; bounds do not. What a line of the
    policy becomes in a suite (`for_each`) shares that line's part of the level.
    """
    values = Measurements(measurements)
    changes = [
        changes_since(reference, rules, tables, comparison, policy.seed) for reference in Reference
    ]
    tests: dict[Hashable, float] = {}
    for since in changes:
        tests |= since.p_values()
    tests |= {
        number: finding.p_value
        for number, rule in enumerate(rules)
        if (finding := comparison.identity(rule)) is not None
    }
    levels = dict(zip(tests, _corrected(tests, rules, policy), strict=True))
    base_cases = {name: comparison.on_base_cases(table) for name, table in tables.items()}
    results = []
    for number, rule in enumerate(rules):
        measured = values.get(rule.metric.id, rule.suite, rule.where)
        measured = measured or _measured_apart(rule, tables[rule.suite], policy)
        measured, checks = _bound_checks(rule, tables[rule.suite], measured, policy)
        moved = {since.reference: since.change(number, rule, levels) for since in changes}
        for since in changes:
            checks += since.checks(rule, measured, moved[since.reference], levels)
        finding = comparison.identity(rule)
        if finding is not None:
            checks = [_identity_check(rule, finding, levels[number], policy)]
        level = levels[number].level if finding is not None else 0.0
        open_ones, is_diluted = _diluted(rule, checks, base_cases[rule.suite], level, policy)
        judged = JudgedRule(
            rule=rule,
            measured=measured,
            moved=moved,
            checks=[*checks, *open_ones],
            is_diluted=is_diluted,
            is_incomplete=any(
                since.is_incomplete(rule, measured, moved[since.reference]) for since in changes
            ),
        )
        results.append(_result(judged, tables[rule.suite], comparison, policy))
    return results


def _corrected(
    tests: Mapping[Hashable, float], rules: Sequence[Rule], policy: Policy
) -> list[Corrected]:
    """Return every test with its level, in the order in which they stand."""
    p_values, alpha = list(tests.values()), 1 - policy.confidence
    if policy.correction != "holm":
        return uncorrected(p_values, alpha=alpha)
    lines = [_line(test, rules) for test in tests]
    many = Counter(lines)
    return holm(p_values, alpha=alpha, weights=[1 / many[line] for line in lines])


def _line(test: Hashable, rules: Sequence[Rule]) -> Hashable:
    """Return what shares one part of the level: a line of the policy, in a suite and comparison."""
    match test:
        case int() as number:
            return rules[number].position, rules[number].suite
        case (Reference() as reference, int() as number):
            return reference, rules[number].position, rules[number].suite
    return test


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRule:
    """A rule with everything that was found about it."""

    rule: Rule
    measured: Measurement
    moved: Mapping[Reference, Change | None]
    checks: Sequence[tuple[str, Check]]
    is_incomplete: bool
    is_diluted: bool


def _bound_checks(
    rule: Rule, table: Table, measured: Measurement, policy: Policy
) -> tuple[Measurement, list[tuple[str, Check]]]:
    """Judge a value by its bounds; return it with the range that decides, which is printed."""
    possible = _attainable(rule, measured, table, policy)
    chance = _chance(rule, table, policy)
    if chance is not None:
        measured = replace(measured, interval=(chance.low, chance.high))
    found = check_bounds(rule.gate, measured, rule.metric, possible, chance)
    return measured, [("bound", check) for check in found]


def _identity_check(
    rule: Rule, finding: IdentityFinding, level: Corrected, policy: Policy
) -> tuple[str, Check]:
    return "identity", check_identity(rule.gate, finding, level, alpha=1 - policy.confidence)


def _diluted(
    rule: Rule,
    checks: Sequence[tuple[str, Check]],
    base_cases: Sequence[tuple[str, Table]],
    level: float,
    policy: Policy,
) -> tuple[list[tuple[str, Check]], bool]:
    """Return what stays open because a bound that holds does not on the baseline's cases (SPEC 8).

    Otherwise easy cases that are added, or hard ones that are left out, would make harm green.
    """
    now, found, is_diluted = _worst([check.outcome for _, check in checks]), [], False
    if rule.gate.report or now in (Outcome.FAIL, Outcome.NOT_EVALUATED):
        return [], False
    for words, table in base_cases:
        for name, check in _checks_on(rule, table, level, policy):
            fails = check.outcome is Outcome.FAIL
            if fails or (check.outcome is Outcome.INCONCLUSIVE and now is Outcome.PASS):
                reason = f"{words}, {check.reason}"
                found.append((name, Check(outcome=Outcome.INCONCLUSIVE, reason=reason)))
                is_diluted |= fails
    return found, is_diluted


def _checks_on(rule: Rule, table: Table, level: float, policy: Policy) -> list[tuple[str, Check]]:
    """Judge the bounds of a rule on other cases; nothing where these have no such value."""
    column = rule.metric.column
    if column not in table.values or column in table.not_evaluated:
        return []
    if rule.metric.compares_terms:
        alpha = 1 - policy.confidence
        finding = identity_finding(rule.metric, table, rule.where, alpha=alpha, seed=policy.seed)
        if finding is None:
            return []
        p, is_rejected = finding.p_value, finding.p_value <= level
        adjusted = min(1.0, p * alpha / level)
        own = Corrected(p_value=p, adjusted_p=adjusted, level=level, rejected=is_rejected)
        return [_identity_check(rule, finding, own, policy)]
    measured = _measured_apart(rule, table, policy)
    return [] if measured.value is None else _bound_checks(rule, table, measured, policy)[1]


def _measured_apart(rule: Rule, table: Table, policy: Policy) -> Measurement:
    """Measure a slice without a report line; identity metrics have a finding, not a value."""
    if rule.metric.compares_terms:
        note = "there are not two terms to compare"
        note = table.not_evaluated.get(rule.metric.column, note)
        return Measurement(metric=rule.metric.id, suite=rule.suite, where=rule.where, note=note)
    return measure_slice(
        rule.metric, table, rule.where, confidence=policy.confidence, seed=policy.seed
    )


def _attainable(
    rule: Rule, measured: Measurement, table: Table, policy: Policy
) -> Attainable | None:
    if rule.gate.evidence != "interval" or measured.interval is not None:
        return None
    if rule.metric.column not in table.values:
        return None
    observed = observe(rule.metric, table, rule.where)
    return attainable_values(rule.metric, observed, confidence=policy.confidence)


def _chance(rule: Rule, table: Table, policy: Policy) -> LikelyRange | None:
    if rule.gate.evidence != "significant" or rule.metric.compares_terms:
        return None
    if rule.metric.column not in table.values:
        return None
    observed = observe(rule.metric, table, rule.where)
    return range_of(rule.metric, observed, confidence=policy.confidence)


def _result(judged: JudgedRule, table: Table, comparison: Comparison, policy: Policy) -> RuleResult:
    rule, measured, checks = judged.rule, judged.measured, judged.checks
    gate = rule.gate
    bounds = {
        n: getattr(gate, n) for n in ("max", "min", "max_abs") if getattr(gate, n) is not None
    }
    outcome = _worst([check.outcome for _, check in checks])
    reasons = [check.reason for _, check in checks]
    too_few = _too_few(rule, measured, table, policy)
    if too_few and outcome is not Outcome.FAIL:
        outcome, reasons = Outcome.NOT_EVALUATED, [too_few]
    is_reported = gate.report and not reasons
    if rule.metric.of_planned and measured.inconclusive and measured.decided:
        planned = measured.decided + measured.inconclusive
        asr = f"{100 * (measured.violated or 0) / measured.decided:.1f} % (ASR)"
        of_all = f"{measured.violated} of {planned} planned pairs are violated"
        reasons = [*reasons, f"{of_all}; of the {measured.decided} decided {asr}"]
    failed = [name for name, check in checks if check.outcome is Outcome.FAIL]
    return RuleResult(
        metric=rule.metric.id,
        suite=rule.suite,
        where=rule.where,
        position=rule.position,
        outcome=outcome,
        reasons=[REPORTED] if is_reported else reasons,
        bounds=bounds,
        value=measured.value,
        interval=measured.interval,
        change=judged.moved[Reference.BASELINE],
        since_anchor=judged.moved[Reference.ANCHOR],
        advisory=rule.advisory,
        is_reported=is_reported,
        is_first_run=comparison.baseline is None
        and measured.value is not None
        and gate.regression is not None
        and judged.moved[Reference.ANCHOR] is None
        and not bounds,
        warns=_warns(rule, checks, policy),
        failed=list(dict.fromkeys(failed)),
        by_default=rule.by_default,
        is_not_in_baseline=judged.is_incomplete,
        is_diluted=judged.is_diluted,
    )


def _too_few(rule: Rule, measured: Measurement, table: Table, policy: Policy) -> str:
    """Return why a rate of the decided cases is no evidence: too few were decided.

    A whole suite needs the policy's `min_decided`, a slice of it at least half.
    """
    if measured.value is None or rule.metric.compares_terms:
        return ""
    asked = measured.decided + measured.inconclusive
    needed = HALF if rule.where else policy.min_decided
    if measured.decided >= needed * asked:
        return ""
    if measured.decided >= needed * max(asked - _unstable(rule, table), HALF * asked):
        return ""
    limit = "half" if rule.where else f"min_decided {policy.min_decided:g}"
    return f"only {measured.decided} of {asked} cases are decided for this rule, fewer than {limit}"


def _unstable(rule: Rule, table: Table) -> float:
    """Return how many of a rule's cases are no more often unstable than neutral wording is."""
    why = table.reasons.get(rule.metric.column, {})
    rows, arms = observed_rows(rule.metric, table, rule.where)
    kept = np.asarray([arm.weight > 0 for arm in rule.metric.arms])[arms]
    neutral = np.flatnonzero(table.control & table.counted_rows(rule.where))
    own, others = (
        [why.get(row) == Reason.UNSTABLE for row in each.tolist()] for each in (rows[kept], neutral)
    )
    return as_often_as_neutral(own, others)


def _warns(rule: Rule, checks: Sequence[tuple[str, Check]], policy: Policy) -> bool:
    """Return whether an inconclusive rule only warns; an open `evidence: interval` bound fails."""
    asked = any(name == "bound" and check.outcome is Outcome.INCONCLUSIVE for name, check in checks)
    default = "fail" if asked and rule.gate.evidence == "interval" else policy.on_inconclusive
    return (rule.gate.on_inconclusive or default) == "warn"


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    """Return fail before inconclusive before pass; not-evaluated only where nothing else is."""
    for outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS):
        if outcome in outcomes:
            return outcome
    return Outcome.NOT_EVALUATED
