"""Expand the policy's gates into rules: what each asks of a suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from fairgate.domain.cases import NO_RETRIEVAL, TestPlan
from fairgate.domain.outcomes import Slice, Subject, slice_of
from fairgate.domain.parity import Against, rule_name
from fairgate.domain.units import TOGETHER
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import Metric
from fairgate.metrics.parity import OUTCOMES, ParityOutcome
from fairgate.metrics.retriever_robustness import BANDS
from fairgate.policy.schema import ALL, AnyGate, GatePolicy, ParityPolicy, Policy
from fairgate.suites.suite import Suite

_DIFF_BIAS, _FALL = 0.10, 0.05
"""Standard limits of question items: of Diff-Bias in size, of a worsening since the baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A bound or regression of a metric in one slice of one suite."""

    gate: GatePolicy
    position: int
    """Number of the gate in the policy. `gate` in run.json."""
    metric: Metric
    suite: str
    where: Mapping[str, str]
    of_unproven: bool = False
    """Whether it counts verdicts of a judge whose record does not suffice."""

    @property
    def advisory(self) -> bool:
        """Return whether it reports and never fails the build."""
        return self.gate.advisory or self.of_unproven

    @property
    def slice(self) -> Slice:
        """What it judges."""
        return slice_of(self.metric.id, self.suite, self.where)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityRule:
    """One question about one outcome of one suite."""

    gate: ParityPolicy
    position: int
    outcome: ParityOutcome
    suite: str
    against: Against

    @property
    def name(self) -> str:
        """Its name in waivers, records and reports: `parity/answers/baseline`."""
        return rule_name(self.outcome.id, self.against)

    @property
    def limit(self) -> float:
        """Largest difference, or worsening of one, that is accepted."""
        gate, outcome = self.gate, self.outcome
        if self.against in (Against.CONTROL, Against.REFERENCE):
            return outcome.max if gate.max is None else gate.max
        if self.against is Against.ANCHOR and gate.budget is not None:
            return gate.budget
        return outcome.regression if gate.regression is None else gate.regression

    @property
    def bounds(self) -> dict[str, float]:
        """The limit, under the name of its key in the policy."""
        names = {Against.BASELINE: "regression", Against.ANCHOR: "budget"}
        return {names.get(self.against, "max"): self.limit}

    @property
    def slice(self) -> Slice:
        """What it judges."""
        return slice_of(self.name, self.suite, self.gate.where)


def standard_gates(policy: Policy) -> list[AnyGate]:
    """Return the gates of a policy that names none: parity of all outcomes, bounds of items."""
    gates: list[AnyGate] = []
    if any(suite.kind != "bbq" for suite in policy.suites):
        gates.append(ParityPolicy(parity=ALL))
    for suite in policy.suites:
        settings = getattr(suite, "settings", ()) if suite.kind == "bbq" else ()
        name = suite.id if len(policy.suites) > 1 else None
        for setting in settings:
            where = {"setting": setting} if len(settings) > 1 else {}
            for context in ("ambiguous", "disambiguated"):
                bias, accuracy = (
                    GatePolicy(
                        metric=f"{metric}/{context}", suite=name, where=where, regression=_FALL
                    )
                    for metric in ("diff-bias", "accuracy")
                )
                limit = {"max_abs": _DIFF_BIAS, "evidence": "significant"}
                gates += [bias.model_copy(update=limit), accuracy]
    return gates


def outcomes_of(suite: Suite, against: Against = Against.CONTROL) -> list[ParityOutcome]:
    """Return the outcomes that a suite has: columns, and control prompts to compare with."""
    if suite.kind == "bbq" or not suite.has_control_arm:
        return []
    return [
        outcome
        for outcome in OUTCOMES
        if any(
            column.column in suite.columns and not suite.lacks(column.column)
            for column in outcome.asked(against)
        )
    ]


def parity_rules(policy: Policy, suites: Mapping[str, Suite]) -> list[ParityRule]:
    """Return the questions about outcomes, suite by suite.

    Of entries about the same slice the most particular counts: one that names the outcome before
    `all`, then one that names the suite.
    """
    return [
        ParityRule(gate=gate, position=position, outcome=outcome, suite=suite.id, against=against)
        for suite in suites.values()
        for outcome in OUTCOMES
        for position, gate in _most_particular(policy, outcome, suite)
        for against in Against
        if outcome in outcomes_of(suite, against)
        and (against is not Against.ANCHOR or gate.budget is not None)
        and (against is not Against.REFERENCE or policy.reference is not None)
    ]


def _most_particular(
    policy: Policy, outcome: ParityOutcome, suite: Suite
) -> list[tuple[int, ParityPolicy]]:
    def particular(gate: ParityPolicy) -> tuple[bool, bool]:
        return gate.parity != ALL, gate.suite is not None

    entries = [
        (position, gate)
        for position, gate in policy.parities
        if gate.suite in (None, suite.id) and gate.parity in (ALL, outcome.id)
    ]
    return [
        (position, gate)
        for position, gate in entries
        if particular(gate) == max(particular(e) for _, e in entries if e.where == gate.where)
    ]


def dimension_levels(
    plan: TestPlan, suite: str, where: Mapping[str, str] | None = None
) -> dict[str, list[str]]:
    """Return the values that each dimension takes in a suite, in the order of the plan.

    With `where`, those that it takes within that slice: the terms of one category, say.
    """
    return {**asked_levels(plan, suite, where), "band": list(BANDS)}


def asked_levels(
    plan: TestPlan, suite: str, where: Mapping[str, str] | None = None
) -> dict[str, list[str]]:
    """Return the same of the dimensions that cases have; a band is one of their values."""
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
    return levels


def metric_levels(
    metric: Metric, plan: TestPlan, suite: str, where: Mapping[str, str] | None = None
) -> dict[str, list[str]]:
    """Return the values that each dimension takes among the units that a metric judges."""
    if not metric.needs.relation:
        return dimension_levels(plan, suite, where)
    units = [
        unit
        for unit in plan.outline
        if fnmatchcase(unit.dimensions.get("relation", ""), metric.needs.relation)
        and (TOGETHER in unit.dimensions["category"] or not metric.of_combinations)
    ]
    refused = (each for each in plan.rejected if each.suite == suite)
    asked = any(unit.suite == suite and not unit.is_control for unit in units)
    if not asked and not any(fnmatchcase(each.relation, metric.needs.relation) for each in refused):
        return {}
    return dimension_levels(replace(plan, units=units), suite, where)


def expand_rules(policy: Policy, plan: TestPlan) -> list[Rule]:
    """Return the rules about metrics, in the order of the policy; unusable gates give none."""
    return [
        Rule(
            gate=gate,
            position=position,
            metric=metric,
            suite=suite.id,
            where=dict(gate.where),
            of_unproven=rests_on_unproven(plan, suite.id, gate.where),
        )
        for position, gate in policy.bounds
        if (metric := METRICS.get(gate.metric)) is not None
        for suite in policy.suites
        if gate.suite in (None, suite.id)
        and suite.kind == metric.units.suite_kind
        and has_slice(gate, metric, plan, suite.id)
    ]


def has_slice(gate: GatePolicy, metric: Metric, plan: TestPlan, suite: str) -> bool:
    """Return whether a suite has cases in the slice of a gate."""
    levels = metric_levels(metric, plan, suite, gate.where)
    if metric.needs.documents and levels:
        levels["setting"] = [s for s in levels.get("setting", ()) if s != NO_RETRIEVAL]
    return bool(levels) and all(v in levels.get(name, ()) for name, v in gate.where.items())


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


def with_control_arm(policy: Policy, plan: TestPlan) -> list[str]:
    """Return the suites that ask control prompts too, in the order of the policy."""
    found = {unit.suite for unit in plan.outline if unit.is_control}
    return [suite.id for suite in policy.suites if suite.id in found]


def idle_notices(policy: Policy) -> list[str]:
    """Return a notice where a policy's gates cannot fail a build."""
    if any(not gate.advisory and not getattr(gate, "report", False) for gate in policy.gates):
        return []
    return ["nothing can fail this gate: every rule of the policy is advisory or only reported"]


def about_documents(policy: Policy) -> list[str]:
    """Return the rules that a policy names and that have no value without a system's documents."""
    names = []
    for gate in policy.gates:
        named = f"parity: {gate.parity}" if isinstance(gate, ParityPolicy) else gate.metric
        metric = None if isinstance(gate, ParityPolicy) else METRICS.get(gate.metric)
        if named == "parity: documents" or (
            metric and metric.about is Subject.DOCUMENTS and not metric.units.are_items
        ):
            names.append(named)
    return list(dict.fromkeys(names))


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
