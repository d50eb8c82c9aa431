"""Expand the policy's gates into rules, and report gates that no suite can answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from fairgate.domain.cases import TestPlan
from fairgate.domain.items import NO_RETRIEVAL
from fairgate.domain.units import TOGETHER
from fairgate.metrics.attack_success_rate import UNREADABLE_NET
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import Metric
from fairgate.metrics.retriever_robustness import BANDS
from fairgate.metrics.social_bias import evaluated_without_documents
from fairgate.policy.gates import MOST_UNREADABLE, GatePolicy
from fairgate.policy.schema import Policy

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A check of one slice of one suite."""

    gate: GatePolicy
    position: int
    metric: Metric
    suite: str
    where: Mapping[str, str]
    by_default: bool = False
    of_advisory: bool = False
    """Whether `for_each: relation` made it for a relation that is advisory by default."""
    of_unproven: bool = False
    """Whether it counts verdicts of a judge whose record does not suffice."""

    @property
    def advisory(self) -> bool:
        """Return whether it reports and never fails the build."""
        return self.gate.advisory or self.of_advisory or self.of_unproven


def dimension_levels(
    plan: TestPlan, suite: str, where: Mapping[str, str] | None = None
) -> dict[str, list[str]]:
    """Return the values that each dimension takes in a suite, in the order of the plan.

    With `where`, those that it takes within that slice: the terms of one category, say.
    """
    units = [unit for unit in plan.outline if unit.suite == suite and not unit.is_control]
    relations = list(dict.fromkeys(u.dimensions.get("relation", "") for u in units))
    if "relation" not in (where or {}):
        units = [unit for unit in units if not unit.advisory] or units
    names = tuple(units[0].dimensions) if units else ()
    combinations = dict.fromkeys(tuple(unit.dimensions.values()) for unit in units)
    rows = [dict(zip(names, values, strict=True)) for values in combinations]
    inside = [row for row in rows if all(row.get(k, v) == v for k, v in (where or {}).items())]
    levels = {name: list(dict.fromkeys(row[name] for row in inside if row[name])) for name in names}
    if "relation" in levels and not where:
        levels["relation"] = relations
    return {**levels, "band": list(BANDS)}


def metric_levels(
    metric: Metric, plan: TestPlan, suite: str, where: Mapping[str, str] | None = None
) -> dict[str, list[str]]:
    """Return the values that each dimension takes among the units that a metric judges."""
    if not metric.relation:
        return dimension_levels(plan, suite, where)
    units = [
        unit
        for unit in plan.outline
        if fnmatchcase(unit.dimensions.get("relation", ""), metric.relation)
        and (TOGETHER in unit.dimensions["category"] or not metric.of_combinations)
    ]
    refused = (each for each in plan.rejected if each.suite == suite)
    asked = any(unit.suite == suite and not unit.is_control for unit in units)
    if not asked and not any(fnmatchcase(each.relation, metric.relation) for each in refused):
        return {}
    return dimension_levels(replace(plan, units=units), suite, where)


def expand_rules(policy: Policy, plan: TestPlan) -> list[Rule]:
    """Return the rules of all gates, in the order of the policy; unusable gates give none.

    Suites with a control arm that no gate asks about `unreadable/net` get that rule last: refusals
    for some identities are a finding (SPEC 3), and would only make other rates look better.
    """
    rules: list[Rule] = []
    advisory = {unit.dimensions["relation"] for unit in plan.outline if unit.advisory}
    for position, gate in enumerate([*policy.gates, *_by_default(policy, plan)]):
        metric = BY_ID.get(gate.metric)
        if metric is None:
            continue
        for suite in policy.suites:
            if gate.suite not in (None, suite.id) or suite.kind != metric.suite_kind:
                continue
            rules.extend(
                Rule(
                    gate=gate,
                    position=position,
                    metric=metric,
                    suite=suite.id,
                    where=where,
                    by_default=position >= len(policy.gates),
                    of_unproven=rests_on_unproven(plan, suite.id, where),
                    of_advisory=gate.for_each == "relation" and where["relation"] in advisory,
                )
                for where in slices_of(gate, metric, plan, suite.id)
            )
    return rules


def rests_on_unproven(plan: TestPlan, suite: str, where: Mapping[str, str]) -> bool:
    """Return whether a slice counts a pair that a judge without a sufficient record decides.

    Advisory relations count where the slice names them, and in suites that have no others.
    """
    units = [unit for unit in plan.outline if unit.suite == suite and not unit.is_control]
    if not any(unit.is_unproven for unit in units):
        return False
    if "relation" not in where:
        units = [unit for unit in units if not unit.advisory] or units
    asked = {name: value for name, value in where.items() if name in units[0].dimensions}
    return any(
        unit.is_unproven
        for unit in units
        if all(unit.dimensions.get(name) == value for name, value in asked.items())
    )


def _by_default(policy: Policy, plan: TestPlan) -> Iterator[GatePolicy]:
    for suite in with_control_arm(policy, plan):
        if not any(_asks_whole_suite(gate, plan, suite) for gate in policy.gates):
            yield GatePolicy(metric=UNREADABLE_NET.id, suite=suite, max=MOST_UNREADABLE)


def _asks_whole_suite(gate: GatePolicy, plan: TestPlan, suite: str) -> bool:
    """Return whether a gate is about the unreadable answers of all of a suite.

    It takes the default rule's place, which the report of a pull request lists where it is less
    strict. One with `where` leaves the others out, and `for_each` may find nothing there.
    """
    return (
        gate.metric == UNREADABLE_NET.id
        and gate.suite in (None, suite)
        and not gate.report
        and not gate.where
        # The slice of a whole suite is empty, so it is counted and not asked whether it is true.
        and any(True for _ in slices_of(gate, UNREADABLE_NET, plan, suite))
    )


def with_control_arm(policy: Policy, plan: TestPlan) -> list[str]:
    """Return the suites that ask neutral wording too, in the order of the policy."""
    found = {unit.suite for unit in plan.outline if unit.is_control}
    return [suite.id for suite in policy.suites if suite.id in found]


def idle_notices(policy: Policy, plan: TestPlan) -> list[str]:
    """Return what a reader must know of a policy whose own gates cannot fail a build."""
    if any(not gate.advisory and not gate.report for gate in policy.gates):
        return []
    why = "every rule of the policy is advisory or only reported"
    if any(_by_default(policy, plan)):
        return [f"only {UNREADABLE_NET.id}, which no policy need name, can fail this gate: {why}"]
    return [f"nothing can fail this gate: {why}"]


def slices_of(
    gate: GatePolicy, metric: Metric, plan: TestPlan, suite: str
) -> Iterator[dict[str, str]]:
    """Yield the `where` of each rule that a gate makes in a suite; none where it has no cases."""
    levels = metric_levels(metric, plan, suite, gate.where)
    if not levels:
        return
    if metric.suite_kind == "bbq" and not evaluated_without_documents(metric):
        levels["setting"] = [s for s in levels.get("setting", ()) if s != NO_RETRIEVAL]
    if any(value not in levels.get(name, ()) for name, value in gate.where.items()):
        return
    if gate.for_each is None:
        yield dict(gate.where)
        return
    for level in levels.get(gate.for_each, ()):
        yield {**gate.where, gate.for_each: level}
