"""The change since an earlier run, baseline or anchor: a test for every rule, and its checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from fairgate.domain.cases import TestPlan
from fairgate.domain.outcomes import Better, Change, Measurement, Outcome
from fairgate.domain.units import Reason, counted
from fairgate.domain.wording import difference, probability, signed, value
from fairgate.gate.baseline import AcceptedRun, Baseline, BaselineSuite
from fairgate.gate.bounds import Check
from fairgate.gate.measure import rounded
from fairgate.gate.rules import ParityRule, Rule, dimension_levels
from fairgate.metrics.metric import Metric, Table, demographic_rows, observe
from fairgate.stats.observations import Observations, pair_by_key, select
from fairgate.stats.permutation import Corrected
from fairgate.stats.regression import (
    PreparedRegression,
    RegressionEvidence,
    Worse,
    prepare_regression,
)

HALF = 0.5
"""Share of a slice that must be decided, and of a rule's cases that must be comparable."""
MARGIN = 0.02
"""Growth of the undecided share that is accepted, as a regression's default margin."""
ACCEPTED = {AcceptedRun.BASELINE: MARGIN, AcceptedRun.ANCHOR: 2 * MARGIN}
"""Growth that is accepted since each of the runs that are compared with."""
_WORSE = {
    Better.LOWER: Worse.HIGHER,
    Better.HIGHER: Worse.LOWER,
    Better.TOWARD_ZERO: Worse.ABSOLUTE,
}
_RENEW = {AcceptedRun.BASELINE: "accept a baseline", AcceptedRun.ANCHOR: "pin an anchor"}
_CHECK = {AcceptedRun.BASELINE: "regression", AcceptedRun.ANCHOR: "budget"}
"""Name of the check among those that a rule failed."""
_LIMIT = {AcceptedRun.BASELINE: "margin", AcceptedRun.ANCHOR: "budget"}
"""What the policy calls the largest change that is accepted."""
_COMMAND = {AcceptedRun.BASELINE: "accept", AcceptedRun.ANCHOR: "anchor"}
_NOTHING_THERE = {
    AcceptedRun.BASELINE: "first run: there is no baseline to compare with yet",
    AcceptedRun.ANCHOR: "the budget is not evaluated: there is no anchor yet; pin a reviewed run "
    "with `fairgate baseline anchor RUN --reason …`",
}


class TestKey(NamedTuple):
    """What is tested: a rule since a run, its identities, or whether more cases are undecided.

    All tests of one `accepted`, `suite` and `line` share that line's part of the level.
    """

    accepted: AcceptedRun | None
    """Since which run; None: the identities of this run differ."""
    suite: str
    line: int | str
    """The rule's line of the policy, or the column whose undecided cases are tested."""
    rule: int = -1
    """Number of the rule."""


CorrectedTests = Mapping[TestKey, Corrected]


def lacks_base(column: str, table: Table) -> bool:
    """Return whether a column has no value only because no base commit is known."""
    if column not in table.not_evaluated:
        return False
    return Reason.NO_BASE in table.reasons.get(column, {}).values()


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What rules are compared with beside their bounds; runs of equal inputs share one."""

    runs: Mapping[AcceptedRun, Baseline]
    """Those that there are."""
    contents: Mapping[str, Mapping[str, str]]
    """Suite to pair key to content hash of this run: which of the baseline's cases still count."""
    unfit: Container[AcceptedRun] = ()
    """The runs from which what must match differs: nothing is judged by them."""
    other_space: Container[AcceptedRun] = ()
    """The runs whose documents another embedder measured: no distance is judged by them."""
    _rows: dict[tuple[AcceptedRun, str, frozenset[str], tuple[float, float]], Table] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    def suite(
        self, name: str, accepted: AcceptedRun = AcceptedRun.BASELINE
    ) -> BaselineSuite | None:
        """Return a kept run's suite, where there is one that can be compared."""
        run = None if accepted in self.unfit else self.runs.get(accepted)
        return run.suites.get(name) if run else None

    def is_elsewhere(self, metric: Metric, accepted: AcceptedRun) -> bool:
        """Return whether a run's values of a metric are distances in another embedder's space."""
        return metric.in_embedding_space and accepted in self.other_space

    def rows(self, suite: BaselineSuite, now: Table, accepted: AcceptedRun) -> Table:
        """Return the rows of a kept run's suite whose cases are still asked as they were."""
        key = accepted, suite.table.suite, now.advisory, now.bands
        if key not in self._rows:
            # What is said of undecided ones no baseline file keeps.
            own, table = self.contents[suite.table.suite], suite.table
            keep = [own.get(case_key) == suite.contents.get(case_key) for case_key in table.keys]
            old = table if all(keep) else table.of_rows(np.flatnonzero(keep))
            old_rows = replace(old, advisory=now.advisory, bands=now.bands, reasons={})
            self._rows[key] = old_rows
        return self._rows[key]

    def on_base_cases(self, now: Table) -> list[tuple[str, Table]]:
        """Return this run's cases as a bound must hold on them too, and what each time is meant.

        Those that the baseline has; then, with the baseline's verdicts, those besides that this run
        no longer asks. Nothing where the cases are the same, or there is no baseline.
        """
        suite = self.suite(now.suite)
        if suite is None:
            return []
        own = self.contents[now.suite]
        if own == suite.contents:
            return []
        is_shared = [suite.contents.get(key, "") == own[key] for key in now.keys]
        is_gone = [own.get(key) != suite.contents[key] for key in suite.table.keys]
        shared = now.of_rows(np.flatnonzero(is_shared))
        left_out = suite.table.of_rows(np.flatnonzero(is_gone))
        tables = []
        if not all(is_shared):
            tables.append((f"on the {len(shared.keys):,} cases that the baseline has too", shared))
        if any(is_gone):
            words = f"with the {len(left_out.keys):,} cases of the baseline that are excluded"
            tables.append((words, shared.followed_by(left_out)))
        return tables


