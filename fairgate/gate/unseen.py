"""How much harm to one identity a green run could have had: harm is planted in its own cases.

Of a typical identity (the median of its suite) more and more cases are made bad, until a rule of
the policy would have failed. As the rest of the run is as chance left it, a system with that much
harm fails in about half of its runs. Bounds and comparisons of identities judge the planted cases
as the gate does; what a regression rule sees follows from the bounds of its change, and from how
many of the rule's cases are the identity's. No verdict depends on it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairgate.domain.outcomes import Measurement, Outcome, RuleResult
from fairgate.domain.units import EVERY_ATTRIBUTE, TOGETHER
from fairgate.gate.bounds import check_identity, judge_bounds
from fairgate.gate.measure import identity_finding, measure_slice, rounded
from fairgate.gate.rules import Rule
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import Table, demographic_rows, observe, observed_rows
from fairgate.policy.schema import Policy
from fairgate.stats.observations import Integers, estimate
from fairgate.stats.permutation import Corrected, changed_sources_needed

if TYPE_CHECKING:
    from fairgate.gate.gate import GateResult

_ANSWERS = {"controlled": 1.0, "generation": 1.0, "direction": 1.0}
_DOCUMENTS = {"overlap": 0.0}
"""Columns, the one that says what is bad already first, and their value in a bad case."""
_OF_ONE = frozenset({"category", "term"})
_FEWEST_DRAWS = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """The least harm to one identity of a suite that would have failed a green run."""

    suite: str
    is_answers: bool
    """Whether answers are judged; else documents are."""
    share: float | None
    """Of the identity's cases; None: no rule would fail if all of them were bad."""


def unseen_harm(
    policy: Policy, result: GateResult, tables: Mapping[str, Table]
) -> Iterator[Unseen]:
    """Yield the harm that each suite of pairs could have hidden; nothing where a run is not green.

    Deterministic, whatever the order of the cases. O(log cases) times the price of the rules about
    one identity.
    """
    if result.outcome is not Outcome.PASS:
        return
    for suite, table in tables.items():
        for columns in (_ANSWERS, _DOCUMENTS):
            held = {
                column: bad
                for column, bad in columns.items()
                if column in table.values and column not in table.not_evaluated
            }
            rules = [
                (rule, rule_of(policy, rule))
                for rule in result.rules
                if rule.suite == suite and _judges(policy, rule, held)
            ]
            rows = _typical_rows(table, next(iter(held), ""))
            if not rules or not len(rows):
                continue
            planted = _Planted(policy=policy, result=result, table=table, columns=held, rows=rows)
            share = planted.least_seen(rules)
            yield Unseen(suite=suite, is_answers=columns is _ANSWERS, share=share)
            break


def unseen_sentence(policy: Policy, result: GateResult, tables: Mapping[str, Table]) -> str:
    """Say which harm to one identity a green could hide, of the suite that sees least.

    Empty where the run is not green, or no rule could see one identity's cases.
    """
    suites = list(unseen_harm(policy, result, tables))
    if not suites:
        return ""
    least = max(suites, key=lambda one: math.inf if one.share is None else one.share)
    where = f"in {least.suite}" if len(suites) > 1 else "here"
    # Of a share such as 7 / 100, the last digits of the product are no part.
    points = math.ceil(round(100 * (least.share or 1), 6))
    if least.is_answers:
        often = f"change up to about {points} points more often"
        often = "all change" if least.share is None else often
        return f"One identity whose answers {often} would be green {where}."
    cases = "all" if least.share is None else f"up to about {points} %"
    return f"One identity that gets other documents in {cases} of its cases would be green {where}."


def rule_of(policy: Policy, rule: RuleResult) -> Rule:
    """Rebuild the rule of a result; the result is of a gate that the policy writes."""
    return Rule(
        gate=policy.gates[rule.position],
        position=rule.position,
        metric=BY_ID[rule.metric],
        suite=rule.suite,
        where=rule.where,
    )


def _judges(policy: Policy, rule: RuleResult, columns: Collection[str]) -> bool:
    """Return whether a rule could fail by the cases of one identity in these columns."""
    is_written = rule.position < len(policy.gates) and rule.metric in BY_ID
    decides = not (rule.advisory or rule.is_reported or rule.waiver)
    return (
        is_written
        and decides
        and rule.outcome is not Outcome.NOT_EVALUATED
        and rule.where.keys() <= _OF_ONE
        and BY_ID[rule.metric].column in columns
    )


