"""Bounds judge the estimate on this fixed suite, or the whole interval where the rule says so."""

from __future__ import annotations

from dataclasses import dataclass

from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import Outcome
from fairgate.metrics.metric import Metric
from fairgate.policy.gates import GatePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question of a rule, answered."""

    outcome: Outcome
    reason: str


def check_bounds(gate: GatePolicy, measured: Measurement, metric: Metric) -> list[Check]:
    """Return a check for each bound of the gate; one `not-evaluated` where there is no value."""
    if measured.value is None:
        return [Check(outcome=Outcome.NOT_EVALUATED, reason=measured.note or "nothing was decided")]
    checks = []
    if gate.max is not None:
        # What is better the nearer it is to 0 is bounded on both sides of it (SPEC 4).
        kind = "in size at most" if metric.better == "toward-zero" else "at most"
        checks.append(_check(kind, gate.max, measured, gate, metric))
    if gate.min is not None:
        checks.append(_check("at least", gate.min, measured, gate, metric))
    if gate.max_abs is not None:
        checks.append(_check("in size at most", gate.max_abs, measured, gate, metric))
    return checks


def _check(
    kind: str, bound: float, measured: Measurement, gate: GatePolicy, metric: Metric
) -> Check:
    value = measured.value or 0.0
    low, high = measured.interval or (value, value)
    if kind == "in size at most":
        inside = abs(value) <= bound
        surely = max(abs(low), abs(high)) <= bound
        never = min(abs(low), abs(high)) > bound and low * high > 0
    elif kind == "at most":
        inside, surely, never = value <= bound, high <= bound, low > bound
    else:
        inside, surely, never = value >= bound, low >= bound, high < bound
    shown = f"{_show(value, metric)} is {'' if inside else 'not '}{kind} {_show(bound, metric)}"
    if gate.evidence == "interval":
        return _interval_check(shown, measured, surely=surely, never=never)
    note = "" if surely or never else "; the bound lies inside the interval"
    return Check(outcome=Outcome.PASS if inside else Outcome.FAIL, reason=shown + note)


def _interval_check(shown: str, measured: Measurement, *, surely: bool, never: bool) -> Check:
    if measured.interval is None:
        why = measured.note or "no interval"
        return Check(
            outcome=Outcome.INCONCLUSIVE, reason=f"{shown}, but there is no interval: {why}"
        )
    if surely:
        return Check(outcome=Outcome.PASS, reason=f"{shown}, and so is the whole interval")
    if never:
        return Check(outcome=Outcome.FAIL, reason=f"{shown}, and so is the whole interval")
    return Check(
        outcome=Outcome.INCONCLUSIVE, reason=f"{shown}, but the interval reaches across the bound"
    )


def _show(value: float, metric: Metric) -> str:
    return f"{100 * value:.1f} %" if metric.is_rate else f"{value:.3f}"
