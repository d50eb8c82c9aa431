"""The change since an earlier run, baseline or anchor: a test for every rule, and its checks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import Change, Outcome
from fairgate.gate.bounds import Check
from fairgate.gate.check_change import check_change
from fairgate.gate.comparison import Comparison, change_of, prepare_rule
from fairgate.gate.references import Reference
from fairgate.gate.rules import Rule
from fairgate.gate.undecided import UndecidedChange, check_undecided, undecided_change
from fairgate.metrics.metric import observe
from fairgate.metrics.table import Table
from fairgate.stats.multiplicity import Corrected
from fairgate.stats.regression import PreparedRegression

Levels = Mapping[Hashable, Corrected]


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
