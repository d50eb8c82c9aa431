"""Charts of differences: a table for texts, places of marks for the page.

Every chart is a picture beside figures that say the same, so that nobody needs the picture. On the
page places are in per cent of a track, which stretches to whatever room there is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fairgate.domain.wording import MINUS
from fairgate.reports import blocks

_HEADROOM = 1.05
_LEAST = 0.01
"""A scale never ends below this: noise in the last digit is no picture."""


def as_table(chart: blocks.RangeChart) -> blocks.Table:
    """Return a chart as a table of its figures."""
    base = ["base"] if chart.has_base else []
    return blocks.Table(
        label=chart.label,
        caption=chart.caption,
        columns=[
            *blocks.columns(chart.head, numbers=[chart.value, *base, chart.interval]),
            *chart.facts,
        ],
        rows=[
            blocks.Row(
                cells=[
                    row.name,
                    blocks.figure(row.now.shown),
                    *([blocks.figure(row.base.shown)] if base else []),
                    blocks.figure(row.now.interval),
                    *row.facts,
                ],
                kind=row.kind,
            )
            for row in chart.rows
        ],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From `-full` to `full`, 0 in the middle."""

    full: float
    times: int = 100
    """What labels multiply values by: fractions are shown times 100, scores as they are."""

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return (position, label) of round values, from left to right."""
        most = self.times * self.full
        power = 10.0 ** math.floor(math.log10(most))
        # The largest of …, 0.5, 1, 2, 5, 10, … that is not above it.
        step = max(power * factor for factor in (1, 2, 5) if power * factor <= most)
        steps = int(most / step + 1e-9)
        return [
            (self.at(step * n / self.times), f"{step * n:.6g}".replace("-", MINUS))
            for n in range(-steps, steps + 1)
        ]

    def position(self, value: float | None) -> float | None:
        """Return where a value stands; the edge where it lies beyond, None where it is unknown."""
        if value is None or not math.isfinite(value):
            return None
        return min(100.0, max(0.0, self.at(value)))

    def at(self, value: float) -> float:
        """Return where a value stands, on the scale or beyond."""
        return round(50 + 50 * value / self.full, 2)


def scale(values: Iterable[float | None], *, times: int = 100) -> Scale:
    """Return a scale on which all the values fit."""
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value)]
    return Scale(full=max([*sizes, _LEAST]) * _HEADROOM, times=times)


def ranges(chart: blocks.RangeChart) -> tuple[list[tuple[blocks.Range, dict[str, Any]]], Scale]:
    """Return the rows of a chart with the places of their marks, and their common scale.

    Places are from 0 (left) to 100 (right); None is not drawn.
    """
    values: list[float | None] = [*(chart.band or ())]
    for row in chart.rows:
        for point in (row.now, row.base):
            values += [point.value, *(point.bounds or ())]
    shared = scale(values, times=chart.times)
    position_of = shared.position
    band = None if chart.band is None else tuple(map(position_of, chart.band))
    tracks = []
    for row in chart.rows:
        low, high = row.now.bounds or (None, None)
        track = {
            "value": position_of(row.now.value),
            "low": position_of(low),
            "high": position_of(high),
            "base": position_of(row.base.value),
            "band": band,
        }
        tracks.append((row, track))
    return tracks, shared
