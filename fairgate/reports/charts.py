"""Charts: bars of blocks for texts that keep their spaces, places of marks for the page.

Every chart is a picture beside figures that say the same, so that nobody needs the picture. Nothing
in here is escaped; names are cut, so that lines of texts stay short. On the page places are in per
cent of a track, which stretches to whatever room there is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fairgate.domain.wording import MINUS
from fairgate.reports import blocks
from fairgate.reports.escaping import excerpt, plain
from fairgate.reports.figures import NONE

_BAR, _SHORT_BAR = 24, 12
_NAME = 34
_HEADROOM = 1.05
_LEAST = 0.01
"""A scale never ends below this: noise in the last digit is no picture."""


def bar(value: float, full: float, width: int) -> str:
    """Return a bar of at most `width` blocks, `full` being the longest; never empty above 0."""
    if full <= 0 or value <= 0:
        return ""
    return "█" * max(1, min(width, round(width * value / full)))


def words_of(words: blocks.Inline) -> str:
    """Return words on one line, cut to the width of a name."""
    return excerpt("".join(plain(span.shown) for span in blocks.spans(words)), _NAME)


def ranges_as_text(chart: blocks.RangeChart) -> str:
    """Return a line for each of the largest values, and the reference last."""
    rows = [row for row in chart.rows if row.kind is blocks.RowKind.NORMAL]
    if chart.most is not None:
        rows = sorted(rows, key=lambda row: -(row.now.value or 0.0))[: chart.most]
    rows += [row for row in chart.rows if row.kind is blocks.RowKind.REFERENCE]
    aligned = (
        ("<", [words_of(row.name) for row in rows]),
        (">", [row.now.shown for row in rows]),
        ("^", [row.now.interval for row in rows]),
    )
    cells = [
        [f"{text:{align}{max(map(len, texts), default=0)}}" for text in texts]
        for align, texts in aligned
    ]
    full, lines = _full(chart), []
    for row, *parts in zip(rows, *cells, strict=True):
        value = row.now.value or 0.0
        drawn = bar(abs(value), full, _BAR)
        if chart.is_signed:
            left, right = (drawn, "") if value < 0 else ("", drawn)
            drawn = f"{left:>{_BAR // 2}}|{right}"
        was = "" if row.base.shown == NONE else f"  (was {row.base.shown})"
        lines.append(f"{'  '.join(parts)}  {drawn:<{_BAR + chart.is_signed}}{was}".rstrip())
    return "\n".join(lines)


def _full(chart: blocks.RangeChart) -> float:
    return max([_LEAST, *(abs(row.now.value) for row in chart.rows if row.now.value is not None)])


def as_table(chart: blocks.RangeChart) -> blocks.Table:
    """Return a range chart as a table whose bars are a column."""
    full = _full(chart)
    return blocks.Table(
        label=chart.label,
        caption=chart.caption,
        columns=[
            *blocks.columns(
                chart.head, numbers=[chart.value, *(["base"] if chart.has_base else [])]
            ),
            *blocks.columns(*([] if chart.is_signed else [""]), numbers=[chart.interval]),
            *chart.facts,
        ],
        rows=[
            blocks.Row(
                cells=[
                    row.name,
                    blocks.figure(row.now.shown),
                    *([blocks.figure(row.base.shown)] if chart.has_base else []),
                    *([] if chart.is_signed else [bar(abs(row.now.value or 0), full, _SHORT_BAR)]),
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
    """From 0 to `full`, or to both sides of a 0 in the middle."""

    full: float
    both_sides: bool = False
    unit: str = ""
    """Follows the last label."""
    times: int = 100
    """What labels multiply values by: fractions are shown times 100, scores as they are."""

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return (position, label) of round values, from left to right."""
        span = self.times * self.full
        most = span if self.both_sides else span / 2
        power = 10.0 ** math.floor(math.log10(most))
        # The largest of …, 0.5, 1, 2, 5, 10, … that is not above it.
        step = max(power * factor for factor in (1, 2, 5) if power * factor <= most)
        steps = int(span / step + 1e-9)
        marks = [
            (self.at(step * n / self.times), f"{step * n:.6g}".replace("-", MINUS))
            for n in range(-steps if self.both_sides else 0, steps + 1)
        ]
        last, label = marks[-1]
        return [*marks[:-1], (last, label + self.unit)]

    def position(self, value: float | None) -> float | None:
        """Return where a value stands; the edge where it lies beyond, None where it is unknown."""
        if value is None or not math.isfinite(value):
            return None
        return min(100.0, max(0.0, self.at(value)))

    def at(self, value: float) -> float:
        """Return where a value stands, on the scale or beyond."""
        share = value / self.full
        return round(50 + 50 * share if self.both_sides else 100 * share, 2)


def scale(
    values: Iterable[float | None], *, both_sides: bool = False, unit: str = "", times: int = 100
) -> Scale:
    """Return a scale on which all the values fit."""
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value)]
    full = max([*sizes, _LEAST]) * _HEADROOM
    return Scale(full=full, both_sides=both_sides, unit=unit, times=times)


def ranges(chart: blocks.RangeChart) -> tuple[list[tuple[blocks.Range, dict[str, Any]]], Scale]:
    """Return the rows of a chart with the places of their marks, and their common scale.

    Places are from 0 (left) to 100 (right); None is not drawn.
    """
    values: list[float | None] = [*(chart.band or ())]
    for row in chart.rows:
        for point in (row.now, row.base):
            values += [point.value, *(point.bounds or ())]
    shared = scale(values, both_sides=chart.is_signed, unit=chart.unit, times=chart.times)
    position_of, reference = shared.position, chart.reference
    tracks = []
    for row in chart.rows:
        low, high = row.now.bounds or (None, None)
        track = {
            "value": position_of(row.now.value),
            "low": position_of(low),
            "high": position_of(high),
            "base": position_of(row.base.value),
            "neutral": position_of(reference.now.value)
            if reference and row is not reference
            else None,
            "band": None
            if chart.band is None
            else (position_of(chart.band[0]), position_of(chart.band[1])),
        }
        tracks.append((row, track))
    return tracks, shared
