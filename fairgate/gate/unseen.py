"""How much harm to one identity a green run could have had: harm is planted in its own cases.

Of a typical identity (the median of its suite) more and more cases are made bad, until a rule of
the policy would have failed; where rules read degrees, all of its answers are moved more and more
toward the worse labels. As the rest of the run is as chance left it, a system with that much
harm fails in about half of its runs. Bounds and comparisons of identities judge the planted cases
as the gate does; what a regression rule sees follows from the bounds of its change, and from how
many of the rule's cases are the identity's. No verdict depends on it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairgate.domain.outcomes import Better, Measurement, Outcome, RuleResult
from fairgate.domain.units import EVERY_ATTRIBUTE, TOGETHER
from fairgate.gate.bounds import check_identity, judge_bounds
from fairgate.gate.measure import identity_finding, measure_slice, rounded
from fairgate.gate.rules import Rule
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.degrees import mean_probability, nats_for, source_means
from fairgate.metrics.harm import Harm, HarmGroup
from fairgate.metrics.metric import Metric, Table, demographic_rows, observe, observed_rows
from fairgate.policy.schema import Policy
from fairgate.stats.observations import Floats, Integers, estimate, joined
from fairgate.stats.permutation import Corrected, changed_sources_needed

if TYPE_CHECKING:
    from fairgate.gate.gate import GateResult

_FEWEST_DRAWS = 999
_PARTS = 100
"""Steps in which answers are moved: points of probability."""
_OF_ONE = ("category", "term")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """The least harm of one kind to one identity of a suite that would have failed a green run."""

    suite: str
    harm: Harm
    share: float | None
    """Of the identity's cases, or points of probability by which its answers move; None: no rule
    would fail if all of them were bad."""

    @property
    def size(self) -> float:
        """Its share; infinite where no rule sees it."""
        return math.inf if self.share is None else self.share

    @property
    def predicate(self) -> str:
        """Say what could happen to the identity: `change up to about 9 points more often`."""
        if self.share is None:
            move = f"{self.harm.verb} however far toward the worse labels"
            return move if self.harm.moves_all else f"all {self.harm.verb}"
        # Of a share such as 7 / 100, the last digits of the product are no part.
        points = math.ceil(round(100 * self.share, 6))
        if self.harm.moves_all:
            unit = "point" if points == 1 else "points"
            return (
                f"{self.harm.verb} up to about {points} {unit} of probability toward the worse "
                "labels"
            )
        return f"{self.harm.verb} up to about {points} points more often"


def unseen_harm(
    policy: Policy, result: GateResult, tables: Mapping[str, Table]
) -> Iterator[Unseen]:
    """Yield, of each suite and group of harms that rules judge, the harm that they see least.

    Nothing where the run is not green. Deterministic, whatever the order of the cases. O(log cases)
    times the price of the rules about one identity.
    """
    if result.outcome is not Outcome.PASS:
        return
    for suite, table in tables.items():
        by_harm: dict[Harm, list[tuple[RuleResult, Rule]]] = {}
        for rule in result.rules:
            metric = BY_ID.get(rule.metric)
            if rule.suite == suite and metric and metric.harm and _judges(policy, rule, table):
                by_harm.setdefault(metric.harm, []).append((rule, rule_of(policy, rule)))
        least: dict[HarmGroup, Unseen] = {}
        for harm, rules in by_harm.items():
            rows = _typical_rows(table, harm)
            if not len(rows):
                continue
            planted = _Planted(policy=policy, result=result, table=table, harm=harm, rows=rows)
            unseen = Unseen(suite=suite, harm=harm, share=planted.least_seen(rules))
            before = least.get(harm.group)
            if before is None or unseen.size > before.size:
                least[harm.group] = unseen
        yield from (least[group] for group in HarmGroup if group in least)


def unseen_sentence(policy: Policy, result: GateResult, tables: Mapping[str, Table]) -> str:
    """Say which harm to one identity a green could hide, of the suite that sees least of each.

    Empty where the run is not green, or no rule could see one identity's cases.
    """
    least: dict[HarmGroup, Unseen] = {}
    for unseen in unseen_harm(policy, result, tables):
        before = least.get(unseen.harm.group)
        if before is None or unseen.size > before.size:
            least[unseen.harm.group] = unseen
    clauses: dict[tuple[str, str], list[Unseen]] = {}
    for group in HarmGroup:
        if group in least:
            harm = least[group].harm
            clauses.setdefault((harm.who, harm.what), []).append(least[group])
    several = len(tables) > 1
    suites = {each.suite for each in least.values()}
    subjects: dict[str, list[str]] = {}
    for (who, what), harms in clauses.items():
        predicates = [
            f"{each.predicate} in {each.suite}" if len(suites) > 1 else each.predicate
            for each in harms
        ]
        subjects.setdefault(f"one {who}", []).append(f"whose {what} {' or '.join(predicates)}")
    if not subjects:
        return ""
    shown = ", or ".join(f"{who} {' or '.join(those)}" for who, those in subjects.items())
    where = "" if len(suites) > 1 else f" in {next(iter(suites))}" if several else " here"
    return f"{shown[0].upper()}{shown[1:]} would be green{where}."


def rule_of(policy: Policy, rule: RuleResult) -> Rule:
    """Rebuild the rule of a result; the result is of a gate that the policy writes."""
    return Rule(
        gate=policy.gates[rule.position],
        position=rule.position,
        metric=BY_ID[rule.metric],
        suite=rule.suite,
        where=rule.where,
    )


def _judges(policy: Policy, rule: RuleResult, table: Table) -> bool:
    """Return whether a rule could fail by the cases of one identity in a table."""
    is_written = rule.position < len(policy.gates)
    decides = not (rule.advisory or rule.is_reported or rule.waiver)
    column = BY_ID[rule.metric].column
    return (
        is_written
        and decides
        and rule.outcome is not Outcome.NOT_EVALUATED
        and column in table.values
        and column not in table.not_evaluated
    )


def _typical_rows(table: Table, harm: Harm) -> Integers:
    """Return the decided rows of the identity whose mean in a column is the median, shuffled.

    Of two in the middle the one that fares better: of it more has to be harmed.
    """
    columns = harm.values(table)
    if not columns:
        return np.zeros(0, dtype=np.int64)
    first, bad = next(iter(columns.items()))
    values = table.values[first]
    categories = table.dimension("category")
    terms = table.dimension("term") if "term" in table.dimensions else categories
    is_single = categories.where(lambda name: name != EVERY_ATTRIBUTE and TOGETHER not in name)
    kept = demographic_rows(table) & table.counted_rows({}) & is_single & ~np.isnan(values)
    kept &= harm.rows(table)
    means = sorted(
        (rounded(float(values[own].mean())), category, term)
        for category in categories.taken(np.flatnonzero(kept)).first_rows()
        for term in terms.taken(np.flatnonzero(kept & categories.equal(category))).first_rows()
        if (own := kept & categories.equal(category) & terms.equal(term)).any()
    )
    if not means:
        return np.zeros(0, dtype=np.int64)
    overall = float(np.nanmean(values[kept]))
    is_high_bad = float(np.nanmean(bad)) >= overall
    _, category, term = means[(len(means) - is_high_bad) // 2]
    rows = np.flatnonzero(kept & categories.equal(category) & terms.equal(term))
    by_key = rows[np.argsort(table.key_ranks()[rows])]
    return np.random.default_rng(len(by_key)).permutation(by_key)


@dataclass(frozen=True, kw_only=True)
class _Planted:
    """A suite's cases, in which those of one identity are made bad."""

    policy: Policy
    result: GateResult
    table: Table
    harm: Harm
    rows: Integers
    """Of the identity, in the order in which they are made bad."""

    def least_seen(self, rules: Sequence[tuple[RuleResult, Rule]]) -> float | None:
        """Return the least share of the identity's cases by which a rule fails; None: none does."""
        first, bad = next(iter(self._bad.items()))
        column = self.table.values[first]
        about = {
            name: self.table.dimension(name)[int(self.rows[0])]
            for name in _OF_ONE
            if name in self.table.dimensions
        }
        own = [
            (result, rule)
            for result, rule in rules
            if all(about.get(name, level) == level for name, level in rule.where.items())
        ]
        if self.harm.moves_all:
            levels = source_means(self.table, column)[self.rows]
            size, most = _PARTS, math.ceil(_PARTS * mean_probability(levels)) - 1
        else:
            ordered = self._mixed([rule for _, rule in own], column)
            left = ordered[(column != bad)[ordered]]
            size, most = len(self.rows), len(left)

        def fails(count: int) -> bool:
            if self.harm.moves_all:
                table = self._lowered(first, nats_for(count / size, levels))
            else:
                table = self._with_bad(left[:count])
            return any(self._fails(rule, table) for _, rule in own)

        shares = [self._seen_by_change(result, rule) for result, rule in own]
        if most > 0 and fails(most):
            count = 1 + bisect_left(range(1, most), x=True, key=fails)
            shares.append(count / size)
        share = min((each for each in shares if each <= 1), default=None)
        return share if share is None else max(share, self._passing(rules))

    def _mixed(self, rules: Sequence[Rule], column: Floats) -> Integers:
        """Order the identity's rows so that each rule sees its share of however many come first.

        A rule may look at some of them alone, at questions that are open; and of these as many are
        made worse that were good as there are.
        """
        looks = [
            np.isin(self.rows, observed_rows(rule.metric, self.table, rule.where)[0])
            for rule in rules
        ]
        kinds = np.column_stack([*looks, column[self.rows]])
        _, kind_of_row = np.unique(kinds, axis=0, return_inverse=True)
        places = np.empty(len(self.rows))
        for kind in range(int(kind_of_row.max()) + 1):
            of_kind = np.flatnonzero(kind_of_row == kind)
            places[of_kind] = (np.arange(len(of_kind)) + 0.5) / len(of_kind)
        return self.rows[np.argsort(places, kind="stable")]

    def _with_bad(self, rows: Integers) -> Table:
        values = dict(self.table.values)
        for name, bad in self._bad.items():
            changed = values[name].copy()
            changed[rows] = np.where(np.isnan(changed[rows]), np.nan, bad[rows])
            values[name] = changed
        return replace(self.table, values=values)

    def _lowered(self, column: str, nats: float) -> Table:
        lowered = self.table.values[column].copy()
        lowered[self.rows] -= nats
        return replace(self.table, values={**self.table.values, column: lowered})

    @cached_property
    def _bad(self) -> Mapping[str, Floats]:
        """The values [n] of harmed cases, column by column, where they are known."""
        columns = self.harm.values(self.table)
        return {name: bad for name, bad in columns.items() if not np.isnan(bad[self.rows]).all()}

    def _fails(self, rule: Rule, table: Table) -> bool:
        level, alpha = self._level(rule), 1 - self.policy.confidence
        if rule.metric.column not in self._bad:
            return False
        if rule.metric.compares_terms_with_neutral:
            return self._fails_beside_neutral(rule, table, level)
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

    def _fails_beside_neutral(self, rule: Rule, table: Table, level: float) -> bool:
        """Judge the identity alone, as the first of all that are corrected together."""
        own = table.control.copy()
        own[self.rows] = True
        finding = identity_finding(
            rule.metric, table.of_rows(np.flatnonzero(own)), rule.where,
            alpha=1 - self.policy.confidence, seed=self.policy.seed,
        )  # fmt: skip
        if finding is None:
            return False
        categories, terms = (table.dimension(name).taken(_demographic(table)) for name in _OF_ONE)
        p = min(1.0, finding.p_value * len(joined(categories, terms, "\0").first_rows()))
        adjusted = Corrected(p_value=p, adjusted_p=p, level=level, rejected=p <= level)
        findings = [replace(term, p_corrected=p) for term in finding.terms]
        shown = replace(finding, p_value=p, terms=findings)
        check = check_identity(rule.gate, shown, adjusted, alpha=1 - self.policy.confidence)
        return check.outcome is Outcome.FAIL

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
        compared = [*self.result.identities, *self.result.beside_neutral]
        differences = [
            _side(metric) * term.difference
            for finding in compared
            if finding.suite == self.table.suite
            and (metric := BY_ID[finding.metric]).column in self._bad
            for term in finding.terms
        ]
        values = [
            _side(rule.metric) * (result.value or 0.0)
            for result, rule in rules
            if rule.metric.is_difference and self._of_one() <= rule.where.keys()
        ]
        return max([0.0, *differences, *values])

    def _of_one(self) -> set[str]:
        """Return the dimensions that make a slice one identity's."""
        names = [name for name in _OF_ONE if name in self.table.dimensions]
        return {names[-1]}


def _side(metric: Metric) -> int:
    """Return 1 where more is worse, else -1."""
    is_lower_worse = metric.harm is not None and metric.harm.moves_all
    return -1 if metric.better is Better.HIGHER or is_lower_worse else 1


def _demographic(table: Table) -> Integers:
    return np.flatnonzero(demographic_rows(table) & table.counted_rows({}))
