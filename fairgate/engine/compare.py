"""Judge every rule: bounds on the estimate, regressions against the baseline (SPEC 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairgate.domain.measurements import Measurement, Measurements
from fairgate.domain.outcomes import Change, Outcome, RuleResult
from fairgate.engine.baseline import comparable_rows
from fairgate.engine.bounds import Attainable, Check, attainable_values, check_bounds
from fairgate.engine.check_change import HALF, check_change
from fairgate.engine.comparison import Comparison, change_of, prepare_rule
from fairgate.engine.identity import check_identity
from fairgate.engine.measure import measure_slice
from fairgate.engine.rules import Rule
from fairgate.engine.undecided import UndecidedChange, check_undecided, undecided_change
from fairgate.metrics.metric import observe
from fairgate.metrics.table import Table
from fairgate.policy.schema import Policy
from fairgate.stats.multiplicity import holm, uncorrected

REPORTED = "only reported: the policy sets no limit for it"
FIRST_RUN = "first run: there is no baseline to compare with yet"


def compare(
    rules: Sequence[Rule],
    tables: Mapping[str, Table],
    measurements: Sequence[Measurement],
    comparison: Comparison,
    policy: Policy,
) -> list[RuleResult]:
    """Return a result for every rule, in the order of the policy.

    Regression rules, identity rules and the tests for more undecided cases form one family whose
    levels are corrected together; bounds do not.
    """
    values = Measurements(measurements)
    prepared = {
        number: found
        for number, rule in enumerate(rules)
        if rule.gate.regression is not None
        and (found := prepare_rule(rule, tables[rule.suite], comparison, policy.seed)) is not None
        and found.evidence.evaluated
    }
    undecided = _undecided([rules[n] for n in prepared], tables, comparison, policy.seed)
    tests: dict[object, float] = {n: found.p_value for n, found in prepared.items()}
    tests |= {
        number: finding.p_value
        for number, rule in enumerate(rules)
        if (finding := comparison.identity(rule)) is not None
    }
    tests |= {where: change.p_value for where, change in undecided.items()}
    correct = holm if policy.correction == "holm" else uncorrected
    levels = dict(
        zip(tests, correct(list(tests.values()), alpha=1 - policy.confidence), strict=True)
    )
    results = []
    for number, rule in enumerate(rules):
        measured = values.get(rule.metric.id, rule.suite, rule.where)
        measured = measured or _measured_apart(rule, tables[rule.suite], policy)
        change, asked = None, 0
        if number in prepared:
            evidence = prepared[number].at_level(levels[number].level)
            pairs = prepared[number].pairs
            change = change_of(rule, evidence, levels[number].adjusted_p, pairs)
            asked = len(observe(rule.metric, tables[rule.suite], rule.where).keys)
        possible = _attainable(rule, measured, tables[rule.suite], policy)
        checks = _checks(rule, measured, possible, change, asked, comparison)
        finding = comparison.identity(rule)
        if finding is not None:
            alpha = 1 - policy.confidence
            checks = [("identity", check_identity(rule.gate, finding, levels[number], alpha=alpha))]
        gone = undecided.get((rule.suite, rule.metric.column))
        if change is not None and gone is not None:
            unreadable = check_undecided(gone, levels[rule.suite, rule.metric.column])
            checks += [("unreadable", unreadable)] if unreadable else []
        results.append(_result(rule, measured, change, checks, comparison, policy))
    return results


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


def _undecided(
    rules: Sequence[Rule], tables: Mapping[str, Table], comparison: Comparison, seed: int
) -> dict[tuple[str, str], UndecidedChange]:
    """Test once for each suite and column that a regression rule rests on."""
    found = {}
    for rule in rules:
        where, suite = (rule.suite, rule.metric.column), comparison.suite(rule.suite)
        if where in found or suite is None:
            continue
        now = tables[rule.suite]
        base = comparable_rows(now, suite, comparison.contents[rule.suite])
        change = undecided_change(now, base, rule.metric.column, seed)
        if change is not None:
            found[where] = change
    return found


def _checks(
    rule: Rule,
    measured: Measurement,
    possible: Attainable | None,
    change: Change | None,
    asked: int,
    comparison: Comparison,
) -> list[tuple[str, Check]]:
    checks = [
        ("bound", check) for check in check_bounds(rule.gate, measured, rule.metric, possible)
    ]
    if rule.gate.regression is not None and measured.value is not None:
        checks.append(("regression", _regression_check(rule, change, asked, comparison)))
    return checks


def _regression_check(
    rule: Rule, change: Change | None, asked: int, comparison: Comparison
) -> Check:
    if comparison.baseline is None:
        return Check(outcome=Outcome.NOT_EVALUATED, reason=FIRST_RUN)
    if not comparison.is_comparable:
        reason = "the baseline was made under other conditions, see the differences"
        return Check(outcome=Outcome.INCONCLUSIVE, reason=reason)
    if change is None:
        return Check(
            outcome=Outcome.NOT_EVALUATED,
            reason=f"the baseline has no comparable {rule.metric.id} for this rule: accept a run "
            "that has it with `fairgate baseline accept`",
        )
    return check_change(change, rule.metric, asked)


def _result(
    rule: Rule,
    measured: Measurement,
    change: Change | None,
    checks: Sequence[tuple[str, Check]],
    comparison: Comparison,
    policy: Policy,
) -> RuleResult:
    gate = rule.gate
    bounds = {
        n: getattr(gate, n) for n in ("max", "min", "max_abs") if getattr(gate, n) is not None
    }
    first_run = comparison.baseline is None
    outcome = _worst([check.outcome for _, check in checks])
    reasons = [check.reason for _, check in checks]
    too_few = _too_few(rule, measured, policy)
    if too_few and outcome is not Outcome.FAIL:
        outcome, reasons = Outcome.NOT_EVALUATED, [too_few]
    is_reported = gate.report and not reasons
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
        change=change,
        advisory=rule.advisory,
        is_reported=is_reported,
        is_first_run=first_run
        and measured.value is not None
        and gate.regression is not None
        and not bounds,
        warns=_warns(rule, checks, policy),
        failed=[name for name, check in checks if check.outcome is Outcome.FAIL],
        by_default=rule.by_default,
        paper_name="" if gate.metric == rule.metric.id else gate.metric,
        is_not_in_baseline=gate.regression is not None
        and measured.value is not None
        and change is None
        and not first_run
        and comparison.is_comparable,
    )


def _too_few(rule: Rule, measured: Measurement, policy: Policy) -> str:
    """Return why a rate of the decided cases is no evidence: too few were decided.

    A whole suite needs the policy's `min_decided`, a slice of it at least half.
    """
    if measured.value is None or rule.metric.compares_terms:
        return ""
    asked = measured.decided + measured.inconclusive
    needed = HALF if rule.where else policy.min_decided
    if measured.decided >= needed * asked:
        return ""
    limit = "half" if rule.where else f"min_decided {policy.min_decided:g}"
    return f"only {measured.decided} of {asked} cases are decided for this rule, fewer than {limit}"


def _warns(rule: Rule, checks: Sequence[tuple[str, Check]], policy: Policy) -> bool:
    """Return whether an inconclusive rule only warns; an open `evidence: interval` bound fails."""
    asked = any(name == "bound" and check.outcome is Outcome.INCONCLUSIVE for name, check in checks)
    default = "fail" if asked else policy.on_inconclusive
    return (rule.gate.on_inconclusive or default) == "warn"


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    """Return fail before inconclusive before pass; not-evaluated only where nothing else is."""
    for outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS):
        if outcome in outcomes:
            return outcome
    return Outcome.NOT_EVALUATED
