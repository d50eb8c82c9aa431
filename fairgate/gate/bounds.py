"""Bounds judge the estimate on this fixed suite, or whether it is surely beyond them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

from fairgate.domain import wording
from fairgate.domain.outcomes import Better, Measurement, Outcome
from fairgate.gate.rules import Rule
from fairgate.metrics.metric import Metric
from fairgate.policy.schema import GatePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check of a rule."""

    name: str
    """`bound`, `regression`, `budget` or `unreadable`."""
    outcome: Outcome
    reason: str
    is_bare: bool = False
    """Whether it fails by an estimate that chance alone could have put beyond the bound."""


class BoundKind(Enum):
    """How a value is compared with a bound: the words where it is within, and where it is not."""

    AT_MOST = "is within the limit of", "is above the limit of"
    AT_LEAST = "is within the limit of at least", "is below the limit of"
    IN_SIZE_AT_MOST = "is in size within the limit of", "is in size above the limit of"


def judge_bounds(rule: Rule, measured: Measurement) -> list[Check]:
    """Judge a value by its rule's bounds."""
    checks = check_bounds(rule.gate, measured, rule.metric)
    if rule.gate.evidence == "estimate":
        strict = rule.gate.model_copy(update={"evidence": "significant"})
        surely = check_bounds(strict, measured, rule.metric)
        checks = [
            replace(
                check, is_bare=check.outcome is Outcome.FAIL and sure.outcome is not Outcome.FAIL
            )
            for check, sure in zip(checks, surely, strict=True)
        ]
    return checks


def check_bounds(gate: GatePolicy, measured: Measurement, metric: Metric) -> list[Check]:
    """Return a check for each bound of the gate; one `not-evaluated` where there is no value."""
    if measured.value is None:
        why = measured.note or "nothing was decided"
        return [Check(name="bound", outcome=Outcome.NOT_EVALUATED, reason=why)]
    return [
        _check(kind, bound, measured, gate.evidence, metric)
        for kind, bound in asked_bounds(gate, metric)
    ]


def asked_bounds(gate: GatePolicy, metric: Metric) -> list[tuple[BoundKind, float]]:
    """Return the bounds of a gate, and how a value is compared with each."""
    # What is better the nearer it is to 0 is bounded on both sides of it.
    is_signed = metric.better is Better.TOWARD_ZERO
    bounds = (
        (BoundKind.IN_SIZE_AT_MOST if is_signed else BoundKind.AT_MOST, gate.max),
        (BoundKind.AT_LEAST, gate.min),
        (BoundKind.IN_SIZE_AT_MOST, gate.max_abs),
    )
    return [(kind, bound) for kind, bound in bounds if bound is not None]


def _place(
    kind: BoundKind, bound: float, value: float, ends: tuple[float, float]
) -> tuple[bool, bool, bool]:
    """Return whether a value is within its bound, and whether all or nothing of its range is."""
    low, high = ends
    if kind is BoundKind.IN_SIZE_AT_MOST:
        never = min(abs(low), abs(high)) > bound and low * high > 0
        return abs(value) <= bound, max(abs(low), abs(high)) <= bound, never
    if kind is BoundKind.AT_MOST:
        return value <= bound, high <= bound, low > bound
    return value >= bound, low >= bound, high < bound


def _told_apart(number: float, limit: float, metric: Metric) -> tuple[str, str]:
    """Return a value and its limit as they are printed; differences of rates are in points."""
    figure, most = wording.told_apart(number, limit, is_rate=metric.is_rate)
    if not metric.is_difference:
        return figure, most
    return figure.replace(" %", " points"), most.replace(" %", " points")


def _check(
    kind: BoundKind, bound: float, measured: Measurement, evidence: str, metric: Metric
) -> Check:
    value, interval = measured.value or 0.0, measured.interval
    if evidence == "significant":
        interval = interval or (-math.inf, math.inf)
    inside, surely, never = _place(kind, bound, value, interval or (value, value))
    within, beyond = kind.value
    sign = -1 if kind is BoundKind.IN_SIZE_AT_MOST and value < 0 else 1
    comparison, limit = _told_apart(value, sign * bound, metric)
    if kind is BoundKind.IN_SIZE_AT_MOST:
        limit = limit.removeprefix(wording.MINUS)
    comparison = f"{comparison} {within if inside else beyond} {limit}"
    outcome, reason = Outcome.PASS if inside else Outcome.FAIL, comparison
    if inside or evidence == "estimate":
        reason += "" if surely or never else "; the limit lies inside its confidence interval"
    elif never:
        reason += ", and so is its whole confidence interval"
    elif measured.interval is None:
        outcome = Outcome.NOT_EVALUATED
        reason += f", but it has no confidence interval: {measured.note or 'no variation'}"
    else:
        outcome = Outcome.PASS
        reason += ", but chance alone can explain it"
    return Check(name="bound", outcome=outcome, reason=reason)