def prepare_rule(
    rule: Rule,
    now: Table,
    comparison: Comparison,
    seed: int,
    accepted: AcceptedRun = AcceptedRun.BASELINE,
) -> PreparedRegression | None:
    """Pair the rule's cases with the baseline's; None where there is nothing to pair."""
    suite = comparison.suite(rule.suite, accepted)
    column = rule.metric.column
    if suite is None or column in now.not_evaluated or column in suite.table.not_evaluated:
        return None
    if comparison.is_elsewhere(rule.metric, accepted):
        return None
    if column not in suite.table.values:
        return None
    base = comparison.rows(suite, now, accepted)
    pairs = pair_by_key(
        observe(rule.metric, now, rule.where), observe(rule.metric, base, rule.where)
    )
    return prepare_regression(pairs, _WORSE[rule.metric.better], np.random.default_rng(seed))


def check_change(
    change: Change, metric: Metric, planned: int, accepted: AcceptedRun = AcceptedRun.BASELINE
) -> Check:
    """Fail only if significant and above the margin.

    `planned` is how many cases the rule has in this run, in the baseline or not; `accepted` says
    since which run the change is, and so what its limit is called.
    """
    moved = _moved(change, metric, accepted)
    outcome, reason = Outcome.PASS, f"changed {moved}, within the {_LIMIT[accepted]} or chance"
    if change.significant and change.change > change.margin:
        outcome = Outcome.FAIL
        reason = (
            f"worse, {moved}: more than the {_LIMIT[accepted]} {_size(change.margin, metric)} and "
            f"more than chance explains ({probability(change.p_corrected)})"
        )
    elif change.pairs < HALF * planned:
        outcome = Outcome.NOT_EVALUATED
        reason = (
            f"only {change.pairs} of {planned} cases can be compared, the others are not in the "
            f"{accepted} or were not decided in both runs; {_RENEW[accepted]} that has them"
        )
    elif change.discordant == 0:
        is_baseline = accepted is AcceptedRun.BASELINE
        reason = "unchanged" if is_baseline else "unchanged since the anchor"
    elif change.upper < 0:
        reason = f"better, {moved}"
    return Check(name=_CHECK[accepted], outcome=outcome, reason=reason)


def _moved(change: Change, metric: Metric, accepted: AcceptedRun) -> str:
    """Describe how the value itself moved, not the worsening: the sign is that of the tables."""
    is_size = metric.better is Better.TOWARD_ZERO
    ends = (change.base, change.now)
    base, now = map(abs, ends) if is_size else ends
    unit = " points" if metric.is_rate else ""
    moved = difference(base, now, is_rate=metric.is_rate)
    units = {"is_rate": metric.is_rate, "is_difference": metric.is_difference}
    was, is_now = (value(end, **units) for end in ends)
    turned = change.sign_changed and is_size
    side = f" (and it is on the other side of 0 now, {is_now})" if turned else ""
    size = " in size" if is_size else ""
    return f"by {moved}{unit}{size} against the {accepted}'s {was}{side}"


def _size(number: float, metric: Metric) -> str:
    return value(number, is_rate=metric.is_rate).replace(" %", " points")


