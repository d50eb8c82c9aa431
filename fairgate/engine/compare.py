"""Judge every rule: bounds on the estimate, regressions against the baseline (SPEC 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairgate.domain.findings import IdentityFinding
from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import Change, Outcome, RuleResult
from fairgate.domain.wording import probability
from fairgate.engine.baseline import Baseline, BaselineSuite, comparable_rows
from fairgate.engine.bounds import Check, check_bounds
from fairgate.engine.identity import check_identity
from fairgate.engine.measure import measure_slice
from fairgate.engine.rules import Rule
from fairgate.engine.undecided import UndecidedChange, check_undecided, undecided_change
from fairgate.metrics.metric import observe
from fairgate.metrics.table import Table
from fairgate.policy.gates import RegressionPolicy
from fairgate.policy.schema import Policy
from fairgate.stats.evidence import RegressionEvidence, RegressionSettings, Worse
from fairgate.stats.multiplicity import holm, uncorrected
from fairgate.stats.observations import pair_by_key
from fairgate.stats.regression import PreparedRegression, prepare_regression

FIRST_RUN = "first run: there is no baseline to compare with; accept this run to make one"
_DECIMALS = 6
_WORSE = {"lower": Worse.HIGHER, "higher": Worse.LOWER, "toward-zero": Worse.ABSOLUTE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What rules are held against beside their bounds."""

    baseline: Baseline | None
    contents: Mapping[str, Mapping[str, str]]
    """Suite to pair key to content hash of this run: which of the baseline's cases still count."""
    is_comparable: bool = True
    """False where what must match differs: no regression rule is judged then."""
    identities: Sequence[IdentityFinding] = ()

    def suite(self, name: str) -> BaselineSuite | None:
        """Return the baseline's suite, where there is one that can be compared."""
        usable = self.baseline if self.is_comparable else None
        return usable.suites.get(name) if usable else None

    def identity(self, rule: Rule) -> IdentityFinding | None:
        """Return the finding that an identity rule is about."""
        if not rule.metric.compares_terms:
            return None
        return next(
            (f for f in self.identities if (f.suite, f.where) == (rule.suite, rule.where)), None
        )

    def known_sd(self, rule: Rule) -> float:
        """Return the SD of the per-source change that the policy declares or burn-in measured."""
        declared = rule.gate.regression.sd if rule.gate.regression else None
        measured = (
            self.baseline.sd_of(rule.metric.id, rule.suite, rule.where) if self.baseline else 0.0
        )
        return max(declared or 0.0, measured)


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
    values = {(m.metric, m.suite, tuple(sorted(m.where.items()))): m for m in measurements}
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
        where = (rule.metric.id, rule.suite, tuple(sorted(rule.where.items())))
        measured = values.get(where) or measure_slice(
            rule.metric, tables[rule.suite], rule.where, confidence=policy.confidence
        )
        change = None
        if number in prepared:
            evidence = prepared[number].at_level(levels[number].level)
            change = _change(rule, evidence, levels[number].adjusted_p)
        checks = _checks(rule, measured, change, comparison)
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


def prepare_rule(
    rule: Rule, now: Table, comparison: Comparison, seed: int
) -> PreparedRegression | None:
    """Pair the rule's cases with the baseline's; None where there is nothing to pair."""
    suite = comparison.suite(rule.suite)
    column = rule.metric.column
    if suite is None or column in now.not_evaluated or column in suite.table.not_evaluated:
        return None
    if column not in suite.table.values:
        return None
    base = comparable_rows(now, suite, comparison.contents[rule.suite])
    pairs = pair_by_key(
        observe(rule.metric, now, rule.where), observe(rule.metric, base, rule.where)
    )
    settings = RegressionSettings(
        worse=_WORSE[rule.metric.better],
        margin=_regression(rule).margin,
        strict=_regression(rule).strict,
        sd_floor=comparison.known_sd(rule),
    )
    return prepare_regression(pairs, settings, np.random.default_rng(seed))


def _regression(rule: Rule) -> RegressionPolicy:
    return rule.gate.regression or RegressionPolicy()


