"""Charts for texts that keep their spaces: bars of blocks beside the figures they stand for.

Nothing in here is escaped; names are cut, so that lines stay short.
"""

from __future__ import annotations

from fairgate.reports.blocks import (
    Bars,
    Column,
    Figure,
    Histogram,
    Range,
    RangeChart,
    Row,
    RowKind,
    Table,
)
from fairgate.reports.escaping import excerpt, plain
from fairgate.reports.figures import NONE
from fairgate.reports.spans import Inline, figure, spans

_BAR = 24
_SHORT_BAR = 12
_NAME = 34
_BINS = 30
_LEVELS = "▁▂▃▄▅▆▇█"


def bar(value: float, full: float, width: int) -> str:
    """Return a bar of at most `width` blocks, `full` being the longest; never empty above 0."""
    if full <= 0 or value <= 0:
        return ""
    return "█" * max(1, min(width, round(width * value / full)))


def words_of(words: Inline, width: int = _NAME) -> str:
    """Return words on one line, cut to `width`."""
    return excerpt("".join(plain(span.shown) for span in spans(words)), width)


def ranges(chart: RangeChart) -> str:
    """Return a line for each of the largest values, and the reference last."""
    rows = [row for row in chart.rows if row.kind is RowKind.NORMAL]
    if chart.most is not None:
        rows = sorted(rows, key=lambda row: -(row.now.value or 0.0))[: chart.most]
    rows += [row for row in chart.rows if row.kind is RowKind.REFERENCE]
    full = _full(chart)
    width = max(len(words_of(row.name)) for row in rows)
    value, reach = (max(map(len, column)) for column in zip(*map(_shown, rows), strict=True))
    lines = [
        f"{words_of(row.name):<{width}}  {row.now.shown:>{value}}  {row.now.interval:^{reach}}  "
        f"{_signed_bar(row.now, full, _BAR, is_signed=chart.is_signed)}{_was(row.base)}"
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _shown(row: Range) -> tuple[str, str]:
    return row.now.shown, row.now.interval


def _full(chart: RangeChart) -> float:
    values = (abs(row.now.value) for row in chart.rows if row.now.value is not None)
    return max([0.01, *values])


def _signed_bar(value: Figure, full: float, width: int, *, is_signed: bool) -> str:
    blocks = bar(abs(value.value or 0.0), full, width)
    if not is_signed:
        return f"{blocks:<{width}}"
    left, right = (blocks, "") if (value.value or 0.0) < 0 else ("", blocks)
    return f"{left:>{width // 2}}|{right:<{width // 2}}"


def _was(base: Figure) -> str:
    return "" if base.shown == NONE else f"  (was {base.shown})"


def as_table(chart: RangeChart) -> Table:
    """Return a range chart as a table whose bars are a column."""
    full = _full(chart)
    columns = [
        Column(head=chart.head),
        Column(head=chart.value, is_number=True),
        *([Column(head="base", is_number=True)] if chart.has_base else []),
        *([] if chart.is_signed else [Column(head="")]),
        Column(head=chart.interval, is_number=True),
        *chart.facts,
    ]
    return Table(
        label=chart.label,
        caption=chart.caption,
        columns=columns,
        rows=[Row(cells=_cells(chart, row, full), kind=row.kind) for row in chart.rows],
    )


def _cells(chart: RangeChart, row: Range, full: float) -> list[Inline]:
    blocks = bar(abs(row.now.value or 0.0), full, _SHORT_BAR)
    return [
        row.name,
        figure(row.now.shown),
        *([figure(row.base.shown)] if chart.has_base else []),
        *([] if chart.is_signed else [blocks]),
        figure(row.now.interval),
        *row.facts,
    ]


def bars(chart: Bars) -> str:
    """Return a line for each bar."""
    name, note = (
        max((len(words_of(words)) for words in column), default=0)
        for column in ([row.name for row in chart.rows], [row.note for row in chart.rows])
    )
    value = max(len(row.now.shown) for row in chart.rows)
    lines = [
        f"{words_of(row.name):<{name}}  {words_of(row.note):<{note}}  {row.now.shown:>{value}}  "
        f"{_signed_bar(row.now, chart.full, _BAR, is_signed=chart.is_signed)}{_was(row.base)}"
        for row in chart.rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def bins(chart: Histogram) -> tuple[list[int], float]:
    """Return how many scores are exactly 0, then in equal steps above, and the last step's end."""
    top = max([chart.scores[-1] * 1.05, *(limit * 1.25 for limit in chart.limits), 0.01])
    counts = [0] * (_BINS + 1)
    for score in chart.scores:
        counts[0 if score == 0 else 1 + min(_BINS - 1, int(score / top * _BINS))] += 1
    return counts, top


def histogram(chart: Histogram) -> str:
    """Return a line of bars from 0 to the highest score, and what stands at its ends."""
    counts, top = bins(chart)
    highest = max(counts)
    drawn = "".join(
        _LEVELS[round((len(_LEVELS) - 1) * count / highest)] if count else " " for count in counts
    )
    return f"0 |{drawn}| {top:.2f}"
