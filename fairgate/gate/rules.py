"""Expand the policy's gates into rules, and report gates that no suite can answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from fairgate.domain.cases import NO_RETRIEVAL, TestPlan
from fairgate.domain.outcomes import Better
from fairgate.domain.units import TOGETHER
from fairgate.domain.wording import listed, quoted, suggestion
from fairgate.metrics.attack_success_rate import UNREADABLE_NET
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import Metric
from fairgate.metrics.retriever_robustness import BANDS
from fairgate.metrics.social_bias import compares_settings
from fairgate.policy.schema import MOST_UNREADABLE, GatePolicy, Policy
from fairgate.policy.yaml_text import YamlFault, YamlPath


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


def unknown_metrics(metrics: Sequence[object]) -> Iterator[YamlFault]:
    """Yield every metric of the gates, in their order, that does not exist; only texts count.

    Needs neither plan nor valid policy, so it is told beside missing files and malformed values.
    """
    for position, metric in enumerate(metrics):
        if isinstance(metric, str) and metric not in BY_ID:
            hint = suggestion(metric, BY_ID.ids)
            yield ("gates", position, "metric"), f"unknown metric {quoted(metric)}; {hint}"


def rule_problems(
    policy: Policy, plan: TestPlan, lost: Collection[str] = ()
) -> Iterator[YamlFault]:
    """Yield (path in the policy, message) for every gate that no suite can answer.

    Of gates about suites that are `lost`, or about all while some are, only what no suite answers.
    """
    suites = [suite.id for suite in policy.suites]
    for position, gate in enumerate(policy.gates):
        path: YamlPath = ("gates", position)
        metric = BY_ID.get(gate.metric)
        if metric is None:
            continue
        if lost and (gate.suite is None or gate.suite in lost):
            yield from _question_problems(path, gate, metric)
            continue
        if gate.suite is not None and gate.suite not in suites:
            yield (
                (*path, "suite"),
                f"unknown suite {quoted(gate.suite)}; {suggestion(gate.suite, suites)}",
            )
            continue
        problems = list(_slice_problems(path, gate, metric, policy, plan))
        yield from problems
        asked = (s.id for s in policy.suites if s.kind == metric.suite_kind)
        usable = (s for s in asked if gate.suite in (None, s))
        if not problems and not any([*slices_of(gate, metric, plan, s)] for s in usable):
            yield path, f"{gate.metric} has nothing to judge: no suite has such a slice"


def reference_problems(
    policy: Policy, plan: TestPlan, lost: Collection[str]
) -> Iterator[YamlFault]:
    """Yield where rules and reference lack each other, and suites of which it is not asked all.

    Nothing of a reference that is `lost`: it is wrong, and told elsewhere.
    """
    compares = [
        (metric := BY_ID.get(gate.metric)) is not None and metric.needs_reference
        for gate in policy.gates
    ]
    if "reference" in lost:
        return
    if policy.reference is None:
        for position, gate in enumerate(policy.gates):
            if compares[position]:
                sentence = (
                    f"{gate.metric} compares with a second system, and the policy names none: add "
                    "`reference`, in the form of `system`"
                )
                yield ("gates", position, "metric"), sentence
        return
    others = [
        position
        for position, gate in enumerate(policy.gates)
        if not compares[position] and not gate.report
    ]
    if policy.compares_with_base and not others and "gates" not in lost:
        sentence = (
            "every rule compares with the base commit, so a run without one (a push, a schedule, "
            "`fairgate run`) could have no verdict: add a rule that needs none, such as `{metric: "
            "unreadable/net, max: 0.02, evidence: significant}`"
        )
        yield ("reference",), sentence
        return
    if not any(compares) and "gates" not in lost:
        sentence = (
            "no rule compares with the reference; add `{metric: shift/answer, max: 0.05, evidence: "
            "significant}`, say (`fairgate metrics list`), or remove it"
        )
        yield ("reference",), sentence
    embedding = {case.suite for case in plan.cases if case.embeds is not None}
    for position, suite in enumerate(policy.suites):
        if suite.id in embedding:
            sentence = (
                "asks about its own answers, which a reference would answer otherwise; give the "
                "suite a policy without `reference`"
            )
            yield ("suites", position), sentence


def _question_problems(path: YamlPath, gate: GatePolicy, metric: Metric) -> Iterator[YamlFault]:
    """Yield settings that the metric does not support in any suite."""
    if gate.regression is not None and not metric.comparable:
        yield (
            (*path, "regression"),
            f"{gate.metric} cannot be compared with a baseline case by case; give `max` instead",
        )
    if gate.regression is not None and metric.needs_reference:
        sentence = (
            f"{gate.metric} compares with the policy's `reference` already; give `max` or `max_abs`"
        )
        yield (*path, "regression"), sentence
    if metric.better is Better.TOWARD_ZERO and gate.min is not None:
        yield (
            (*path, "min"),
            f"{gate.metric} is better the nearer it is to 0; bound its size with `max_abs` instead",
        )
    if metric.compares_terms and (gate.min is not None or gate.max_abs is not None):
        wrong = "min" if gate.min is not None else "max_abs"
        sentence = (
            f"{gate.metric} takes `max` alone: the rule fails where the difference is "
            "significant and that far above chance"
        )
        yield (*path, wrong), sentence


def _slice_problems(
    path: YamlPath, gate: GatePolicy, metric: Metric, policy: Policy, plan: TestPlan
) -> Iterator[YamlFault]:
    usable = listed(metric.dimensions, last="and") or "none"
    yield from _question_problems(path, gate, metric)
    if gate.for_each is not None and gate.for_each not in metric.dimensions:
        yield (
            (*path, "for_each"),
            f"{quoted(gate.for_each)} is no dimension of {gate.metric}; its dimensions: {usable}",
        )
    if "band" in metric.dimensions and "band" not in (gate.for_each, *gate.where):
        yield path, f"{gate.metric} needs `where: {{band: …}}` or `for_each: band`"
    of_kind = (suite.id for suite in policy.suites if suite.kind == metric.suite_kind)
    asked = [suite for suite in of_kind if gate.suite in (None, suite)]
    if not asked:
        sentence = (
            f"{gate.metric} is a metric of suites of kind `{metric.suite_kind}`; "
            f"{f'suite {quoted(gate.suite)} is none' if gate.suite else 'there is none'}"
        )
        yield (*path, "metric"), sentence
        return
    levels = [metric_levels(metric, plan, suite) for suite in asked]
    if metric.relation and not any(levels):
        sentence = f"{gate.metric} is of the relation {quoted(metric.relation)}; no suite names it"
        yield (*path, "metric"), sentence
        return
    yield from _setting_problems(path, gate, metric, levels)
    for name, value in gate.where.items():
        if name not in metric.dimensions:
            yield (
                (*path, "where", name),
                f"{quoted(name)} is no dimension of {gate.metric}; its dimensions: {usable}",
            )
            continue
        known = {level for of_suite in levels for level in of_suite.get(name, ())}
        if value not in known:
            yield (
                (*path, "where", name),
                f"no suite produces {name} {quoted(value)}; {suggestion(value, sorted(known))}",
            )
    has_control = with_control_arm(policy, plan) if metric.needs_neutral_wording else asked
    for suite in asked:
        if suite not in has_control:
            sentence = (
                f"{gate.metric} needs neutral wording, and suite {quoted(suite)} asks no neutral "
                "wording: set its `control`, or take another metric; written pairs have none"
            )
            yield (*path, "metric"), sentence


def _setting_problems(
    path: YamlPath, gate: GatePolicy, metric: Metric, levels: Sequence[Mapping[str, Sequence[str]]]
) -> Iterator[YamlFault]:
    """Yield what is wrong with the settings of a rule on question items."""
    if "setting" not in metric.dimensions:
        return
    settings = list(dict.fromkeys(level for known in levels for level in known.get("setting", ())))
    usable = [s for s in settings if s != NO_RETRIEVAL or not metric.needs_documents]
    if compares_settings(metric) and not all(
        NO_RETRIEVAL in known.get("setting", ()) for known in levels
    ):
        yield (
            (*path, "metric"),
            f"{gate.metric} compares with the setting `none`, which the suite does not ask",
        )
    elif not usable:
        yield (*path, "metric"), f"{gate.metric} needs a setting that retrieves; there is none"
    elif gate.where.get("setting", usable[0]) not in usable:
        sentence = (
            f"{gate.metric} has no value in the setting {quoted(gate.where['setting'])}; its "
            f"settings: {listed(usable, last='and')}"
        )
        yield (*path, "where", "setting"), sentence
    elif len(usable) > 1 and "setting" not in (gate.for_each, *gate.where):
        sentence = (
            f"{gate.metric} needs `where: {{setting: …}}` or `for_each: setting`: a mean over "
            f"{listed(usable, last='and')} is no system's"
        )
        yield path, sentence
