"""Rules that no run could break, and rules that no run could keep: both are mistakes.

Works on the plain data, like `checks`: values of the wrong type are reported by the schema.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairgate.domain.measurements import Better
from fairgate.domain.wording import harmless
from fairgate.policy.yaml_nodes import Where

if TYPE_CHECKING:
    from fairgate.metrics.metric import Metric

_INSTEAD = "to print the value without judging it set `report: true` instead"


def idle_rule(where: Where, gate: dict[str, Any]) -> Iterator[tuple[Where, str]]:
    """Yield each bound of a gate at or beyond the limits of its metric, with the sentence."""
    from fairgate.metrics.catalogue import BY_ID

    metric = BY_ID.get(str(gate.get("metric")))
    if metric is None:
        return
    for key in ("max", "max_abs", "min"):
        bound = _number(gate.get(key))
        sentence = "" if bound is None else _bound(metric, key, bound)
        if sentence:
            yield (*where, key), harmless(sentence)
    regression = gate.get("regression")
    widest = _widest_change(metric)
    for key, instead in (("margin", "remove `regression`"), ("budget", "remove it")):
        limit = _number(regression.get(key)) if isinstance(regression, dict) else None
        if limit is not None and limit >= widest:
            sentence = (
                f"{metric.id} never changes by more than {widest:g}, so a {key} of {limit:g} "
                f"cannot fail; lower it, or {instead}"
            )
            yield (*where, "regression", key), sentence


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _bound(metric: Metric, key: str, bound: float) -> str:
    """Return what is wrong with one bound; empty where a run can keep and can break it."""
    # `max` acts on the size of what is better the nearer it is to 0 (SPEC 4).
    by_size = key == "max_abs" or metric.better is Better.TOWARD_ZERO
    lowest = 0.0 if by_size else metric.least
    highest = max(abs(metric.least), abs(metric.greatest)) if by_size else metric.greatest
    above = f"{metric.id} never exceeds {highest:g}"
    below = f"{metric.id} never falls below {lowest:g}"
    percent = f"; rates are fractions, so {bound:g} % is {bound / 100:g}" if metric.is_rate else ""
    if key == "min":
        if bound <= lowest:
            return f"{below}, so a `min` of {bound:g} cannot fail; raise it, or {_INSTEAD}"
        if bound > highest:
            return f"{above}, so no run reaches a `min` of {bound:g}{percent}"
        return ""
    if bound > highest and percent:
        return f"{above}, so a bound of {bound:g} cannot fail{percent}"
    if bound >= highest:
        return f"{above}, so a bound of {bound:g} cannot fail; lower it, or {_INSTEAD}"
    return f"{below}, so no run keeps a bound of {bound:g}" if bound < lowest else ""


def _widest_change(metric: Metric) -> float:
    if metric.better is Better.TOWARD_ZERO:
        return max(abs(metric.least), abs(metric.greatest))
    return metric.greatest - metric.least
