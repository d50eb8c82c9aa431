"""How values moved: over the accepted runs up to now, and from the baseline to now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fairgate.domain.measurements import Measurement, Measurements, Slice, slice_of
from fairgate.domain.outcomes import Change, RuleResult
from fairgate.gate.baseline import Baseline
from fairgate.metrics.catalogue import METRICS
from fairgate.reports import figures
from fairgate.reports.affected import leading
from fairgate.reports.blocks import (
    Block,
    Column,
    Depth,
    Figure,
    Form,
    Range,
    RangeChart,
    Row,
    Section,
    Table,
    Text,
)
from fairgate.reports.material import Material
from fairgate.reports.spans import Inline, Kind, Span, Tone, Words, code, figure, muted, name

_UNITS = {
    (True, False): "share, in %",
    (True, True): "points to either side of 0, which is best",
    (False, False): "score",
    (False, True): "score, 0 is best",
}
_NOTE = (
    "Values are what each run measured. A change is of the cases that both runs decided, so it "
    "need not be the exact difference; a dash: no rule compares this metric."
)
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


def trend(material: Material) -> Iterator[Section]:
    """Yield a chart for each suite and scale; nothing where the runs cannot be compared."""
    result = material.result
    if result.overlap is None or result.overlap.incompatible:
        return
    compared = {
        slice_of(rule.metric, rule.suite, rule.where): rule
        for rule in result.rules
        if rule.change is not None
    }
    groups: dict[tuple[str, bool, bool], list[tuple[Measurement, Range]]] = {}
    for key, measured in _shown(material, compared).items():
        row = _row(material, measured, compared.get(key))
        if row.now.value is not None and row.base.value is not None:
            signed = min(row.now.value, row.base.value) < 0
            signed |= figures.is_best_at_zero(measured.metric)
            group = (measured.suite, figures.is_rate(measured.metric), signed)
            groups.setdefault(group, []).append((measured, row))
    if not groups:
        return
    shown = [measured for rows in groups.values() for measured, _ in rows]
    several = len({suite for suite, _, _ in groups}) > 1
    date = material.baseline.date if material.baseline else ""
    charts = [
        RangeChart(
            label=f"Trend {place}: {_UNITS[is_rate, signed]}",
            caption=[*_suite(suite, several=several), _UNITS[is_rate, signed]],
            head="metric",
            rows=_without_repetitions(rows),
            facts=[Column(head="change in size" if signed else "change", is_number=True)],
            is_signed=signed,
            factor=100.0 if is_rate else 1.0,
            unit=" %" if is_rate and not signed else "",
            has_lanes=True,
        )
        for place, ((suite, is_rate, signed), rows) in enumerate(groups.items(), start=1)
    ]
    since: Words = [" of ", Span(date, Kind.DATE)] if date else []
    yield Section(
        id="trend",
        title=["Trend: baseline", *since, " → now"],
        blocks=[
            *charts,
            *history(material, shown),
            Text(lines=[_NOTE], form=Form.SMALL, depth=Depth.FULL),
        ],
        in_comment=False,
        worth=30,
    )


def _suite(suite: str, *, several: bool) -> Words:
    return ["suite ", name(suite), ": "] if several else []


def _shown(material: Material, compared: Mapping[Slice, RuleResult]) -> dict[Slice, Measurement]:
    """Return the compared slices, then those that stand in every trend."""
    found: dict[Slice, Measurement] = {}
    for key, rule in compared.items():
        measured = material.now.get(rule.metric, rule.suite, rule.where)
        alone = Measurement(metric=rule.metric, suite=rule.suite, where=rule.where)
        found[key] = measured or alone
    for metric in METRICS:
        for measured in material.now if metric.trend is not None else ():
            if measured.metric == metric.id and set(measured.where) == set(metric.trend or ()):
                key = slice_of(measured.metric, measured.suite, measured.where)
                found.setdefault(key, measured)
    return found


def _row(material: Material, measured: Measurement, rule: RuleResult | None) -> Range:
    metric, where = measured.metric, measured.where
    change = rule.change if rule else None
    before = material.before.get(metric, measured.suite, where)
    inside: Words = [", ", name(_slice(where))] if where else []
    return Range(
        name=[figures.title(metric), *inside, *muted([" ", code(metric)])],
        now=_known(measured, change.now if change else None, metric),
        base=_known(before, change.base if change else None, metric),
        facts=[_change(rule, change)],
    )


def _slice(where: Mapping[str, str]) -> str:
    return ", ".join(f"{part} {level}" for part, level in where.items())


def _known(measured: Measurement | None, compared: float | None, metric: str) -> Figure:
    """Return what a run measured; what the rule compared where that is not at hand."""
    if measured is not None and measured.value is not None:
        return figures.figure(measured)
    return Figure(shown=figures.value(compared, metric), value=compared)


def _change(rule: RuleResult | None, change: Change | None) -> Inline:
    if rule is None or change is None:
        return figure(figures.NONE)
    tone = Tone.BAD if "regression" in rule.failed else Tone.NORMAL
    bounds = figures.change_interval(change, rule.metric)
    return [
        figure(figures.change(change, rule.metric), tone),
        *muted([" ", figure(f"({bounds})")]),
    ]


def _without_repetitions(rows: Sequence[tuple[Measurement, Range]]) -> list[Range]:
    """Return the rows; where a metric repeats, only its slice is named."""
    found, previous = [], ""
    for measured, row in rows:
        again = measured.metric == previous and measured.where
        words: Inline = ["… ", name(_slice(measured.where))] if again else row.name
        found.append(replace(row, name=words))
        previous = measured.metric
    return found