@dataclass(frozen=True, slots=True, kw_only=True)
class UndecidedChange:
    """How the share of undecided cases of one column moved, both arms, on the common cases.

    A regression rule compares the cases that both runs decided. A system that stops answering drops
    out of that comparison instead of failing it, so the share of undecided cases is compared too,
    with the same test, and a worsening is gated as `unreadable`.
    """

    evidence: RegressionEvidence
    newly: Mapping[Reason, int]
    """Cases that the baseline decided and the run does not, by reason."""
    has_controls: bool
    """Whether control prompts are among the cases."""


def as_often_as_controls(own: Sequence[bool], controls: Sequence[bool]) -> float:
    """Return how many of the cases flagged in `own` control prompts have as often.

    They are unstable answers, which a real model gives to everybody: so many leave the cases of
    which `min_decided` is asked, and what is more counts against it. 0 without control prompts.
    """
    return min(float(sum(own)), sum(controls) / len(controls) * len(own)) if len(controls) else 0.0


def undecided_change(now: Table, base: Table, metric: Metric, seed: int) -> UndecidedChange | None:
    """Return the change; None where no case became decided or undecided, so nothing is tested.

    Left out are cases that nobody asked or recorded: missing evidence, which ends with exit code 5.
    """
    reasons = now.reasons.get(metric.column, {})
    left_out = {now.keys[row] for row, why in reasons.items() if why is Reason.MISSING}
    pairs = pair_by_key(*(_undecided(table, metric, left_out) for table in (now, base)))
    if not pairs.n_discordant:
        return None
    evidence = prepare_regression(pairs, Worse.HIGHER, np.random.default_rng(seed)).evidence
    if not evidence.evaluated:
        return None
    rows = {key: row for row, key in enumerate(now.keys)}
    gone = np.flatnonzero(pairs.now.values > pairs.base.values).tolist()
    newly = Counter(Reason(reasons[rows[pairs.now.keys[position]]]) for position in gone)
    return UndecidedChange(evidence=evidence, newly=newly, has_controls=bool(now.control.any()))


def _undecided(table: Table, metric: Metric, left_out: set[str]) -> Observations:
    """Return 1 for each case that is not decided and 0 for each that is."""
    is_undecided = np.isnan(table.values[metric.column])
    observed = Observations(
        keys=list(table.keys),
        clusters=table.clusters,
        arms=np.zeros(len(table.keys), dtype=np.int8),
        values=is_undecided.astype(np.float64),
        weights=(1.0,),
        n_clusters=len(table.cluster_names),
    )
    return select(observed, np.asarray([key not in left_out for key in table.keys], dtype=bool))


