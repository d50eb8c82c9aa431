"""The change since an earlier run, baseline or anchor: a test for every rule, and its checks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairgate.domain.measurements import Better, Measurement
from fairgate.domain.outcomes import Change, Outcome
from fairgate.domain.units import Reason, counted
from fairgate.domain.wording import difference, probability, signed, value
from fairgate.gate.baseline import Reference
from fairgate.gate.bounds import Check
from fairgate.gate.comparison import Comparison, change_of, prepare_rule
from fairgate.gate.rules import Rule
from fairgate.metrics.metric import Metric, observe
from fairgate.metrics.table import Table
from fairgate.stats.multiplicity import Corrected
from fairgate.stats.observations import Observations, pair_by_key
from fairgate.stats.regression import (
    PreparedRegression,
    RegressionEvidence,
    RegressionSettings,
    prepare_regression,
)

Levels = Mapping[Hashable, Corrected]
HALF = 0.5
"""Share of a slice that must be decided, and of a rule's cases that must be comparable."""

_WITH_THEM = {
    Reference.BASELINE: "accept a baseline that has them",
    Reference.ANCHOR: "pin an anchor that has them",
}
MARGIN = 0.02
"""Growth of the undecided share that is accepted, as a regression's default margin."""
ACCEPTED = {Reference.BASELINE: MARGIN, Reference.ANCHOR: 2 * MARGIN}
"""Growth that is accepted since each of the runs that are compared with."""


def check_change(
    change: Change, metric: Metric, asked: int, reference: Reference = Reference.BASELINE
) -> Check:
    """Fail only if significant and above the margin; pass only if a change would have shown.

    `asked` is how many cases the rule has in this run, in the baseline or not; `reference` says
    since which run the change is, and so what its limit is called.
    """
    moved = _moved(change, metric, reference)
    if change.significant and change.change > change.margin:
        return Check(
            outcome=Outcome.FAIL,
            reason=f"worse, {moved}: more than the {reference.limit} "
            f"{_size(change.margin, metric)} and more "
            f"than chance explains ({probability(change.p_corrected)})",
        )
    if change.pairs < HALF * asked:
        return Check(
            outcome=Outcome.INCONCLUSIVE,
            reason=f"only {change.pairs} of {asked} cases can be compared, the others are not in "
            f"the {reference} or were not decided in both runs; {_WITH_THEM[reference]}",
        )
    if change.upper <= change.margin or change.minimum_detectable <= change.detect:
        return Check(outcome=Outcome.PASS, reason=_accepted(change, moved, reference))
    return Check(
        outcome=Outcome.INCONCLUSIVE,
        reason=f"changed {moved}, but this suite {_blind(change, metric)}",
    )


def _accepted(change: Change, moved: str, reference: Reference) -> str:
    if change.discordant == 0:
        return "unchanged" if reference is Reference.BASELINE else "unchanged since the anchor"
    if change.upper < 0:
        return f"better, {moved}"
    return f"changed {moved}, within the {reference.limit} or chance"


def _blind(change: Change, metric: Metric) -> str:
    """Describe which changes the suite could not detect, and what would help."""
    many = "1 source" if change.sources == 1 else f"{change.sources} sources"
    seen = (
        f"could see only changes of at least {_size(change.minimum_detectable, metric)}"
        if math.isfinite(change.minimum_detectable)
        else f"is too small to see any change ({many})"
    )
    enough = f"; {change.sources_needed} sources would do" if change.sources_needed else ""
    few = ""
    if change.changed_sources < change.changed_sources_needed and change.discordant:
        few = (
            f"; {change.changed_sources} sources changed, and fewer than "
            f"{change.changed_sources_needed} can never be significant"
        )
    return f"{seen}{enough}{few}"


def _moved(change: Change, metric: Metric, reference: Reference) -> str:
    """Describe how the value itself moved, not the worsening: the sign is that of the tables."""
    ends = (change.base, change.now)
    base, now = map(abs, ends) if metric.better is Better.TOWARD_ZERO else ends
    unit = " points" if metric.is_rate else ""
    shown = difference(base, now, is_rate=metric.is_rate)
    was, is_now = (value(each, is_rate=metric.is_rate) for each in (change.base, change.now))
    turned = change.sign_changed and metric.better is Better.TOWARD_ZERO
    side = f" (and it is on the other side of 0 now, {is_now})" if turned else ""
    size = " in size" if metric.better is Better.TOWARD_ZERO else ""
    return f"by {shown}{unit}{size} against the {reference}'s {was}{side}"


