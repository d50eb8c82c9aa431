"""Each identity beside the band in which neutral phrases lie, and these beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fairgate.domain.outcomes import IdentityFinding, NeutralWording, PhraseFinding
from fairgate.domain.wording import listed
from fairgate.metrics.identity import MAX_DIFFERENCE, RETRIEVAL, UNREADABLE
from fairgate.reports import blocks, figures
from fairgate.reports.blocks import Inline, Row, RowKind, columns, figure, name, of_suites
from fairgate.reports.material import Material, pair_suites

_WHAT = {
    MAX_DIFFERENCE.id: "answers that change",
    RETRIEVAL.id: "documents in common with the text without a speaker",
    UNREADABLE.id: "answers that cannot be read",
}
_SHORT = 6
"""Rows shown where there is little room."""
_SHOWN = 3
"""Neutral phrases at each end that are named."""


def beside_neutral(material: Material) -> Iterator[blocks.Section]:
    """Yield for every suite with enough neutral phrases where they and the identities lie."""
    kind = blocks.Section(
        id="neutral-band",
        title="Identities beside neutral wording",
        blocks=(),
        chapter=blocks.Chapter.WHO,
        worth=70,
    )
    yield from of_suites(kind, pair_suites(material.result), partial(_of_suite, material))


def _of_suite(material: Material, suite: str, place: int) -> Iterator[blocks.Block]:
    for found in material.result.identities:
        beside = found.beside
        if found.suite == suite and beside is not None and _has_any(beside):
            yield blocks.Text(lines=list(_sentences(found, beside)))
            yield _table(material, found, beside, place)


def _has_any(beside: NeutralWording) -> bool:
    """Return whether anything differs at all."""
    return any(each.difference for each in (*beside.identities, *beside.phrases))


def _sentences(found: IdentityFinding, beside: NeutralWording) -> Iterator[Inline]:
    """Yield the main claim, the categories, the band, and the check of the phrases themselves."""
    metric = found.metric
    everyone, *categories = beside.groups
    more = "more" if everyone.difference > 0 else "fewer"
    claim = f"All identities: {figures.unsigned(abs(everyone.difference), metric)} points {more} "
    claim += f"{_WHAT[metric]} than for neutral wording ({figures.probability(everyone.p_value)})."
    if len(categories) > 1:
        shown = [
            f"{each.category} {figures.signed(each.difference, metric)} "
            f"({figures.probability(each.p_corrected)})"
            for each in categories
        ]
        claim += f" By category: {', '.join(shown)}."
    yield claim
    many = len(beside.phrases)
    band = f"{many} neutral phrases: another one would lie within "
    band += f"±{figures.unsigned(beside.band, metric)} points of their mean"
    inside = [each for each in beside.identities if abs(each.difference) <= beside.band]
    band += f", and so do {len(inside)} of {len(beside.identities)} identities."
    far = sorted(beside.phrases, key=lambda each: each.difference)
    ends = [
        f"{each.term} {figures.signed(each.difference, metric)}"
        for each in (*far[:_SHOWN], *far[-_SHOWN:])
        if each.difference
    ]
    if ends:
        band += f" Farthest from the others: {listed(ends, last='and')}."
    yield band
    expected = beside.level * many
    called = f"{beside.alarms} of the {many} neutral phrases" if beside.alarms else "No neutral one"
    differ = "differ" if beside.alarms > 1 else "differs"
    yield (
        f"Check of the test by itself: {called} {differ} from the rest at p ≤ {beside.level:g}, "
        f"where {expected:.1f} of {many} would by chance."
    )


def _table(
    material: Material, found: IdentityFinding, beside: NeutralWording, place: int
) -> blocks.Block:
    metric = found.metric

    def row(each: PhraseFinding) -> Row:
        is_inside = abs(each.difference) <= beside.band
        side = "inside" if is_inside else "above" if each.difference > 0 else "below"
        return Row(
            cells=[
                name(material.identity(found.suite, each.term)),
                figure(figures.signed(each.difference, metric)),
                side,
                figure(figures.probability(each.p_corrected)),
            ],
            kind=RowKind.NORMAL,
        )

    reference = Row(
        cells=[
            "neutral phrases",
            figure(f"±{figures.unsigned(beside.band, metric)}"),
            "the band",
            "",
        ],
        kind=RowKind.REFERENCE,
    )
    heads = columns("who", numbers=["points from neutral wording"])
    heads += columns("band")
    heads += columns(numbers=["corrected p"])
    number = f" {place}" if place > 1 else ""
    return blocks.Table(
        label=f"Identities beside neutral wording, {_WHAT[metric]}{number}",
        columns=heads,
        rows=[*map(row, beside.identities), reference],
        most=_SHORT,
    )
