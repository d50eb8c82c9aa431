"""Expand the policy's gates into rules, and say what no suite could ever answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.cases import TestPlan
from fairgate.domain.wording import listed, quoted, suggestion
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.metric import Metric
from fairgate.metrics.retriever_robustness import BANDS
from fairgate.policy.schema import GatePolicy, Policy

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One question to one slice of one suite."""

    gate: GatePolicy
    position: int
    metric: Metric
    suite: str
    where: Mapping[str, str]


def dimension_levels(plan: TestPlan, suite: str) -> dict[str, list[str]]:
    """Return the values that each dimension takes in a suite, in the order of the plan."""
    rows = [pair for pair in plan.pairs if pair.suite == suite and not pair.control]
    return {
        "category": list(dict.fromkeys(pair.category for pair in rows)),
        "term": list(dict.fromkeys(pair.term for pair in rows)),
        "band": list(BANDS),
    }


def expand_rules(policy: Policy, plan: TestPlan) -> list[Rule]:
    """Return the rules of all gates, in the order of the policy; unusable gates give none."""
    rules: list[Rule] = []
    for position, gate in enumerate(policy.gates):
        metric = BY_ID.get(gate.metric)
        if metric is None:
            continue
        for suite in policy.suites:
            if gate.suite not in (None, suite.id):
                continue
            levels = dimension_levels(plan, suite.id)
            rules.extend(
                Rule(gate=gate, position=position, metric=metric, suite=suite.id, where=where)
                for where in _slices(gate, levels)
            )
    return rules


def _slices(gate: GatePolicy, levels: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    if any(value not in levels.get(name, ()) for name, value in gate.where.items()):
        return
    if gate.for_each is None:
        yield dict(gate.where)
        return
    for level in levels.get(gate.for_each, ()):
        yield {**gate.where, gate.for_each: level}


def rule_problems(policy: Policy, plan: TestPlan) -> Iterator[tuple[Path, str]]:
    """Yield (path in the policy, message) for every gate that no suite can answer."""
    suites = [suite.id for suite in policy.suites]
    for position, gate in enumerate(policy.gates):
        path: Path = ("gates", position)
        metric = BY_ID.get(gate.metric)
        if metric is None:
            yield (
                (*path, "metric"),
                f"unknown metric {quoted(gate.metric)}; {suggestion(gate.metric, BY_ID)}",
            )
            continue
        if gate.suite is not None and gate.suite not in suites:
            yield (
                (*path, "suite"),
                f"unknown suite {quoted(gate.suite)}; {suggestion(gate.suite, suites)}",
            )
            continue
        yield from _slice_problems(path, gate, metric, policy, plan)


def _slice_problems(
    path: Path, gate: GatePolicy, metric: Metric, policy: Policy, plan: TestPlan
) -> Iterator[tuple[Path, str]]:
    usable = listed(metric.dimensions, last="and") or "none"
    if gate.for_each is not None and gate.for_each not in metric.dimensions:
        yield (
            (*path, "for_each"),
            f"{quoted(gate.for_each)} is no dimension of {gate.metric}; its dimensions: {usable}",
        )
    if "band" in metric.dimensions and "band" not in (gate.for_each, *gate.where):
        yield path, f"{gate.metric} needs `where: {{band: …}}` or `for_each: band`"
    asked = [suite.id for suite in policy.suites if gate.suite in (None, suite.id)]
    for name, value in gate.where.items():
        if name not in metric.dimensions:
            yield (
                (*path, "where", name),
                f"{quoted(name)} is no dimension of {gate.metric}; its dimensions: {usable}",
            )
            continue
        known = {level for suite in asked for level in dimension_levels(plan, suite)[name]}
        if value not in known:
            yield (
                (*path, "where", name),
                f"no suite produces {name} {quoted(value)}; {suggestion(value, sorted(known))}",
            )
    needs_control = any(not arm.sliced for arm in metric.arms) or metric.column == "controlled"
    for suite in policy.suites:
        if suite.id in asked and needs_control and suite.control == "none":
            yield (
                (*path, "metric"),
                f"{gate.metric} needs a control arm; suite {quoted(suite.id)} has `control: none`",
            )
