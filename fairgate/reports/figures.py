"""How numbers are written: rates times 100 with one decimal, scores with three (SPEC 1)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from fairgate.domain import wording
from fairgate.domain.measurements import Better, Measurement
from fairgate.domain.outcomes import Change
from fairgate.domain.wording import difference
from fairgate.metrics.catalogue import BY_ID
from fairgate.reports.blocks import NOTHING, Figure

NO_BREAK = "\N{NO-BREAK SPACE}"
NONE = "\N{EN DASH}"
"""Stands where there is no value."""


_UNITS = re.compile(r"(?<=\d) (?=%|points?\b)")


def unbroken(text: str) -> str:
    """Keep numbers of a sentence and their units on one line."""
    return _UNITS.sub(NO_BREAK, text)


def is_rate(metric: str) -> bool:
    """Return whether the metric is a share that is shown times 100."""
    known = BY_ID.get(metric)
    return known is None or known.is_rate


def title(metric: str) -> str:
    """Return the metric in plain words; its id where this version does not know it."""
    known = BY_ID.get(metric)
    return known.title if known else metric


def metric_in(metric: str, where: Mapping[str, str]) -> str:
    """Return the metric's id and the slice that it is of: `asr (relation set/add)`."""
    inside = ", ".join(f"{name} {value}" for name, value in where.items())
    return f"{metric} ({inside})" if inside else metric


def value(number: float | None, metric: str) -> str:
    """Return `9.4 %` for a rate, `0.712` for a score."""
    if number is None or not math.isfinite(number):
        return NONE
    return wording.value(number, is_rate=is_rate(metric))


def signed(number: float | None, metric: str) -> str:
    """Return `+5.3` (percentage points) or `+0.050`."""
    if number is None or not math.isfinite(number):
        return NONE
    return wording.signed(number, is_rate=is_rate(metric))


def unsigned(number: float | None, metric: str) -> str:
    """Return `5.3` (percentage points) or `0.050`."""
    if number is None or not math.isfinite(number):
        return NONE
    return value(number, metric).removesuffix(" %")


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


def figure(measured: Measurement | None, *, is_signless: bool = False) -> Figure:
    """Return a measurement as a figure; `is_signless` leaves the per cent sign to the heading."""
    if measured is None or measured.value is None:
        return NOTHING
    write = unsigned if is_signless else value
    return Figure(
        shown=write(measured.value, measured.metric),
        interval=interval(measured.interval, measured.metric),
        value=measured.value,
        bounds=measured.interval,
    )


def change(moved: Change, metric: str) -> str:
    """Return now minus base, as both are shown; of what is best at 0, the change in size."""
    known = BY_ID.get(metric)
    ends = (moved.base, moved.now)
    base, now = map(abs, ends) if known and known.better is Better.TOWARD_ZERO else ends
    if not (math.isfinite(base) and math.isfinite(now)):
        return NONE
    return difference(base, now, is_rate=is_rate(metric))


def detectable(moved: Change, metric: str) -> str:
    """Return the smallest worsening that would be seen, with the sign of the change."""
    seen = moved.minimum_detectable
    return signed(-seen if _more_is_better(metric) else seen, metric)


def change_interval(moved: Change, metric: str) -> str:
    """Return the bounds of the change in rising order: `+2.8 … +8.1`."""
    ends = (moved.lower, moved.upper)
    if _more_is_better(metric):
        ends = (-moved.upper, -moved.lower)
    return signed_interval(ends, metric)


def _more_is_better(metric: str) -> bool:
    known = BY_ID.get(metric)
    return known is not None and known.better == "higher"


def limit(name: str, bound: float, metric: str) -> str:
    """Return a bound as `≤ 15.0 %`, `≥ …` or `|value| ≤ …`."""
    sign = {"max": "≤ ", "min": "≥ ", "max_abs": "size ≤ "}.get(name, f"{name} ")
    return sign + value(bound, metric)


def is_best_at_zero(metric: str) -> bool:
    """Return whether a value is better the nearer it is to 0, on either side."""
    known = BY_ID.get(metric)
    return known is not None and known.better is Better.TOWARD_ZERO


def size(number: float, metric: str, bound: str = "") -> float:
    """Return how bad a value is: its distance from 0 where 0 is best or a bound is of the size."""
    return abs(number) if is_best_at_zero(metric) or bound == "max_abs" else number
