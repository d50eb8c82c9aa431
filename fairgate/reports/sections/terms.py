"""Who is affected: how often naming an identity changes the answer, by category and term."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fairgate.domain.measurements import Measurement
from fairgate.domain.units import Reason
from fairgate.metrics.retriever_robustness import OVERLAP
from fairgate.reports import figures
from fairgate.reports.affected import (
    CONTROLLED,
    PLAIN,
    SAME_DOCUMENTS,
    main_metric,
    same_documents,
)
from fairgate.reports.blocks import (
    Block,
    Column,
    Depth,
    Figure,
    Form,
    Range,
    RangeChart,
    RowKind,
    Section,
    Text,
    numbered,
)
from fairgate.reports.judged_rows import pair_suites
from fairgate.reports.material import Beside, Material
from fairgate.reports.sections.rules import likely_range
from fairgate.reports.spans import Inline, figure, name
from fairgate.stats.interval import NoInterval, wilson

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
                count=_named(material, suite),
                worth=80,
            )
        )
    yield from numbered(sections, suites)


def _named(material: Material, suite: str) -> int:
    return sum(not identity.is_control for identity in material.identities(suite).values())


def _chart(material: Material, suite: str, metric: str, *, place: int) -> RangeChart:
    suffix = f" {place}" if place > 1 else ""
    documents = [Column(head=SAME_DOCUMENTS, is_number=True)] if _has(material, suite) else []
    return RangeChart(
        label=f"Rates by category and term{suffix}",
        rows=[*_grouped(material, suite, metric), *_neutral(material, suite, metric)],
        usual=material.beside.id if len(material.choices) > 1 else "",
        others=[(other.id, other.word) for other in _others(material, suite, metric)],
        head="category and term",
        value="rate",
        interval=likely_range(material),
        facts=[
            Column(head="changed", is_number=True),
            Column(head="changed against no speaker", is_number=True, is_wide=True),
            *documents,
        ],
        most=_SHORT,
    )


def _has(material: Material, suite: str) -> bool:
    """Return whether a suite's documents are known."""
    return material.now.value(OVERLAP.id, suite) is not None


def _documents(material: Material, measured: Measurement) -> list[Inline]:
    known = _has(material, measured.suite)
    return [figure(same_documents(material, measured))] if known else []


def _others(material: Material, suite: str, metric: str) -> list[Beside]:
    """Return what else a reader can have beside the rates: what has any of them."""
    return [
        choice
        for choice in material.choices[1:]
        if any(choice.values.by(metric, suite, by) for by in ("category", "term"))
    ]


def _before(material: Material, measured: Measurement) -> list[Figure]:
    metric, suite = measured.metric, measured.suite
    others = _others(material, suite, metric)
    return [figures.figure(other.values.get(metric, suite, measured.where)) for other in others]


def _grouped(material: Material, suite: str, metric: str) -> Iterator[Range]:
    """Yield each category above its terms, the highest rates first."""
    known, arm = material.identities(suite), _Arm(material, suite)
    of_terms = _ranked(material.now.by(metric, suite, "term"))
    for group in _ranked(material.now.by(metric, suite, "category")):
        category = group.where["category"]
        yield _range(material, group, name(category), arm.sources(category=category), RowKind.GROUP)
        for measured in of_terms:
            identity = known.get(measured.where["term"])
            if identity is not None and identity.category == category:
                sources = arm.sources(term=measured.where["term"])
                yield _range(material, measured, name(identity.name), sources, RowKind.NORMAL)


def _ranked(measured: list[Measurement]) -> list[Measurement]:
    return sorted(measured, key=lambda m: -1.0 if m.value is None else m.value, reverse=True)


class _Arm:
    """Of how many sources the pairs of a suite's test arm are, slice by slice."""

    def __init__(self, material: Material, suite: str) -> None:
        """Count the sources with a decided pair."""
        found: dict[tuple[str, str], set[str]] = {}
        for row in material.named_pairs:
            if row.suite == suite and not isinstance(row.claim, Reason):
                found.setdefault((row.category, row.term), set()).add(row.source)
        self._found: dict[tuple[str, str], set[str]] = {}
        for (category, term), sources in found.items():
            for at in (("category", category), ("term", term)):
                self._found.setdefault(at, set()).update(sources)

    def sources(self, **where: str) -> int:
        """Return how many sources have a decided pair in a slice of one dimension."""
        (at,) = where.items()
        return len(self._found.get(at, ()))


def _ranged(material: Material, measured: Measurement, sources: int) -> Figure:
    """Return a rate with an interval, of the score method where the bootstrap has too few clusters.

    Its cases are sources, not pairs: pairs of a source move together, so that a category of many
    terms has no more of them than one term has.
    """
    found = figures.figure(measured)
    if found.bounds is not None or found.value is None:
        return found
    confidence = material.options.confidence
    interval = wilson(found.value * sources, sources, confidence=confidence)
    if isinstance(interval, NoInterval):
        return found
    bounds = interval.low, interval.high
    return replace(found, bounds=bounds, interval=figures.interval(bounds, measured.metric))


def _range(
    material: Material, measured: Measurement, words: Inline, sources: int, kind: RowKind
) -> Range:
    suite, where = measured.suite, measured.where
    plain = material.now.value(PLAIN, suite, where)
    return Range(
        name=words,
        now=_ranged(material, measured, sources),
        base=figures.figure(material.before.get(measured.metric, suite, where)),
        facts=[
            figure(_counts(measured)),
            figure(figures.value(plain, PLAIN)),
            *_documents(material, measured),
        ],
        kind=kind,
        others=_before(material, measured),
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
            base=figures.figure(material.before.get(measured.metric, suite)),
            facts=[
                figure(_counts(measured)),
                figure(figures.value(plain, PLAIN)),
                *_documents(material, measured),
            ],
            kind=RowKind.REFERENCE,
            others=[
                figures.figure(other.values.get(measured.metric, suite))
                for other in _others(material, suite, metric)
            ],
        )


def _notes(material: Material, suite: str, metric: str) -> Iterator[Block]:
    few = [m for m in material.now.by(metric, suite, "term") if m.interval is None]
    if any(m.value is not None for m in few):
        line = (
            "Where too few sources changed for a bootstrap, the range is the score interval "
            "(Wilson) of a share of the sources."
        )
        yield Text(lines=[line], form=Form.SMALL, depth=Depth.FULL)
    notes = list(dict.fromkeys(m.note for m in few if m.note and m.value is None))
    if notes:
        line = f"A dash instead of a range: {'; '.join(notes[:_NOTES])}."
        yield Text(lines=[line], form=Form.SMALL, depth=Depth.FULL)