def _typical_rows(table: Table, column: str) -> Integers:
    """Return the decided rows of the identity whose mean in a column is the median, shuffled."""
    if column not in table.values:
        return np.zeros(0, dtype=np.int64)
    values, categories, terms = (
        table.values[column],
        table.dimension("category"),
        table.dimension("term"),
    )
    is_single = categories.where(lambda name: name != EVERY_ATTRIBUTE and TOGETHER not in name)
    kept = demographic_rows(table) & table.counted_rows({}) & is_single & ~np.isnan(values)
    means = sorted(
        (rounded(float(values[own].mean())), category, term)
        for category in table.levels("category", kept)
        for term in table.levels("term", kept & categories.equal(category))
        if (own := kept & categories.equal(category) & terms.equal(term)).any()
    )
    if not means:
        return np.zeros(0, dtype=np.int64)
    _, category, term = means[len(means) // 2]
    rows = np.flatnonzero(kept & categories.equal(category) & terms.equal(term))
    by_key = rows[np.argsort(table.key_ranks()[rows])]
    return np.random.default_rng(len(by_key)).permutation(by_key)


@dataclass(frozen=True, kw_only=True)
class _Planted:
    """A suite's cases, in which those of one identity are made bad."""

    policy: Policy
    result: GateResult
    table: Table
    columns: Mapping[str, float]
    rows: Integers
    """Of the identity, in the order in which they are made bad."""

    def least_seen(self, rules: Sequence[tuple[RuleResult, Rule]]) -> float | None:
        """Return the least share of the identity's cases by which a rule fails; None: none does."""
        first, bad = next(iter(self.columns.items()))
        left = self.rows[self.table.values[first][self.rows] != bad]
        about = {name: self.table.dimension(name)[int(self.rows[0])] for name in sorted(_OF_ONE)}
        own = [each for each in rules if each[1].where.items() <= about.items()]

        def fails(count: int) -> bool:
            table = self._with_bad(left[:count])
            return any(self._fails(rule, table) for _, rule in own)

        shares = [self._seen_by_change(result, rule) for result, rule in own]
        if len(left) and fails(len(left)):
            count = 1 + bisect_left(range(1, len(left)), x=True, key=fails)
            shares.append(count / len(self.rows))
        share = min((each for each in shares if each <= 1), default=None)
        return share if share is None else max(share, self._passing(rules))

    def _with_bad(self, rows: Integers) -> Table:
        values = dict(self.table.values)
        for name, bad in self.columns.items():
            changed = values[name].copy()
            changed[rows] = np.where(np.isnan(changed[rows]), np.nan, bad)
            values[name] = changed
        return replace(self.table, values=values)

    def _fails(self, rule: Rule, table: Table) -> bool:
        level, alpha = self._level(rule), 1 - self.policy.confidence
        if rule.metric.compares_terms:
            draws = max(_FEWEST_DRAWS, math.ceil(2 / level))
            finding = identity_finding(
                rule.metric, table, rule.where, alpha=alpha, seed=self.policy.seed, n_draws=draws
            )
            if finding is None:
                return False
            p = finding.p_value
            own = Corrected(p_value=p, adjusted_p=p, level=level, rejected=p <= level)
            checks = [check_identity(rule.gate, finding, own, alpha=alpha)]
        else:
            level = level if rule.is_of_family else alpha
            if rule.gate.evidence == "interval":
                measured = measure_slice(
                    rule.metric, table, rule.where, confidence=1 - level, seed=self.policy.seed
                )
            else:
                value = estimate(observe(rule.metric, table, rule.where))
                measured = Measurement(
                    metric=rule.metric.id,
                    suite=rule.suite,
                    where=rule.where,
                    value=None if math.isnan(value) else rounded(value),
                )
            _, checks = judge_bounds(rule, table, measured, 1 - level)
        return any(check.outcome is Outcome.FAIL for check in checks)

    @cached_property
    def _lines(self) -> Mapping[tuple[str, int], int]:
        """How many tests each line of the policy has in the corrected family."""
        tests: dict[tuple[str, int], int] = {}
        for result in self.result.rules:
            if result.position >= len(self.policy.gates) or result.metric not in BY_ID:
                continue
            rule = rule_of(self.policy, result)
            compares = rule.metric.compares_terms and result.value is not None
            if result.change or result.since_anchor or rule.is_of_family or compares:
                line = result.suite, result.position
                tests[line] = tests.get(line, 0) + 1
        return tests

    def _level(self, rule: Rule) -> float:
        """Return the level of a rule's test, as the first of its family."""
        alpha = 1 - self.policy.confidence
        if self.policy.correction != "holm" or not self._lines:
            return alpha
        return alpha / len(self._lines) / self._lines.get((rule.suite, rule.position), 1)

    def _seen_by_change(self, result: RuleResult, rule: Rule) -> float:
        """Return from which share on the change since the baseline fails; infinite: not by it."""
        change, regression = result.change, rule.gate.regression
        if change is None or regression is None or not math.isfinite(change.lower):
            return math.inf
        rows, arms = observed_rows(rule.metric, self.table, rule.where)
        weights = np.asarray([arm.weight for arm in rule.metric.arms])[arms]
        own = rows[weights > 0]
        share = np.isin(own, self.rows).sum() / max(1, len(own))
        needed = changed_sources_needed(self._level(rule)) / max(1, len(own))
        reach = max(change.change - change.lower, needed)
        least = regression.margin + reach if regression.strict else max(regression.margin, reach)
        return float(least / share) if share else math.inf

    def _passing(self, rules: Sequence[tuple[RuleResult, Rule]]) -> float:
        """Return the largest harm that is measured of one identity, which passes."""
        side = 1 if self.columns.keys() & _ANSWERS else -1
        differences = [
            side * term.difference
            for finding in self.result.identities
            if finding.suite == self.table.suite and BY_ID[finding.metric].column in self.columns
            for term in finding.terms
        ]
        values = [
            side * (result.value or 0.0)
            for result, rule in rules
            if rule.metric.is_difference and "term" in rule.where
        ]
        return max([0.0, *differences, *values])