def _size(number: float, metric: Metric) -> str:
    return value(number, is_rate=metric.is_rate).replace(" %", " points")


@dataclass(frozen=True, slots=True, kw_only=True)
class UndecidedChange:
    """How the share of undecided cases of one column moved, both arms, on the common cases.

    A regression rule compares the cases that both runs decided. A system that stops answering drops
    out of that comparison instead of failing it, so the share of undecided cases is compared too,
    with the same test, and a worsening is gated as `unreadable` (SPEC 8).
    """

    evidence: RegressionEvidence
    newly: Mapping[Reason, int]
    """Cases that the baseline decided and the run does not, by reason."""
    has_controls: bool = False
    """Whether neutral wording is among the cases."""

    @property
    def p_value(self) -> float:
        """Return the one-sided p value of "no more cases are undecided"."""
        return self.evidence.p_value


def as_often_as_neutral(own: Sequence[bool], neutral: Sequence[bool]) -> float:
    """Return how many of the cases flagged in `own` neutral wording has as often.

    They are unstable answers, which a real model gives to everybody: so many leave the cases of
    which `min_decided` is asked, and what is more counts against it. None without neutral cases.
    """
    return min(float(sum(own)), sum(neutral) / len(neutral) * len(own)) if len(neutral) else 0.0


def undecided_change(now: Table, base: Table, column: str, seed: int) -> UndecidedChange | None:
    """Return the change; None where no case became decided or undecided, so nothing is tested.

    Left out are quarantined cases (the policy says so itself, and the report counts them) and cases
    that nobody asked or recorded: those are missing evidence, which ends with exit code 5.
    """
    left_out = {
        now.keys[row]
        for row, why in now.reasons.get(column, {}).items()
        if why in (Reason.QUARANTINED, Reason.MISSING)
    }
    pairs = pair_by_key(
        _without(_flags(now, column), left_out), _without(_flags(base, column), left_out)
    )
    if not pairs.n_discordant:
        return None
    prepared = prepare_regression(
        pairs, RegressionSettings(margin=MARGIN), np.random.default_rng(seed)
    )
    if not prepared.evidence.evaluated:
        return None
    rows = {key: row for row, key in enumerate(now.keys)}
    gone = np.flatnonzero(pairs.now.values > pairs.base.values).tolist()
    why = now.reasons.get(column, {})
    newly = Counter(Reason(why[rows[pairs.now.keys[place]]]) for place in gone)
    controls = bool(now.control.any())
    return UndecidedChange(evidence=prepared.evidence, newly=newly, has_controls=controls)


def _flags(table: Table, column: str) -> Observations:
    return Observations(
        keys=list(table.keys),
        clusters=table.clusters,
        arms=np.zeros(len(table.keys), dtype=np.int8),
        values=np.isnan(table.values[column]).astype(np.float64),
        weights=(1.0,),
        n_clusters=len(table.cluster_names),
    )


def _without(observed: Observations, keys: set[str]) -> Observations:
    if not keys:
        return observed
    rows = np.asarray([key not in keys for key in observed.keys], dtype=bool)
    return replace(
        observed,
        keys=[key for key in observed.keys if key not in keys],
        clusters=observed.clusters[rows],
        arms=observed.arms[rows],
        values=observed.values[rows],
    )


