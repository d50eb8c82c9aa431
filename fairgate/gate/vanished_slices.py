"""Slices of the baseline that the run no longer has, whose rules would be dropped silently."""

from __future__ import annotations

from collections.abc import Iterator

from fairgate.domain.cases import TestPlan
from fairgate.gate.baseline import Baseline
from fairgate.gate.references import Reference
from fairgate.gate.rules import dimension_levels
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import demographic_rows
from fairgate.policy.schema import Policy

_WITHOUT = {
    Reference.BASELINE: "accept a baseline without it",
    Reference.ANCHOR: "pin an anchor without it",
}


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
