"""The accepted runs before this one, side by side: what a series of small changes adds up to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fairgate.domain.measurements import Measurement, Measurements
from fairgate.gate.baseline import Baseline
from fairgate.reports import figures
from fairgate.reports.affected import leading
from fairgate.reports.blocks import Block, Column, Depth, Form, Row, Table, Text
from fairgate.reports.material import Material
from fairgate.reports.section import Section
from fairgate.reports.spans import Inline, Kind, Span, Words, code, figure, muted, name

_SHOWN = 6
"""Accepted runs that stand before this run's column; the baseline's file holds further ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """A run with a column of its own."""

    head: Inline
    values: Measurements


def headline_history(material: Material) -> Iterator[Section]:
    """Yield, for the page's summary, what the headline's figure was in the accepted runs."""
    rule = leading(material.result)
    found = material.now.get(rule.metric, rule.suite, rule.where) if rule else None
    tables = [] if found is None else list(history(material, [found], "Headline over time"))
    blocks = [replace(one, depth=Depth.PAGE) for one in tables if isinstance(one, Table)]
    if blocks:
        yield Section(
            id="headline-history", title="Over the accepted runs", blocks=blocks, in_comment=False
        )


def history(
    material: Material, rows: Sequence[Measurement], label: str = "Accepted runs"
) -> Iterator[Block]:
    """Yield a table of the accepted runs up to now; nothing where there is only the baseline.

    `rows` are the measurements that the trend shows. The anchor, if any, comes first.
    """
    points = [*_anchor(material), *_accepted(material)]
    if len(points) < 2:
        return
    yield Table(
        label=label,
        caption="accepted runs, the latest last",
        columns=[
            Column(head="metric"),
            *(Column(head=point.head, is_number=True) for point in points),
            Column(head="now", is_number=True),
        ],
        rows=[
            Row(cells=[_named(row), *_cells(points, row), _value(row.value, row.metric)])
            for row in rows
        ],
        depth=Depth.FULL,
    )
    baseline = material.baseline
    older = len(baseline.history) + 1 - _SHOWN if baseline else 0
    if older > 0:
        words = f"{figures.count(older, 'older accepted run')} in the baseline's file."
        yield Text(lines=[words], form=Form.SMALL, depth=Depth.FULL)


def _accepted(material: Material) -> list[_Point]:
    """Return the latest accepted runs, the oldest first; the last one is the baseline."""
    baseline = material.baseline
    if baseline is None:
        return []
    points = [
        _Point(head=_head(run.date, run.commit), values=Measurements(run.measurements))
        for run in baseline.history
    ]
    return [*points, _point(baseline, "baseline")][-_SHOWN:]


def _anchor(material: Material) -> list[_Point]:
    return [] if material.anchor is None else [_point(material.anchor, "anchor")]


def _point(run: Baseline, word: str) -> _Point:
    head: Words = [word]
    head += [" ", Span(run.date, Kind.DATE)] if run.date else []
    return _Point(head=head, values=Measurements(run.measurements))


def _head(date: str, commit: str) -> Inline:
    """Return what an accepted run is called: its date, else its commit."""
    if date:
        return [Span(date, Kind.DATE)]
    return [code(commit[:12])] if commit else "accepted"


def _cells(points: Sequence[_Point], row: Measurement) -> list[Inline]:
    return [
        _value(point.values.value(row.metric, row.suite, row.where), row.metric) for point in points
    ]


def _value(number: float | None, metric: str) -> Inline:
    return figure(figures.value(number, metric))


def _named(row: Measurement) -> Inline:
    where = ", ".join(f"{part} {level}" for part, level in row.where.items())
    inside: Words = [", ", name(where)] if where else []
    return [figures.title(row.metric), *inside, *muted([" ", code(row.metric)])]