def check_undecided(
    change: UndecidedChange, corrected: Corrected, reference: Reference = Reference.BASELINE
) -> Check | None:
    """Fail where significantly more cases are undecided, by more than is accepted; else None."""
    grown = change.evidence.worsening
    if not corrected.rejected or grown <= ACCEPTED[reference]:
        return None
    both = ", neutral wording included" if change.has_controls else ""
    return Check(
        outcome=Outcome.FAIL,
        reason=f"{signed(grown, is_rate=True)} points of the cases are no longer decided: "
        f"{sum(change.newly.values())} that the {reference} decided{both} "
        f"({counted(change.newly)}; {probability(corrected.adjusted_p)}); "
        "a comparison of the rest would hide them",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is tested against one earlier run, before the levels of the whole family are known."""

    reference: Reference
    comparison: Comparison
    """With this run as what is compared with."""
    tables: Mapping[str, Table]
    prepared: Mapping[int, PreparedRegression]
    """Position of a rule to its comparison."""
    undecided: Mapping[tuple[str, str], UndecidedChange]
    """Suite and column to the test for more undecided cases."""

    def p_values(self) -> dict[Hashable, float]:
        """Return the uncorrected p value of every test, for the family that is corrected."""
        found: dict[Hashable, float] = {
            (self.reference, number): one.p_value for number, one in self.prepared.items()
        }
        return found | {(self.reference, *at): one.p_value for at, one in self.undecided.items()}

    def change(self, number: int, rule: Rule, levels: Levels) -> Change | None:
        """Return how a rule's value moved, at its corrected level; None where nothing is there."""
        if number not in self.prepared:
            return None
        found, level = self.prepared[number], levels[self.reference, number]
        evidence = found.at_level(level.level)
        return change_of(rule, evidence, level.adjusted_p, found.pairs, self.reference)

    def checks(
        self, rule: Rule, measured: Measurement, change: Change | None, levels: Levels
    ) -> list[tuple[str, Check]]:
        """Return what the rule says of the change, and of cases that are no longer decided."""
        if self.reference.asked(rule.gate) is None or measured.value is None:
            return []
        checks = [(self.reference.check, self._check(rule, change))]
        at = (rule.suite, rule.metric.column)
        if change is not None and at in self.undecided:
            level = levels[self.reference, *at]
            unreadable = check_undecided(self.undecided[at], level, self.reference)
            checks += [("unreadable", unreadable)] if unreadable else []
        return checks

    def is_incomplete(self, rule: Rule, measured: Measurement, change: Change | None) -> bool:
        """Return whether the run that is compared with has nothing for the rule."""
        return (
            self.reference.asked(rule.gate) is not None
            and measured.value is not None
            and change is None
            and self.comparison.baseline is not None
            and self.comparison.is_comparable
        )

    def _check(self, rule: Rule, change: Change | None) -> Check:
        reference = self.reference
        if self.comparison.baseline is None:
            return Check(outcome=Outcome.NOT_EVALUATED, reason=reference.missing)
        if not self.comparison.is_comparable:
            reason = f"the {reference} was made under other conditions, see the differences"
            return Check(outcome=Outcome.INCONCLUSIVE, reason=reason)
        if change is None:
            return Check(
                outcome=Outcome.NOT_EVALUATED,
                reason=f"the {reference} has no comparable {rule.metric.id} for this rule: "
                f"{reference.remedy}",
            )
        asked = len(observe(rule.metric, self.tables[rule.suite], rule.where).keys)
        return check_change(change, rule.metric, asked, reference)


def changes_since(
    reference: Reference,
    rules: Sequence[Rule],
    tables: Mapping[str, Table],
    comparison: Comparison,
    seed: int,
) -> Changes:
    """Test every rule that asks something of the change since this run."""
    prepared = {
        number: found
        for number, rule in enumerate(rules)
        if reference.asked(rule.gate) is not None
        and (found := prepare_rule(rule, tables[rule.suite], comparison, seed, reference))
        is not None
        and found.evidence.evaluated
    }
    against = comparison.to(reference)
    return Changes(
        reference=reference,
        comparison=against,
        tables=tables,
        prepared=prepared,
        undecided=_undecided([rules[n] for n in prepared], tables, against, seed),
    )


def _undecided(
    rules: Sequence[Rule], tables: Mapping[str, Table], comparison: Comparison, seed: int
) -> dict[tuple[str, str], UndecidedChange]:
    """Test once for each suite and column that a rule rests on."""
    found = {}
    for rule in rules:
        where, suite = (rule.suite, rule.metric.column), comparison.suite(rule.suite)
        if where in found or suite is None:
            continue
        now = tables[rule.suite]
        base = comparison.rows(suite, now)
        change = undecided_change(now, base, rule.metric.column, seed)
        if change is not None:
            found[where] = change
    return found