def check_undecided(
    change: UndecidedChange, corrected: Corrected, accepted: AcceptedRun
) -> list[Check]:
    """Fail where significantly more cases are undecided, by more than is accepted; else nothing."""
    grown = change.evidence.worsening
    if not corrected.rejected or grown <= ACCEPTED[accepted]:
        return []
    both = ", control prompts included" if change.has_controls else ""
    reason = (
        f"{signed(grown, is_rate=True)} points of the cases are no longer decided: "
        f"{sum(change.newly.values())} that the {accepted} decided{both} "
        f"({counted(change.newly)}; {probability(corrected.adjusted_p)}); a comparison of the rest "
        "would hide them"
    )
    return [Check(name="unreadable", outcome=Outcome.FAIL, reason=reason)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTests:
    """What is tested against one earlier run, before the levels of the whole family are known."""

    accepted: AcceptedRun
    comparison: Comparison
    tables: Mapping[str, Table]
    rules: Mapping[TestKey, PreparedRegression]
    """The comparison of every rule that asks something of the change since this run."""
    undecided: Mapping[TestKey, UndecidedChange]
    """Once for each suite and column that a rule rests on, whether more cases are undecided."""

    @property
    def p_values(self) -> dict[TestKey, float]:
        """Return the uncorrected p value of every test, for the family that is corrected."""
        rules = {key: test.evidence.p_value for key, test in self.rules.items()}
        return rules | {key: test.evidence.p_value for key, test in self.undecided.items()}

    @property
    def least_p_values(self) -> dict[TestKey, float]:
        """Return the least p value that each test could give for the sources that changed."""
        rules = {key: test.evidence.least_p for key, test in self.rules.items()}
        return rules | {key: test.evidence.least_p for key, test in self.undecided.items()}

    def change(self, number: int, rule: Rule, levels: CorrectedTests) -> Change | None:
        """Return how a rule's value moved, at its corrected level; None where nothing is there."""
        key = TestKey(self.accepted, rule.suite, rule.position, number)
        if key not in self.rules:
            return None
        prepared = self.rules[key]
        evidence = prepared.at_level(levels[key].level)
        return Change(
            base=rounded(evidence.base),
            now=rounded(evidence.now),
            change=rounded(evidence.worsening),
            lower=rounded(evidence.lower),
            upper=rounded(evidence.upper),
            p_value=rounded(evidence.p_value),
            p_corrected=rounded(levels[key].adjusted_p),
            significant=evidence.significant,
            sources=evidence.n_sources,
            changed_sources=evidence.n_changed_sources,
            discordant=evidence.n_discordant,
            pairs=evidence.n_pairs,
            margin=self.accepted.limit(rule.gate) or 0.0,
            sign_changed=evidence.sign_changed,
            method=evidence.method.value,
            decided_once=prepared.pairs.decided_once,
        )

    def checks(
        self, rule: Rule, measured: Measurement, change: Change | None, levels: CorrectedTests
    ) -> tuple[list[Check], bool]:
        """Check the change under the rule, and the cases that are no longer decided.

        And whether the run that is compared with has nothing for the rule.
        """
        accepted = self.accepted
        if accepted.limit(rule.gate) is None or measured.value is None:
            return [], False
        outcome, is_lacking = Outcome.NOT_EVALUATED, False
        if accepted not in self.comparison.runs:
            reason = _NOTHING_THERE[accepted]
        elif accepted in self.comparison.unfit:
            outcome = Outcome.INCONCLUSIVE
            reason = f"the {accepted} was made under other conditions, see the differences"
        elif self.comparison.is_elsewhere(rule.metric, accepted):
            reason = (
                f"another embedder measured the documents of the {accepted}, and distances of two "
                f"embedders do not compare: {_RENEW[accepted]}, and name `measure_with` so that "
                "one embedder measures both from then on"
            )
        elif change is None:
            is_lacking, command = True, _COMMAND[accepted]
            lacks = f"the {accepted} has no comparable {rule.metric.id} for this rule"
            reason = f"{lacks}: {command} a run that has it with `fairgate baseline {command}`"
        else:
            planned = len(observe(rule.metric, self.tables[rule.suite], rule.where).keys)
            key = TestKey(accepted, rule.suite, rule.metric.column)
            checks = [check_change(change, rule.metric, planned, accepted)]
            if key in self.undecided:
                checks += check_undecided(self.undecided[key], levels[key], accepted)
            return checks, False
        return [Check(name=_CHECK[accepted], outcome=outcome, reason=reason)], is_lacking


def tests_since(
    accepted: AcceptedRun,
    rules: Sequence[Rule],
    tables: Mapping[str, Table],
    comparison: Comparison,
    seed: int,
) -> ChangeTests:
    """Prepare the tests of the change since this run."""
    prepared: dict[TestKey, PreparedRegression] = {}
    undecided: dict[TestKey, UndecidedChange | None] = {}
    for number, rule in enumerate(rules):
        if accepted.limit(rule.gate) is None:
            continue
        now, suite = tables[rule.suite], comparison.suite(rule.suite, accepted)
        prepared_rule = prepare_rule(rule, now, comparison, seed, accepted)
        if suite is None or prepared_rule is None or not prepared_rule.evidence.evaluated:
            continue
        prepared[TestKey(accepted, rule.suite, rule.position, number)] = prepared_rule
        key = TestKey(accepted, rule.suite, rule.metric.column)
        if key not in undecided:
            rows = comparison.rows(suite, now, accepted)
            undecided[key] = undecided_change(now, rows, rule.metric, seed)
    changes = {key: change for key, change in undecided.items() if change is not None}
    return ChangeTests(
        accepted=accepted, comparison=comparison, tables=tables, rules=prepared, undecided=changes
    )


def vanished_identities(
    rules: Sequence[ParityRule], plan: TestPlan, baseline: Baseline, accepted: AcceptedRun
) -> list[str]:
    """Return a line for each category or identity that only the baseline has.

    `accepted` says which of the two it is: baseline or anchor. A limit would hold for fewer, too.
    """
    lines: dict[str, None] = {}
    for rule in rules:
        kept_suite = baseline.suites.get(rule.suite)
        if kept_suite is None or rule.gate.advisory:
            continue
        table, where = kept_suite.table, rule.gate.where
        inside = {name: level for name, level in where.items() if name in table.dimensions}
        rows = table.slice_mask(inside) & demographic_rows(table)
        now = dimension_levels(plan, rule.suite, where)
        for name in ("category", "term"):
            for level in filter(None, table.levels(name, rows) if name in table.dimensions else ()):
                if level not in now.get(name, ()):
                    line = (
                        f"suite {rule.suite}: the {accepted} has {name} {level}, about which this "
                        f"run does not ask; {_RENEW[accepted]} without it"
                    )
                    lines[line] = None
    return list(lines)