def _change(rule: Rule, evidence: RegressionEvidence, p_corrected: float) -> Change:
    regression = _regression(rule)
    settings = RegressionSettings(margin=regression.margin)
    needed = None
    if evidence.detectable > regression.detect:
        needed = evidence.sources_to_see(regression.detect, settings)
    return Change(
        base=_rounded(evidence.base),
        now=_rounded(evidence.now),
        change=_rounded(evidence.worsening),
        lower=_rounded(evidence.lower),
        upper=_rounded(evidence.upper),
        p_value=_rounded(evidence.p_value),
        p_corrected=_rounded(p_corrected),
        significant=evidence.significant,
        sources=evidence.n_sources,
        changed_sources=evidence.n_changed_sources,
        changed_sources_needed=evidence.changed_sources_needed,
        discordant=evidence.n_discordant,
        minimum_detectable=_rounded(evidence.detectable),
        margin=regression.margin,
        detect=regression.detect,
        sources_needed=needed,
        sign_changed=evidence.sign_changed,
        method=evidence.method.value,
    )


def _rounded(value: float) -> float:
    return round(float(value), _DECIMALS) + 0.0


def _checks(
    rule: Rule, measured: Measurement, change: Change | None, comparison: Comparison
) -> list[tuple[str, Check]]:
    checks = [("bound", check) for check in check_bounds(rule.gate, measured, rule.metric)]
    if rule.gate.regression is not None and measured.value is not None:
        checks.append(("regression", _regression_check(change, comparison, rule)))
    return checks


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
    return RuleResult(
        metric=rule.metric.id,
        suite=rule.suite,
        where=rule.where,
        position=rule.position,
        outcome=_worst([check.outcome for _, check in checks]),
        reasons=[check.reason for _, check in checks],
        bounds=bounds,
        value=measured.value,
        interval=measured.interval,
        change=change,
        advisory=gate.advisory,
        is_first_run=first_run and measured.value is not None and not bounds,
        warns=(gate.on_inconclusive or policy.on_inconclusive) == "warn",
        failed=[name for name, check in checks if check.outcome is Outcome.FAIL],
    )


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    """Return fail before inconclusive before pass; not-evaluated only where nothing else is."""
    for outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS):
        if outcome in outcomes:
            return outcome
    return Outcome.NOT_EVALUATED


def _regression_check(change: Change | None, comparison: Comparison, rule: Rule) -> Check:
    """Fail only if significant and above the margin; pass only if a change would have shown."""
    if comparison.baseline is None:
        return Check(outcome=Outcome.NOT_EVALUATED, reason=FIRST_RUN)
    if not comparison.is_comparable:
        reason = "the baseline was made under other conditions, see the differences"
        return Check(outcome=Outcome.INCONCLUSIVE, reason=reason)
    if change is None:
        return Check(
            outcome=Outcome.INCONCLUSIVE, reason=f"the baseline has no comparable {rule.metric.id}"
        )
    show = _points if rule.metric.is_rate else _score
    moved = f"{show(change.change, sign=True)} against the baseline's {show(change.base)}"
    if change.sign_changed and rule.metric.better == "toward-zero":
        moved += f" (and it is on the other side of 0 now, {show(change.now)})"
    if change.significant and change.change > change.margin:
        return Check(
            outcome=Outcome.FAIL,
            reason=f"worse by {moved}: more than the margin {show(change.margin)} and more than "
            f"chance explains ({probability(change.p_corrected)})",
        )
    if change.upper <= change.margin or change.minimum_detectable <= change.detect:
        size = "unchanged" if change.discordant == 0 else f"changed by {moved}"
        return Check(outcome=Outcome.PASS, reason=f"{size}, within the margin or chance")
    if change.changed_sources < change.changed_sources_needed and change.discordant:
        few = (
            f"; {change.changed_sources} sources changed, and fewer than "
            f"{change.changed_sources_needed} can never be significant"
        )
    else:
        few = ""
    enough = f"; {change.sources_needed} sources would do" if change.sources_needed else ""
    return Check(
        outcome=Outcome.INCONCLUSIVE,
        reason=f"changed by {moved}, but this suite could see only changes of at least "
        f"{show(change.minimum_detectable)}{enough}{few}",
    )


def _points(value: float, *, sign: bool = False) -> str:
    return f"{100 * value:{'+' if sign else ''}.1f} points"


def _score(value: float, *, sign: bool = False) -> str:
    return f"{value:{'+' if sign else ''}.3f}"
