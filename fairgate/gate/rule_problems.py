"""Gates that no suite can answer, and settings that a metric does not support, by their place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from fairgate.domain.cases import NO_RETRIEVAL, TestPlan
from fairgate.domain.outcomes import Better
from fairgate.domain.wording import listed, quoted, suggestion
from fairgate.gate.rules import (
    asked_levels,
    has_slice,
    metric_levels,
    outcomes_of,
    with_control_arm,
)
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import Metric
from fairgate.metrics.parity import OUTCOMES
from fairgate.metrics.social_bias import compares_settings
from fairgate.policy.schema import ALL, GatePolicy, Policy
from fairgate.policy.yaml_text import YamlFault, YamlPath
from fairgate.suites.suite import Suite


def unknown_names(entries: Sequence[Mapping[str, object]]) -> Iterator[YamlFault]:
    """Yield every metric and outcome of the gates, in their order, that does not exist.

    Needs neither plan nor valid policy, so it is told beside missing files and malformed values.
    """
    for position, entry in enumerate(entries):
        metric, outcome = entry.get("metric"), entry.get("parity")
        if isinstance(metric, str) and metric not in METRICS:
            hint = suggestion(metric, METRICS.ids)
            yield ("gates", position, "metric"), f"unknown metric {quoted(metric)}; {hint}"
        if isinstance(outcome, str) and outcome != ALL and outcome not in OUTCOMES:
            hint = suggestion(outcome, [ALL, *OUTCOMES.ids])
            yield ("gates", position, "parity"), f"unknown outcome {quoted(outcome)}; {hint}"


def parity_problems(
    policy: Policy, suites: Mapping[str, Suite], plan: TestPlan, lost: Collection[str] = ()
) -> Iterator[YamlFault]:
    """Yield (path in the policy, message) for every question that no suite can answer."""
    ids = [suite.id for suite in policy.suites]
    for position, gate in policy.parities:
        path: YamlPath = ("gates", position)
        if gate.parity != ALL and gate.parity not in OUTCOMES:
            continue
        if lost and (gate.suite is None or gate.suite in lost):
            continue
        if gate.suite is not None and gate.suite not in ids:
            sentence = f"unknown suite {quoted(gate.suite)}; {suggestion(gate.suite, ids)}"
            yield (*path, "suite"), sentence
            continue
        asked = [suite for suite in suites.values() if gate.suite in (None, suite.id)]
        offered = {each.id for suite in asked for each in outcomes_of(suite)}
        if gate.parity in offered or (gate.parity == ALL and offered):
            for suite in asked:
                if any(gate.parity in (ALL, each.id) for each in outcomes_of(suite)):
                    yield from _unasked_slice(path, gate.where, plan, suite.id)
            continue
        controlled = [suite for suite in asked if suite.has_control_arm]
        if not controlled:
            why = (
                "no suite asks control prompts, which identities are compared with: set `control` "
                "in a suite, write some (columns `control/…` of its table), or bound a metric"
            )
        elif all(gate.parity == "sentences" for _ in asked):
            why = "no suite reads sentences: set `read: [sentences]` in a suite"
        else:
            names = listed(sorted(offered), last="and") or "none"
            why = f"no suite has the outcome {quoted(gate.parity)}; the outcomes here: {names}"
        yield (*path, "parity"), why


def _unasked_slice(
    path: YamlPath, where: Mapping[str, str], plan: TestPlan, suite: str
) -> Iterator[YamlFault]:
    """Yield what a slice names that a suite does not ask about: of nobody, nobody differs."""
    known = asked_levels(plan, suite)
    for name, value in where.items():
        place = (*path, "where", name)
        if name not in known:
            usable = listed(known, last="and") or "none"
            yield place, f"{quoted(name)} is no dimension of suite {quoted(suite)}; it has {usable}"
        elif value not in known[name]:
            near = suggestion(value, sorted(known[name]))
            yield place, f"suite {quoted(suite)} asks about no {name} {quoted(value)}; {near}"
    inside = asked_levels(plan, suite, where)
    is_known = all(value in known.get(name, ()) for name, value in where.items())
    if where and is_known and not any(inside.values()):
        yield (*path, "where"), f"suite {quoted(suite)} asks about nobody in this slice"


def rule_problems(
    policy: Policy, plan: TestPlan, lost: Collection[str] = ()
) -> Iterator[YamlFault]:
    """Yield (path in the policy, message) for every gate that no suite can answer.

    Of gates about suites that are `lost`, or about all while some are or none is there, only what
    no suite answers.
    """
    suites = [suite.id for suite in policy.suites]
    for position, gate in policy.bounds:
        path: YamlPath = ("gates", position)
        metric = METRICS.get(gate.metric)
        if metric is None:
            continue
        if not suites or (lost and (gate.suite is None or gate.suite in lost)):
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
        asked = (s.id for s in policy.suites if s.kind == metric.units.suite_kind)
        usable = (s for s in asked if gate.suite in (None, s))
        if not problems and not any(has_slice(gate, metric, plan, s) for s in usable):
            yield path, f"{gate.metric} has nothing to judge: no suite has such a slice"


def reference_problems(
    policy: Policy, plan: TestPlan, lost: Collection[str]
) -> Iterator[YamlFault]:
    """Yield where rules and reference lack each other, and suites of which it is not asked all.

    Nothing of a reference that is `lost`: it is wrong, and told elsewhere.
    """
    compares = {
        position
        for position, gate in policy.bounds
        if (metric := METRICS.get(gate.metric)) is not None and metric.needs.reference
    }
    if "reference" in lost:
        return
    if policy.reference is None:
        for position, gate in policy.bounds:
            if position in compares:
                sentence = (
                    f"{gate.metric} compares with a second system, and the policy names none: add "
                    "`reference`, in the form of `system`"
                )
                yield ("gates", position, "metric"), sentence
        return
    others = [
        position
        for position, gate in enumerate(policy.gates)
        if position not in compares and not getattr(gate, "report", False)
    ]
    if policy.compares_with_base and not others and "gates" not in lost:
        sentence = (
            "every rule compares with the base commit, so a run without one (a push, a schedule, "
            "`fairgate run`) could have no verdict: add a rule that needs none, such as `{parity: "
            "unreadable}`"
        )
        yield ("reference",), sentence
        return
    if not compares and not policy.parities and "gates" not in lost:
        sentence = (
            "no rule compares with the reference; add `{parity: all}`, or `{metric: shift/answer, "
            "max: 0.05, evidence: significant}`, or remove it"
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
    if gate.regression is not None and metric.needs.reference:
        sentence = (
            f"{gate.metric} compares with the policy's `reference` already; give `max` or `max_abs`"
        )
        yield (*path, "regression"), sentence
    if metric.better is Better.TOWARD_ZERO and gate.min is not None:
        yield (
            (*path, "min"),
            f"{gate.metric} is better the nearer it is to 0; bound its size with `max_abs` instead",
        )


def _slice_problems(
    path: YamlPath, gate: GatePolicy, metric: Metric, policy: Policy, plan: TestPlan
) -> Iterator[YamlFault]:
    usable = listed(metric.dimensions, last="and") or "none"
    yield from _question_problems(path, gate, metric)
    if "band" in metric.dimensions and "band" not in gate.where:
        yield path, f"{gate.metric} needs `where: {{band: …}}`"
    of_kind = (suite.id for suite in policy.suites if suite.kind == metric.units.suite_kind)
    asked = [suite for suite in of_kind if gate.suite in (None, suite)]
    if not asked:
        sentence = (
            f"{gate.metric} is a metric of suites of kind `{metric.units.suite_kind}`; "
            f"{f'suite {quoted(gate.suite)} is none' if gate.suite else 'there is none'}"
        )
        yield (*path, "metric"), sentence
        return
    levels = [metric_levels(metric, plan, suite) for suite in asked]
    if metric.needs.relation and not any(levels):
        sentence = (
            f"{gate.metric} is of the relation {quoted(metric.needs.relation)}; no suite names it"
        )
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
    has_control = with_control_arm(policy, plan) if metric.needs_controls else asked
    for suite in asked:
        if suite not in has_control:
            sentence = (
                f"{gate.metric} needs control prompts, and suite {quoted(suite)} asks "
                "none: set its `control`, write some, or take another metric"
            )
            yield (*path, "metric"), sentence


def _setting_problems(
    path: YamlPath, gate: GatePolicy, metric: Metric, levels: Sequence[Mapping[str, Sequence[str]]]
) -> Iterator[YamlFault]:
    """Yield what is wrong with the settings of a rule on question items."""
    if "setting" not in metric.dimensions:
        return
    settings = list(dict.fromkeys(level for known in levels for level in known.get("setting", ())))
    usable = [s for s in settings if s != NO_RETRIEVAL or not metric.needs.documents]
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
    elif len(usable) > 1 and "setting" not in gate.where:
        sentence = (
            f"{gate.metric} needs `where: {{setting: …}}`: a mean over "
            f"{listed(usable, last='and')} is no system's"
        )
        yield path, sentence
