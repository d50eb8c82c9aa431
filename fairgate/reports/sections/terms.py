"""Who is affected: how often naming an identity changes the answer, by category and term."""

from __future__ import annotations

from collections.abc import Iterator

from fairgate.domain.measurements import Measurement
from fairgate.reports import figures
from fairgate.reports.affected import CONTROLLED, PLAIN, main_metric
from fairgate.reports.blocks import Block, Column, Depth, Form, Range, RangeChart, RowKind, Text
from fairgate.reports.judged_rows import pair_suites
from fairgate.reports.material import Material
from fairgate.reports.section import Section, numbered
from fairgate.reports.sections.rules import likely_range
from fairgate.reports.spans import Inline, figure, name

_CLAIMS = {
    CONTROLLED: "answers that differ from most answers with neutral wording",
    PLAIN: "answers that differ from the answer without a speaker",
}
_SHORT = 8
_NOTES = 3


def terms(material: Material) -> Iterator[Section]:
    """Yield a chart of every suite with categories, their terms, and neutral wording."""
    sections, suites = [], []
    for suite in pair_suites(material.result):
        metric = main_metric(material, suite)
        if not material.now.by(metric, suite, "term"):
            continue
        suites.append(suite)
        sections.append(
            Section(
                id="terms",
                title="Who is affected",
                blocks=[
                    Text(lines=[f"Share of {_CLAIMS[metric]}."]),
                    _chart(material, suite, metric, place=len(suites)),
                    *_notes(material, suite, metric),
                ],
                worth=80,
            )
        )
    yield from numbered(sections, suites)


def _chart(material: Material, suite: str, metric: str, *, place: int) -> RangeChart:
    suffix = f" {place}" if place > 1 else ""
    return RangeChart(
        label=f"Rates by category and term{suffix}",
        rows=[*_grouped(material, suite, metric), *_neutral(material, suite, metric)],
        head="category and term",
        value="rate",
        interval=likely_range(material),
        facts=[
            Column(head="changed", is_number=True),
            Column(head="rate without a speaker", is_number=True, is_wide=True),
        ],
        most=_SHORT,
    )


def _grouped(material: Material, suite: str, metric: str) -> Iterator[Range]:
    """Yield each category above its terms, the highest rates first."""
    known = material.identities(suite)
    of_terms = _ranked(material.now.by(metric, suite, "term"))
    for group in _ranked(material.now.by(metric, suite, "category")):
        category = group.where["category"]
        yield _range(material, group, name(category), RowKind.GROUP)
        for measured in of_terms:
            identity = known.get(measured.where["term"])
            if identity is not None and identity.category == category:
                yield _range(material, measured, name(identity.name), RowKind.NORMAL)


def _ranked(measured: list[Measurement]) -> list[Measurement]:
    return sorted(measured, key=lambda m: -1.0 if m.value is None else m.value, reverse=True)


def _range(material: Material, measured: Measurement, words: Inline, kind: RowKind) -> Range:
    suite, where = measured.suite, measured.where
    plain = material.now.value(PLAIN, suite, where)
    return Range(
        name=words,
        now=figures.figure(measured),
        base=figures.figure(material.before.get(measured.metric, suite, where)),
        facts=[figure(_counts(measured)), figure(figures.value(plain, PLAIN))],
        kind=kind,
    )


def _counts(measured: Measurement) -> str:
    return f"{measured.violated or 0:,} of {measured.decided:,}"


def _neutral(material: Material, suite: str, metric: str) -> Iterator[Range]:
    measured = material.now.get(f"{metric}/control", suite)
    if measured is not None and measured.value is not None:
        plain = material.now.value(f"{PLAIN}/control", suite)
        yield Range(
            name="neutral wording",
            now=figures.figure(measured),
            facts=[figure(_counts(measured)), figure(figures.value(plain, PLAIN))],
            kind=RowKind.REFERENCE,
        )


def _notes(material: Material, suite: str, metric: str) -> Iterator[Block]:
    measured = material.now.by(metric, suite, "term")
    notes = list(dict.fromkeys(m.note for m in measured if m.note))
    if notes:
        line = f"A dash instead of a range: {'; '.join(notes[:_NOTES])}."
        yield Text(lines=[line], form=Form.SMALL, depth=Depth.FULL)
