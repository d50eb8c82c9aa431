"""How numbers are written: rates times 100 with one decimal, scores with three (SPEC 1)."""

from __future__ import annotations

import math

from fairgate.domain.outcomes import Change
from fairgate.metrics.catalogue import BY_ID

MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
"""Stands where there is no value."""


def is_rate(metric: str) -> bool:
    """Return whether the metric is a share that is shown times 100."""
    known = BY_ID.get(metric)
    return known is None or known.is_rate


def title(metric: str) -> str:
    """Return the metric in plain words; its id where this version does not know it."""
    known = BY_ID.get(metric)
    return known.title if known else metric


def value(number: float | None, metric: str) -> str:
    """Return `9.4 %` for a rate, `0.712` for a score."""
    if number is None or not math.isfinite(number):
        return NONE
    text = f"{100 * number:.1f} %" if is_rate(metric) else f"{number:.3f}"
    return _minus(text)


def signed(number: float | None, metric: str) -> str:
    """Return `+5.3` (percentage points) or `+0.050`."""
    if number is None or not math.isfinite(number):
        return NONE
    text = f"{100 * number:+.1f}" if is_rate(metric) else f"{number:+.3f}"
    return _minus(text)


def unsigned(number: float | None, metric: str) -> str:
    """Return `5.3` (percentage points) or `0.050`."""
    if number is None or not math.isfinite(number):
        return NONE
    return _minus(f"{100 * number:.1f}" if is_rate(metric) else f"{number:.3f}")


def interval(bounds: tuple[float, float] | None, metric: str) -> str:
    """Return `7.1 … 12.0` for an interval of a value."""
    if bounds is None:
        return NONE
    return f"{unsigned(bounds[0], metric)} … {unsigned(bounds[1], metric)}"


def signed_interval(bounds: tuple[float, float] | None, metric: str) -> str:
    """Return `+2.8 … +8.1` for an interval of a change."""
    if bounds is None or not all(map(math.isfinite, bounds)):
        return NONE
    return f"{signed(bounds[0], metric)} … {signed(bounds[1], metric)}"


def probability(p_value: float | None) -> str:
    """Return `p = 0.012`, `p < 0.001`."""
    if p_value is None or not math.isfinite(p_value):
        return NONE
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


def points(metric: str) -> str:
    """Return the unit that follows a change: ` points` for rates, nothing for scores."""
    return " points" if is_rate(metric) else ""


def count(number: int, singular: str, plural: str = "") -> str:
    """Return `1 source`, `2,100 sources`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def movement(change: Change, metric: str) -> float:
    """Return the change as a reader sees it, now minus base; `change.change` is the worsening."""
    return -change.change if _more_is_better(metric) else change.change


def movement_interval(change: Change, metric: str) -> tuple[float, float]:
    """Return the bounds of `movement`, in rising order."""
    if _more_is_better(metric):
        return -change.upper, -change.lower
    return change.lower, change.upper


def _more_is_better(metric: str) -> bool:
    known = BY_ID.get(metric)
    return known is not None and known.better == "higher"


def limit(name: str, bound: float, metric: str) -> str:
    """Return a bound as `≤ 15.0 %`, `≥ …` or `|value| ≤ …`."""
    sign = {"max": "≤ ", "min": "≥ ", "max_abs": "size ≤ "}.get(name, f"{name} ")
    return sign + value(bound, metric)


def bar(share: float, full: float, width: int) -> str:
    """Return a bar of at most `width` blocks, `full` being the longest; never empty above 0."""
    if full <= 0 or share <= 0:
        return ""
    return "█" * max(1, min(width, round(width * share / full)))


def _minus(text: str) -> str:
    """Write a real minus, and no sign before nothing."""
    if text.startswith(("-", "+")) and not text.strip("+-0. %"):
        text = text[1:]
    return text.replace("-", MINUS)
