"""How a rule's cases are paired with the baseline's, and what the change between them is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fairgate.domain.cases import TestPlan
from fairgate.domain.measurements import Better
from fairgate.domain.outcomes import Change, IdentityFinding
from fairgate.gate.baseline import Baseline, BaselineSuite, Reference, comparable_rows
from fairgate.gate.rules import Rule, dimension_levels
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import demographic_rows, observe
from fairgate.metrics.table import Table
from fairgate.policy.schema import Policy, RegressionPolicy
from fairgate.stats.observations import PairedObservations, pair_by_key
from fairgate.stats.regression import (
    PreparedRegression,
    RegressionEvidence,
    RegressionSettings,
    Worse,
    prepare_regression,
)

_DECIMALS = 6
_WORSE = {
    Better.LOWER: Worse.HIGHER,
    Better.HIGHER: Worse.LOWER,
    Better.TOWARD_ZERO: Worse.ABSOLUTE,
}
RowsKey = tuple[int, frozenset[str], tuple[float, float]]
"""Identity of a kept suite, and what of this run's table its rows take over."""
_WITHOUT = {
    Reference.BASELINE: "accept a baseline without it",
    Reference.ANCHOR: "pin an anchor without it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What rules are compared with beside their bounds."""

    baseline: Baseline | None
    contents: Mapping[str, Mapping[str, str]]
    """Suite to pair key to content hash of this run: which of the baseline's cases still count."""
    is_comparable: bool = True
    """False where what must match differs: no regression rule is judged then."""
    identities: Sequence[IdentityFinding] = ()
    anchor: Baseline | None = None
    is_anchor_comparable: bool = True
    """False where what must match differs from the anchor: no budget is judged then."""
    known_rows: dict[RowsKey, Table] = field(default_factory=dict, repr=False, compare=False)
    """A cache: the rows of a kept run that can be compared."""

    def to(self, reference: Reference) -> Comparison:
        """Return the comparison with one of the two runs, as if it were the baseline."""
        if reference is Reference.BASELINE:
            return self
        return replace(self, baseline=self.anchor, is_comparable=self.is_anchor_comparable)

    def suite(self, name: str) -> BaselineSuite | None:
        """Return the baseline's suite, where there is one that can be compared."""
        usable = self.baseline if self.is_comparable else None
        return usable.suites.get(name) if usable else None

    def rows(self, suite: BaselineSuite, now: Table) -> Table:
        """Return the rows of a kept run's suite whose cases are still asked as they were."""
        key = id(suite), now.advisory, now.bands
        if key not in self.known_rows:
            self.known_rows[key] = comparable_rows(now, suite, self.contents[suite.table.suite])
        return self.known_rows[key]

    def on_base_cases(self, now: Table) -> list[tuple[str, Table]]:
        """Return this run's cases as a bound must hold on them too, and what each time is meant.

        Those that the baseline has; then, with the baseline's verdicts, those besides that this run
        no longer asks. Nothing where the cases are the same, or there is no baseline.
        """
        suite = self.suite(now.suite)
        if suite is None:
            return []
        asked = self.contents[now.suite]
        is_shared = [suite.contents.get(key, "") == asked[key] for key in now.keys]
        is_gone = [asked.get(key) != suite.contents[key] for key in suite.table.keys]
        shared = now.of_rows(np.flatnonzero(is_shared))
        left_out = suite.table.of_rows(np.flatnonzero(is_gone))
        found = []
        if not all(is_shared):
            found.append((f"on the {len(shared.keys):,} cases that the baseline has too", shared))
        if any(is_gone):
            words = f"with the {len(left_out.keys):,} cases of the baseline that are left out"
            found.append((words, shared.followed_by(left_out)))
        return found

    def identity(self, rule: Rule) -> IdentityFinding | None:
        """Return the finding of an identity rule; None where its value is only printed."""
        if not rule.metric.compares_terms or rule.gate.report:
            return None
        return next(
            (
                found
                for found in self.identities
                if (found.metric, found.suite, found.where)
                == (rule.metric.id, rule.suite, rule.where)
            ),
            None,
        )

    def known_sd(self, rule: Rule) -> float:
        """Return the SD of the per-source change that the policy declares or burn-in measured."""
        declared = rule.gate.regression.sd if rule.gate.regression else None
        kept = (run for run in (self.baseline, self.anchor) if run is not None)
        measured = [run.sd_of(rule.metric.id, rule.suite, rule.where) for run in kept]
        return max(declared or 0.0, *measured, 0.0)


def prepare_rule(
    rule: Rule,
    now: Table,
    comparison: Comparison,
    seed: int,
    reference: Reference = Reference.BASELINE,
) -> PreparedRegression | None:
    """Pair the rule's cases with the baseline's; None where there is nothing to pair."""
    suite = comparison.to(reference).suite(rule.suite)
    column = rule.metric.column
    if suite is None or column in now.not_evaluated or column in suite.table.not_evaluated:
        return None
    if column not in suite.table.values:
        return None
    base = comparison.rows(suite, now)
    pairs = pair_by_key(
        observe(rule.metric, now, rule.where), observe(rule.metric, base, rule.where)
    )
    settings = RegressionSettings(
        worse=_WORSE[rule.metric.better],
        margin=_asked(rule, reference).margin,
        strict=_asked(rule, reference).strict,
        sd_floor=comparison.known_sd(rule),
    )
    return prepare_regression(pairs, settings, np.random.default_rng(seed))


def _asked(rule: Rule, reference: Reference) -> RegressionPolicy:
    return reference.asked(rule.gate) or RegressionPolicy()


def change_of(
    rule: Rule,
    evidence: RegressionEvidence,
    p_corrected: float,
    pairs: PairedObservations,
    reference: Reference = Reference.BASELINE,
) -> Change:
    """Return the change of a rule at its corrected level, as records and reports know it."""
    regression = _asked(rule, reference)
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
        pairs=evidence.n_pairs,
        minimum_detectable=_rounded(evidence.detectable),
        margin=regression.margin,
        detect=regression.detect,
        sources_needed=needed,
        sign_changed=evidence.sign_changed,
        method=evidence.method.value,
        decided_once=pairs.decided_once,
    )


