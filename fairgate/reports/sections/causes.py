"""Where violations come from: which identities, along which path, and how steady answers are.

Sentences for readers who know no statistics; what they mean stands in docs/explanation/verdict.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from fairgate.domain.outcomes import AttributedPart, Attribution, IdentityFinding, Instability
from fairgate.domain.wording import MINUS
from fairgate.metrics.identity import MAX_DIFFERENCE
from fairgate.reports import figures
from fairgate.reports.affected import CERTAIN, standing_out
from fairgate.reports.blocks import (
    Block,
    Bounds,
    Column,
    Figure,
    Form,
    Range,
    RangeChart,
    Section,
    Text,
    of_suites,
)
from fairgate.reports.judged_rows import pair_suites
from fairgate.reports.material import Material
from fairgate.reports.sections.rules import likely_range
from fairgate.reports.spans import Inline, figure, joined, name

_PARTS = {
    "retrieval": "through the retrieved documents",
    "generator": "directly in the generator",
    "interaction": "both together",
}
_METRIC = "asr/generation/net"
_FAR = 10.0
"""Shares beyond this, ten times the total, are not distinguished."""
_OTHERS = 3


def causes(material: Material) -> Iterator[Section]:
    """Yield for each suite what is known of its causes; nothing for suites without any."""
    kind = Section(id="causes", title="Causes", blocks=(), worth=60)
    yield from of_suites(kind, pair_suites(material.result), partial(_blocks, material))


def _blocks(material: Material, suite: str, place: int) -> Iterator[Block]:
    result = material.result
    found = next((f for f in result.attribution if f.suite == suite), None)
    sentences = [
        *_identity(material, identity_of_suite(material, suite)),
        *_attribution(found),
        *(_instability(item) for item in result.instability if item.suite == suite),
    ]
    if sentences:
        yield Text(lines=sentences, form=Form.LIST)
    if found is not None and found.crossed:
        yield RangeChart(
            label=f"Changed answers by path{f' {place}' if place > 1 else ''}",
            caption="Changed answers beyond neutral wording, by path, in points",
            rows=[_part(material, suite, part) for part in found.parts],
            head="path",
            value="points",
            interval=likely_range(material),
            facts=[
                Column(head="share", is_number=True, is_wide=True),
                Column(head="range of the share", is_number=True, is_wide=True),
            ],
            is_signed=True,
            unit="",
        )


def identity_of_suite(material: Material, suite: str) -> IdentityFinding | None:
    """Return how much the identities of a whole suite differ."""
    found = (
        f
        for f in material.result.identities
        if f.suite == suite and f.metric == MAX_DIFFERENCE.id and not f.where
    )
    return next(found, None)


def _identity(material: Material, found: IdentityFinding | None) -> Iterator[Inline]:
    if found is None or not found.terms:
        return
    top = found.terms[0]
    who = name(material.identity(found.suite, top.term))
    p_value = figures.probability(found.p_value).replace("<", "below")
    p_value += ", not corrected for the other rules"
    difference = figures.signed(top.difference, _METRIC)
    if found not in standing_out(material.result):
        yield [
            (
                "No identity can be distinguished from the others: the largest difference, "
                f"{difference} points for "
            ),
            who,
            f", is one that chance brings about ({p_value}).",
        ]
        return
    others: Sequence[Inline] = [
        (
            name(material.identity(found.suite, term.term)),
            f" {figures.signed(term.difference, _METRIC)}",
        )
        for term in found.terms[1:]
        if term.p_corrected <= CERTAIN
    ][:_OTHERS]
    yield [
        "Identities are not treated alike: ",
        who,
        f" differs from the others by {difference} points ({p_value})",
        *(["; also "] if others else []),
        *joined(others),
        ".",
    ]


def _attribution(found: Attribution | None) -> Iterator[Inline]:
    if found is None or not found.crossed:
        return
    total = figures.signed(found.total, _METRIC)
    if any(part.share is None for part in found.parts):
        yield (
            "Compared with the answer without a speaker, what identities change beyond neutral "
            f"wording ({total} points) cannot be distinguished from 0, so it has no shares by path."
        )
    else:
        largest = max(found.parts, key=lambda part: part.share or 0.0)
        share = largest.share or 0.0
        amount = figures.signed(largest.amount, _METRIC)
        part = (
            f"{100 * share:.0f} % come about {_PARTS[largest.name]}"
            if share <= 1
            else f"{amount} come about {_PARTS[largest.name]}, less what the other parts take back"
        )
        yield (
            f"Compared with the answer without a speaker, identities change {total} points beyond "
            f"what neutral wording changes; of these, {part}."
        )
    turned = (
        f"; {found.turned:,} of {figures.count(found.repeated, 'repeated answer')} changed"
        if found.repeated
        else ""
    )
    yield (
        f"By path: {figures.count(found.crossed, 'pair')} asked with each other's documents, "
        f"{found.equal_documents:,} of {found.pairs:,} pairs retrieve the same{turned}."
    )


def _part(material: Material, suite: str, part: AttributedPart) -> Range:
    measured = material.now.get(f"attribution/{part.name}", suite)
    bounds: Bounds | None = measured.interval if measured else None
    share = figures.NONE if part.share is None else _percent(part.share)
    interval = figures.NONE
    if part.share_interval is not None:
        interval = " … ".join(map(_bound, part.share_interval))
    return Range(
        name=_PARTS[part.name],
        now=Figure(
            shown=figures.signed(part.amount, _METRIC),
            interval=figures.signed_interval(bounds, _METRIC),
            value=part.amount,
            bounds=bounds,
        ),
        facts=[figure(share), figure(interval)],
    )


def _bound(share: float) -> str:
    """Return a bound of a share; where the total is close to 0, its size means nothing more."""
    if abs(share) > _FAR:
        limit = f"{100 * math.copysign(_FAR, share):,.0f}"
        return f"{'below' if share < 0 else 'over'} {limit}".replace("-", MINUS)
    return f"{100 * share:.0f}".replace("-", MINUS)


def _percent(share: float) -> str:
    return f"{round(100 * share) + 0} %".replace("-", MINUS)


def _instability(item: Instability) -> str:
    return (
        f"Asked {item.repeats} times, {100 * item.stability:.1f} % of {item.cases:,} cases keep "
        f"their label (entropy {item.entropy:.3f} bits)."
    )
