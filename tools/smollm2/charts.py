"""Charts of the page as SVG: values with their intervals, in panels beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.head { font-weight: 600; } .small { font-size: 12px; fill: #59636e; }
.grid { stroke: #d1d9e0; } .zero { stroke: #818b98; }
.band { fill: #d1d9e0; opacity: .55; } .mid { stroke: #59636e; stroke-dasharray: 4 3; }
.range { stroke: #0969da; stroke-width: 2; } .dot { fill: #0969da; }
.back { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; } .small { fill: #9198a1; } .grid { stroke: #3d444d; }
.zero { stroke: #818b98; } .band { fill: #3d444d; } .mid { stroke: #9198a1; }
.range { stroke: #4493f8; } .dot { fill: #4493f8; } .back { fill: #0d1117; }
}
"""
_ROW, _TOP, _LABELS, _PANEL, _GAP = 22, 64, 170, 290, 30


class Value(NamedTuple):
    """A value with its interval, None where there is none, in the chart's unit."""

    value: float
    interval: tuple[float, float] | None


class Panel(NamedTuple):
    """A column of values; `beside` is drawn behind all of them (the neutral prefixes)."""

    title: str
    values: Sequence[Value | None]
    low: float
    high: float
    step: float
    beside: Value | None = None


def intervals(title: str, labels: Sequence[str], panels: Sequence[Panel], note: str) -> str:
    """Return a chart with a row for each label and a panel for each column of values.

    A label that begins with `#` heads a group, and its values are not drawn.
    """
    width = _LABELS + len(panels) * (_PANEL + _GAP)
    bottom = _TOP + _ROW * len(labels)
    height = bottom + 52
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">'
        ),
        f"<title>{escape(title)}</title><desc>{escape(note)}</desc><style>{_STYLE}</style>",
        f'<rect class="back" width="{width}" height="{height}"/>',
        f'<text class="head" x="8" y="22">{escape(title)}</text>',
    ]
    for row, label in enumerate(labels):
        place = f'x="{8 if label.startswith("#") else 20}" y="{_TOP + _ROW * row + 15}"'
        kind = ' class="head"' if label.startswith("#") else ""
        parts.append(f"<text{kind} {place}>{escape(label.lstrip('#'))}</text>")
    for at, panel in enumerate(panels):
        parts += _drawn(panel, _LABELS + at * (_PANEL + _GAP), bottom)
    parts.append(f'<text class="small" x="8" y="{height - 10}">{escape(note)}</text></svg>\n')
    return "\n".join(parts)


def _drawn(panel: Panel, left: float, bottom: float) -> list[str]:
    def x(value: float) -> float:
        within = min(max(value, panel.low), panel.high)
        return round(left + (within - panel.low) / (panel.high - panel.low) * _PANEL, 1)

    parts = [f'<text class="head" x="{left}" y="{_TOP - 14}">{escape(panel.title)}</text>']
    for number in range(round((panel.high - panel.low) / panel.step) + 1):
        value = panel.low + number * panel.step
        kind = "zero" if value == 0 else "grid"
        parts += [
            f'<line class="{kind}" x1="{x(value)}" x2="{x(value)}" y1="{_TOP}" y2="{bottom}"/>',
            (
                f'<text class="small" x="{x(value)}" y="{bottom + 16}" text-anchor="middle">'
                f"{value:g}</text>"
            ),
        ]
    if panel.beside is not None:
        if panel.beside.interval is not None:
            low, high = map(x, panel.beside.interval)
            parts.append(
                f'<rect class="band" x="{low}" y="{_TOP}" width="{round(high - low, 1)}" '
                f'height="{bottom - _TOP}"/>'
            )
        middle = x(panel.beside.value)
        parts.append(f'<line class="mid" x1="{middle}" x2="{middle}" y1="{_TOP}" y2="{bottom}"/>')
    for row, one in enumerate(panel.values):
        if one is None:
            continue
        y = _TOP + _ROW * row + 11
        if one.interval is not None:
            low, high = map(x, one.interval)
            parts.append(f'<line class="range" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>')
        parts.append(f'<circle class="dot" cx="{x(one.value)}" cy="{y}" r="4.5"/>')
    return parts
