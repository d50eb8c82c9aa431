"""Reports gates that no suite of the policy can answer, before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from fairgate.domain.cases import TestPlan
from fairgate.domain.items import NO_RETRIEVAL
from fairgate.domain.measurements import Better
from fairgate.domain.wording import listed, quoted, suggestion
from fairgate.gate.rules import metric_levels, slices_of, with_control_arm
from fairgate.metrics import steadiness
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import Metric
from fairgate.metrics.social_bias import compares_settings, evaluated_without_documents
from fairgate.policy.gates import GatePolicy
from fairgate.policy.schema import Policy

Path = tuple[str | int, ...]


def unknown_metrics(metrics: Sequence[object]) -> Iterator[tuple[Path, str]]:
    """Yield every metric of the gates, in their order, that does not exist; only texts count.

    Needs neither plan nor valid policy, so it is told beside missing files and malformed values.
    """
    for position, metric in enumerate(metrics):
        if isinstance(metric, str) and metric not in BY_ID:
            hint = suggestion(metric, BY_ID)
            yield ("gates", position, "metric"), f"unknown metric {quoted(metric)}; {hint}"


def rule_problems(
    policy: Policy, plan: TestPlan, lost: Collection[str] = ()
) -> Iterator[tuple[Path, str]]:
    """Yield (path in the policy, message) for every gate that no suite can answer.

    Of gates about suites that are `lost`, or about all while some are, only what no suite answers.
    """
    suites = [suite.id for suite in policy.suites]
    for position, gate in enumerate(policy.gates):
        path: Path = ("gates", position)
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
        if not problems and not any(True for s in usable for _ in slices_of(gate, metric, plan, s)):
            yield path, f"{gate.metric} has nothing to judge: no suite has such a slice"


def _question_problems(path: Path, gate: GatePolicy, metric: Metric) -> Iterator[tuple[Path, str]]:
    """Yield settings that the metric does not support in any suite."""
    if gate.regression is not None and not metric.comparable:
        yield (
            (*path, "regression"),
            f"{gate.metric} cannot be compared with a baseline case by case; give `max` instead",
        )
    if metric.better is Better.TOWARD_ZERO and gate.min is not None:
        yield (
            (*path, "min"),
            f"{gate.metric} is better the nearer it is to 0; bound its size with `max_abs` instead",
        )
    if metric.compares_terms and (gate.min is not None or gate.max_abs is not None):
        wrong = "min" if gate.min is not None else "max_abs"
        yield (
            (*path, wrong),
            (
                f"{gate.metric} takes `max` alone: the rule fails where the difference is "
                "significant and above it"
            ),
        )


def _slice_problems(
    path: Path, gate: GatePolicy, metric: Metric, policy: Policy, plan: TestPlan
) -> Iterator[tuple[Path, str]]:
    usable = listed(metric.dimensions, last="and") or "none"
    yield from _question_problems(path, gate, metric)
    if gate.for_each is not None and gate.for_each not in metric.dimensions:
        yield (
            (*path, "for_each"),
            f"{quoted(gate.for_each)} is no dimension of {gate.metric}; its dimensions: {usable}",
        )
    if "band" in metric.dimensions and "band" not in (gate.for_each, *gate.where):
        yield path, f"{gate.metric} needs `where: {{band: …}}` or `for_each: band`"
    asked = [
        suite.id
        for suite in policy.suites
        if gate.suite in (None, suite.id) and suite.kind == metric.suite_kind
    ]
    if not asked:
        yield (
            (*path, "metric"),
            (
                f"{gate.metric} is a metric of suites of kind `{metric.suite_kind}`; "
                f"{f'suite {quoted(gate.suite)} is none' if gate.suite else 'there is none'}"
            ),
        )
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
    yield from _repeat_problems(path, gate, metric, policy, asked)
    needs_control = any(not arm.sliced for arm in metric.arms) or metric.column == "controlled"
    has_control = with_control_arm(policy, plan) if needs_control else asked
    for suite in asked:
        if suite not in has_control:
            yield (
                (*path, "metric"),
                (
                    f"{gate.metric} needs a control arm, and suite {quoted(suite)} asks no neutral "
                    "wording: set its `control`, or take another metric; written pairs have none"
                ),
            )


def _repeat_problems(
    path: Path, gate: GatePolicy, metric: Metric, policy: Policy, asked: Sequence[str]
) -> Iterator[tuple[Path, str]]:
    """Yield the suites that ask once, where a rule compares repeats."""
    if metric not in steadiness.METRICS:
        return
    for one in policy.suites:
        if one.id in asked and getattr(one, "repeats", 1) < 2:
            yield (
                (*path, "metric"),
                (
                    f"{gate.metric} compares repeats, and suite {quoted(one.id)} asks once; set "
                    "its `repeats` to 3, say, or name another suite with `suite`"
                ),
            )


def _setting_problems(
    path: Path, gate: GatePolicy, metric: Metric, levels: Sequence[Mapping[str, Sequence[str]]]
) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with the settings of a rule on question items."""
    if "setting" not in metric.dimensions:
        return
    settings = list(dict.fromkeys(level for known in levels for level in known.get("setting", ())))
    usable = [s for s in settings if s != NO_RETRIEVAL or evaluated_without_documents(metric)]
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
        yield (
            (*path, "where", "setting"),
            (
                f"{gate.metric} has no value in the setting {quoted(gate.where['setting'])}; its "
                f"settings: {listed(usable, last='and')}"
            ),
        )
    elif len(usable) > 1 and "setting" not in (gate.for_each, *gate.where):
        yield (
            path,
            (
                f"{gate.metric} needs `where: {{setting: …}}` or `for_each: setting`: a mean over "
                f"{listed(usable, last='and')} is no system's"
            ),
        )
