"""Charts: bars of blocks for texts that keep their spaces, places of marks for the page.

Every chart is a picture beside figures that say the same, so that nobody needs the picture. Nothing
in here is escaped; names are cut, so that lines of texts stay short. On the page places are in per
cent of a track, which stretches to whatever room there is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fairgate.domain.wording import MINUS
from fairgate.reports.blocks import (
    Bars,
    Chart,
    Histogram,
    Inline,
    Range,
    RangeChart,
    Row,
    RowKind,
    Table,
    columns,
    figure,
    spans,
)
from fairgate.reports.escaping import excerpt, plain
from fairgate.reports.figures import NONE

_BAR, _SHORT_BAR = 24, 12
_NAME = 34
_BINS = 30
_LEVELS = "▁▂▃▄▅▆▇█"
_HEADROOM = 1.05
_LEAST = 0.01
"""A scale never ends below this: noise in the last digit is no picture."""


def bar(value: float, full: float, width: int) -> str:
    """Return a bar of at most `width` blocks, `full` being the longest; never empty above 0."""
    if full <= 0 or value <= 0:
        return ""
    return "█" * max(1, min(width, round(width * value / full)))


def words_of(words: Inline) -> str:
    """Return words on one line, cut to the width of a name."""
    return excerpt("".join(plain(span.shown) for span in spans(words)), _NAME)


def ranges_as_text(chart: RangeChart) -> str:
    """Return a line for each of the largest values, and the reference last."""
    rows = [row for row in chart.rows if row.kind is RowKind.NORMAL]
    if chart.most is not None:
        rows = sorted(rows, key=lambda row: -(row.now.value or 0.0))[: chart.most]
    rows += [row for row in chart.rows if row.kind is RowKind.REFERENCE]
    shown, reach = ([row.now.shown for row in rows], [row.now.interval for row in rows])
    return _lines(chart, rows, [(">", shown), ("^", reach)], _full(chart))


def bars_as_text(chart: Bars) -> str:
    """Return a line for each bar."""
    notes, shown = ([words_of(row.note) for row in chart.rows], [r.now.shown for r in chart.rows])
    return _lines(chart, chart.rows, [("<", notes), (">", shown)], chart.full)


def _lines(
    chart: Chart, rows: Sequence[Range], columns: Sequence[tuple[str, list[str]]], full: float
) -> str:
    """Return a line for each row: its name and the other columns, its bar, and what it was."""
    cells = [
        [f"{text:{align}{max(map(len, texts), default=0)}}" for text in texts]
        for align, texts in (("<", [words_of(row.name) for row in rows]), *columns)
    ]
    lines = []
    for row, *parts in zip(rows, *cells, strict=True):
        value = row.now.value or 0.0
        blocks = bar(abs(value), full, _BAR)
        if chart.is_signed:
            left, right = (blocks, "") if value < 0 else ("", blocks)
            blocks = f"{left:>{_BAR // 2}}|{right}"
        was = "" if row.base.shown == NONE else f"  (was {row.base.shown})"
        lines.append(f"{'  '.join(parts)}  {blocks:<{_BAR + chart.is_signed}}{was}".rstrip())
    return "\n".join(lines)


def _full(chart: RangeChart) -> float:
    return max([_LEAST, *(abs(row.now.value) for row in chart.rows if row.now.value is not None)])


def as_table(chart: RangeChart) -> Table:
    """Return a range chart as a table whose bars are a column."""
    full = _full(chart)
    return Table(
        label=chart.label,
        caption=chart.caption,
        columns=[
            *columns(chart.head, numbers=[chart.value, *(["base"] if chart.has_base else [])]),
            *columns(*([] if chart.is_signed else [""]), numbers=[chart.interval]),
            *chart.facts,
        ],
        rows=[
            Row(
                cells=[
                    row.name,
                    figure(row.now.shown),
                    *([figure(row.base.shown)] if chart.has_base else []),
                    *([] if chart.is_signed else [bar(abs(row.now.value or 0), full, _SHORT_BAR)]),
                    figure(row.now.interval),
                    *row.facts,
                ],
                kind=row.kind,
            )
            for row in chart.rows
        ],
    )


def bins(chart: Histogram) -> tuple[list[int], float]:
    """Return how many scores are exactly 0, then in equal steps above, and the last step's end."""
    top = max([chart.scores[-1] * 1.05, *(limit * 1.25 for limit in chart.limits), 0.01])
    counts = [0] * (_BINS + 1)
    for score in chart.scores:
        counts[0 if score == 0 else 1 + min(_BINS - 1, int(score / top * _BINS))] += 1
    return counts, top


def histogram_as_text(chart: Histogram) -> str:
    """Return a line of bars from 0 to the highest score, and what stands at its ends."""
    counts, top = bins(chart)
    highest = max(counts)
    drawn = "".join(
        _LEVELS[round((len(_LEVELS) - 1) * count / highest)] if count else " " for count in counts
    )
    return f"0 |{drawn}| {top:.2f}"


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
            (self.at(step * n / self.factor), f"{step * n:.6g}".replace("-", MINUS))
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


def ranges(chart: RangeChart) -> tuple[list[tuple[Range, dict[str, Any]]], Scale]:
    """Return the rows of a chart with the places of their marks, and their common scale.

    Places are from 0 (left) to 100 (right); None is not drawn.
    """
    values = [other.value for row in chart.rows for other in row.others]
    for row in chart.rows:
        for one in (row.now, row.base):
            values += [one.value, *(one.bounds or ())]
    shared = scale(values, both_sides=chart.is_signed, factor=chart.factor, unit=chart.unit)
    place, reference = shared.position, chart.reference
    tracks = []
    for row in chart.rows:
        low, high = row.now.bounds or (None, None)
        base_low, base_high = row.base.bounds or (None, None)
        track = {
            "value": place(row.now.value),
            "low": place(low),
            "high": place(high),
            "base": place(row.base.value),
            "base_low": place(base_low),
            "base_high": place(base_high),
            "neutral": place(reference.now.value) if reference and row is not reference else None,
            "others": [place(other.value) for other in row.others],
        }
        tracks.append((row, track))
    return tracks, shared


def bars(chart: Bars) -> list[tuple[Range, float, float, float | None]]:
    """Return for each bar where it begins, how wide it is, and where the baseline's ends."""
    at = Scale(full=chart.full, both_sides=chart.is_signed).at
    zero, found = at(0.0), []
    for row in chart.rows:
        end = at(row.now.value or 0.0)
        base = None if row.base.value is None and not chart.is_signed else at(row.base.value or 0.0)
        found.append((row, min(zero, end), abs(end - zero), base))
    return found


def histogram(chart: Histogram) -> dict[str, Any]:
    """Return the distribution of scores.

    `bars` are (left, width, height, band) in per cent of the drawing, the first one for scores of
    exactly 0, the others for equal steps above; `limits` say where bands end, and at which score;
    `top` is the score at the right edge, `highest` how many the highest bar stands for.
    """
    counts, top = bins(chart)
    width, highest = 100 / len(counts), max(counts)
    step = top / (len(counts) - 1)
    edges = (0.0, *chart.limits)
    drawn = []
    for number, count in enumerate(counts):
        band = sum((number - 0.5) * step > edge for edge in edges)
        height = round(100 * count / highest, 2)
        drawn += [(round(number * width, 2), round(0.9 * width, 2), height, band)] if count else []
    limits = [(round(width + (100 - width) * at / top, 2), f"{at:g}") for at in chart.limits]
    return {"bars": drawn, "limits": limits, "top": f"{top:.2f}", "highest": highest}
