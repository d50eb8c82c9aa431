"""Where scales, ticks and marks of charts stand, in per cent of a track; templates draw them.

Every chart is a picture beside figures that say the same in a table, so that nobody needs the
picture. Tracks stretch to whatever room there is, on a phone too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairgate.domain.wording import MINUS
from fairgate.reports.blocks import Bar, Bars, Histogram, Range, RangeChart
from fairgate.reports.text_charts import bins

_HEADROOM = 1.05
_LEAST = 0.01
"""A scale never ends below this: noise in the last digit is no picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One line of a chart: positions from 0 (left) to 100 (right); None is not drawn."""

    value: float | None
    low: float | None = None
    high: float | None = None
    base: float | None = None
    base_low: float | None = None
    base_high: float | None = None
    neutral: float | None = None
    others: Sequence[float | None] = ()
    """Where the bases stand that a reader can choose instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A histogram: bars of (left, width, height, band) in per cent of the drawing.

    The first bar stands for scores of exactly 0 alone, the others for equal steps above 0.
    """

    bars: Sequence[tuple[float, float, float, int]]
    limits: Sequence[tuple[float, str]]
    """Where the bands end, and at which score."""
    top: str
    """The score at the right edge."""
    highest: int
    """Scores in the highest bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From 0 to `full`, or to both sides of a 0 in the middle."""

    full: float
    both_sides: bool = False
    factor: float = 100.0
    """By which values are multiplied in the labels of ticks."""
    unit: str = ""
    """Follows the last label."""

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return (position, label) of round values, from left to right."""
        span = self.factor * self.full
        step = _round_step(span if self.both_sides else span / 2)
        steps = int(span / step + 1e-9)
        marks = [
            (self._at(step * number / self.factor), _label(step * number))
            for number in range(-steps if self.both_sides else 0, steps + 1)
        ]
        last, label = marks[-1]
        return [*marks[:-1], (last, label + self.unit)]

    def position(self, value: float | None) -> float | None:
        """Return where a value stands; the edge where it lies beyond, None where it is unknown."""
        if value is None or not math.isfinite(value):
            return None
        return min(100.0, max(0.0, self._at(value)))

    def _at(self, value: float) -> float:
        share = value / self.full
        return round(50 + 50 * share if self.both_sides else 100 * share, 2)


def scale(
    values: Iterable[float | None],
    *,
    both_sides: bool = False,
    factor: float = 100.0,
    unit: str = "",
) -> Scale:
    """Return a scale on which all the values fit."""
    known = [abs(value) for value in values if value is not None and math.isfinite(value)]
    full = max([*known, _LEAST]) * _HEADROOM
    return Scale(full=full, both_sides=both_sides, factor=factor, unit=unit)


def _round_step(most: float) -> float:
    """Return the largest of …, 0.5, 1, 2, 5, 10, … that is not above `most`."""
    power = 10.0 ** math.floor(math.log10(most))
    return max(power * factor for factor in (1, 2, 5) if power * factor <= most)


def _label(value: float) -> str:
    return f"{value:.6g}".replace("-", MINUS)


def ranges(chart: RangeChart) -> tuple[list[tuple[Range, Track]], Scale]:
    """Return the rows of a chart with their tracks, and their common scale."""
    others = (other.value for row in chart.rows for other in row.others if other.value is not None)
    shared = scale(
        (*chart.values(), *others), both_sides=chart.is_signed, factor=chart.factor, unit=chart.unit
    )
    reference = chart.reference
    neutral = reference.now.value if reference else None
    return [
        (row, _track(shared, row, None if row is reference else neutral)) for row in chart.rows
    ], shared


def _track(shared: Scale, row: Range, neutral: float | None) -> Track:
    now, base = row.now, row.base
    low, high = now.bounds or (None, None)
    base_low, base_high = base.bounds or (None, None)
    return Track(
        value=shared.position(now.value),
        low=shared.position(low),
        high=shared.position(high),
        base=shared.position(base.value),
        base_low=shared.position(base_low),
        base_high=shared.position(base_high),
        neutral=shared.position(neutral),
        others=[shared.position(other.value) for other in row.others],
    )


def bars(chart: Bars) -> list[tuple[Bar, float, float, float | None]]:
    """Return for each bar where it begins, how wide it is, and where the baseline's ends."""
    found = []
    for row in chart.rows:
        end, base = _place(chart, row.now.value) or 0.0, _place(chart, row.base.value)
        start = 50.0 if chart.is_signed else 0.0
        found.append((row, min(start, end), abs(end - start), base))
    return found


def _place(chart: Bars, value: float | None) -> float | None:
    if value is None:
        return 50.0 if chart.is_signed else None
    share = value / chart.full
    return round(50 + 50 * share if chart.is_signed else 100 * share, 2)


def histogram(chart: Histogram) -> Shape:
    """Return the distribution of scores."""
    counts, top = bins(chart)
    width, highest = 100 / len(counts), max(counts)
    step = top / (len(counts) - 1)
    edges = (0.0, *chart.limits)
    return Shape(
        bars=[
            (
                round(number * width, 2),
                round(0.9 * width, 2),
                round(100 * count / highest, 2),
                sum((number - 0.5) * step > edge for edge in edges),
            )
            for number, count in enumerate(counts)
            if count
        ],
        limits=[
            (round(width + (100 - width) * limit / top, 2), f"{limit:g}") for limit in chart.limits
        ],
        top=f"{top:.2f}",
        highest=highest,
    )