def _rounded(value: float) -> float:
    return round(float(value), _DECIMALS) + 0.0


def vanished_slices(
    policy: Policy,
    plan: TestPlan,
    baseline: Baseline,
    reference: Reference = Reference.BASELINE,
) -> list[str]:
    """Return a line for each slice of a rule's `for_each` that only the baseline has.

    `reference` says which of the two it is: baseline or anchor.
    """
    return list(dict.fromkeys(_vanished(policy, plan, baseline, reference)))


def _vanished(
    policy: Policy, plan: TestPlan, baseline: Baseline, reference: Reference
) -> Iterator[str]:
    for gate in policy.gates:
        metric = BY_ID.get(gate.metric)
        is_asked = reference.asked(gate) is not None
        if reference is Reference.BASELINE:
            is_asked = not (gate.report or gate.advisory)  # a bound would hold for fewer, too
        if metric is None or gate.for_each is None or not is_asked:
            continue
        for suite in policy.suites:
            known = baseline.suites.get(suite.id)
            if known is None or suite.kind != metric.suite_kind:
                continue
            table = known.table
            if gate.suite not in (None, suite.id) or gate.for_each not in table.dimensions:
                continue
            where = {name: level for name, level in gate.where.items() if name in table.dimensions}
            then = table.levels(gate.for_each, table.slice_mask(where) & demographic_rows(table))
            now = dimension_levels(plan, suite.id, gate.where).get(gate.for_each, ())
            for level in then:
                if level and level not in now:
                    yield (
                        f"suite {suite.id}: the {reference} has {gate.for_each} {level}, about "
                        f"which this run does not ask; {_WITHOUT[reference]}"
                    )
