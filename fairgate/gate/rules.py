"""Expand the policy's gates into rules: a rule is a gate in one suite and slice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from fairgate.domain.cases import NO_RETRIEVAL, TestPlan
from fairgate.domain.outcomes import Better
from fairgate.domain.units import TOGETHER
from fairgate.metrics.attack_success_rate import UNREADABLE_NET
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import Metric
from fairgate.metrics.retriever_robustness import BANDS
from fairgate.policy.schema import MOST_UNREADABLE, GatePolicy, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A check of one slice of one suite."""

    gate: GatePolicy
    position: int
    """Number of the gate in the policy; those by default follow. `gate` in run.json."""
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

    @property
    def is_of_family(self) -> bool:
        """Return whether its bound is tested with those of other identities, and corrected.

        A signed value beyond neutral wording is as often above 0 as below where nobody is treated
        otherwise, so of many identities one is above any small limit by chance.
        """
        metric, gate = self.metric, self.gate
        is_signed = metric.row_limits[0] < 0 or metric.better is Better.TOWARD_ZERO
        is_signed = is_signed and "term" in metric.dimensions
        of_identity = not {"category", "term", "name"}.isdisjoint(self.where)
        return is_signed and of_identity and gate.evidence == "significant" and not gate.report


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
    for some identities are a finding, and would only make other rates look better.
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
    return any(unit.is_unproven and asked.items() <= unit.dimensions.items() for unit in units)


def _by_default(policy: Policy, plan: TestPlan) -> Iterator[GatePolicy]:
    """Yield the rule of each suite of which no gate is about all unreadable answers.

    Such a gate takes the default rule's place, which the report of a pull request lists where it is
    less strict. One with `where` leaves the others out, and `for_each` may find nothing there.
    """
    answered = {case.suite for case in plan.cases if case.is_answered}
    of_names = {unit.suite for unit in plan.outline if "name" in unit.dimensions}
    for suite in with_control_arm(policy, plan):
        if suite in answered and not any(
            gate.metric == UNREADABLE_NET.id
            and gate.suite in (None, suite)
            and not (gate.report or gate.where)
            and (suite not in of_names or gate.for_each == "term")
            and [*slices_of(gate, UNREADABLE_NET, plan, suite)]
            for gate in policy.gates
        ):
            # With names of every group in the control arm, refusals for one do not show in all.
            gate = default_gate(suite)
            yield gate.model_copy(update={"for_each": "term"}) if suite in of_names else gate


def default_gate(suite: str) -> GatePolicy:
    """Return the rule about all unreadable answers of a suite that no gate asks about them."""
    return GatePolicy(
        metric=UNREADABLE_NET.id, suite=suite, max=MOST_UNREADABLE, evidence="significant"
    )


def with_control_arm(policy: Policy, plan: TestPlan) -> list[str]:
    """Return the suites that ask neutral wording too, in the order of the policy."""
    found = {unit.suite for unit in plan.outline if unit.is_control}
    return [suite.id for suite in policy.suites if suite.id in found]


def idle_notices(policy: Policy, plan: TestPlan) -> list[str]:
    """Return a notice where a policy's own gates cannot fail a build."""
    if any(not gate.advisory and not gate.report for gate in policy.gates):
        return []
    why = "every rule of the policy is advisory or only reported"
    if any(_by_default(policy, plan)):
        return [f"only {UNREADABLE_NET.id}, which no policy need name, can fail this gate: {why}"]
    return [f"nothing can fail this gate: {why}"]


def sampled_notices(policy: Policy, temperature: float | None) -> list[str]:
    """Say where answers in sentences are drawn at a temperature, once each."""
    return [
        f"suite {suite.id}: answers are drawn at temperature {temperature:g}, one to each "
        "question: they differ by chance, and less is seen in their sentences (`fairgate power`); "
        "set `temperature: 0`, or `repeats: 3` in the suite"
        for suite in policy.suites
        if temperature and getattr(suite, "reads_sentences", False)
        if getattr(suite, "repeats", 1) == 1
    ]


def slices_of(
    gate: GatePolicy, metric: Metric, plan: TestPlan, suite: str
) -> Iterator[dict[str, str]]:
    """Yield the `where` of each rule that a gate makes in a suite; none where it has no cases."""
    levels = metric_levels(metric, plan, suite, gate.where)
    if not levels:
        return
    if metric.needs_documents:
        levels["setting"] = [s for s in levels.get("setting", ()) if s != NO_RETRIEVAL]
    if any(value not in levels.get(name, ()) for name, value in gate.where.items()):
        return
    if gate.for_each is None:
        yield dict(gate.where)
        return
    for level in levels.get(gate.for_each, ()):
        yield {**gate.where, gate.for_each: level}
