"""Where the violations come from: between identities, along which path, and how steady answers are.

Sentences and rows for readers who know no statistics; what they mean stands in
docs/explanation/verdict.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fairgate.domain.findings import AttributedPart, Attribution, IdentityFinding, Instability
from fairgate.domain.outcomes import GateResult
from fairgate.reports import figures
from fairgate.reports.cause_view import CauseView, PartRow
from fairgate.reports.escaping import name
from fairgate.reports.measured import Bounds, Figure

_PARTS = {
    "retrieval": "through the retrieved documents",
    "generator": "directly in the generator",
    "interaction": "both together",
}
_METRIC = "asr/generation/net"
_CERTAIN = 0.05
_FAR = 10.0
"""Shares beyond this, ten times the total, are not told apart."""


def cause_views(result: GateResult) -> list[CauseView]:
    """Return for each suite what is known of its causes; nothing for suites without any."""
    views = []
    for suite in result.plan.tasks:
        attribution = next((f for f in result.attribution if f.suite == suite), None)
        identity = next((f for f in result.identities if f.suite == suite and not f.where), None)
        steady = [f for f in result.instability if f.suite == suite]
        sentences = [
            *_identity(identity),
            *_attribution(attribution),
            *(_instability(item) for item in steady),
        ]
        if sentences:
            parts = attribution.parts if attribution and attribution.crossed else ()
            views.append(
                CauseView(
                    suite=name(suite),
                    sentences=sentences,
                    parts=[_row(part, _bounds(result, suite, part)) for part in parts],
                )
            )
    return views


def _identity(found: IdentityFinding | None) -> Iterator[str]:
    if found is None or not found.terms:
        return
    top = found.terms[0]
    p_value = figures.probability(found.p_value).replace("<", "below")
    p_value += ", not corrected for the other rules"
    if found.p_value > _CERTAIN:
        yield (
            "No identity can be told from the others: the largest difference, "
            f"{figures.signed(top.difference, _METRIC)} points for {name(top.term)}, is one that "
            f"chance brings about ({p_value})."
        )
        return
    more = [term for term in found.terms[1:] if term.p_corrected <= _CERTAIN][:3]
    others = ", ".join(
        f"{name(term.term)} {figures.signed(term.difference, _METRIC)}" for term in more
    )
    yield (
        f"Identities are not treated alike: {name(top.term)} differs from the others by "
        f"{figures.signed(top.difference, _METRIC)} points ({p_value})"
        f"{f'; also {others}' if others else ''}."
    )


def _attribution(found: Attribution | None) -> Iterator[str]:
    if found is None or not found.crossed:
        return
    total = figures.signed(found.total, _METRIC)
    if any(part.share is None for part in found.parts):
        yield (
            f"What demographics change beyond neutral wording ({total} points) cannot be told "
            "from 0, so it has no shares by path."
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
        yield f"Of the {total} points beyond neutral wording, {part}."
    turned = (
        f"; {found.turned:,} of {figures.count(found.repeated, 'repeated answer')} turned"
        if found.repeated
        else ""
    )
    yield (
        f"By path: {figures.count(found.crossed, 'pair')} asked with each other's documents, "
        f"{found.equal_documents:,} of {found.pairs:,} pairs retrieve the same{turned}."
    )


def _row(part: AttributedPart, bounds: Bounds | None) -> PartRow:
    return PartRow(
        path=_PARTS[part.name],
        points=figures.signed(part.amount, _METRIC),
        measured=Figure(
            shown=figures.signed(part.amount, _METRIC),
            interval=figures.signed_interval(bounds, _METRIC),
            value=part.amount,
            bounds=bounds,
        ),
        share=figures.NONE if part.share is None else _percent(part.share),
        interval=figures.NONE
        if part.share_interval is None
        else " … ".join(map(_bound, part.share_interval)),
    )


def _bounds(result: GateResult, suite: str, part: AttributedPart) -> Bounds | None:
    """Return the interval of a part in points, as it was measured for the whole suite."""
    wanted = f"attribution/{part.name}"
    return next(
        (
            m.interval
            for m in result.measurements
            if m.metric == wanted and m.suite == suite and not m.where
        ),
        None,
    )


def _bound(share: float) -> str:
    """Return a bound of a share; where the total is close to 0, its size means nothing more."""
    if abs(share) > _FAR:
        return (
            f"{'below' if share < 0 else 'over'} {100 * math.copysign(_FAR, share):,.0f}".replace(
                "-", figures.MINUS
            )
        )
    return f"{100 * share:.0f}".replace("-", figures.MINUS)


def _percent(share: float) -> str:
    return f"{round(100 * share) + 0} %".replace("-", figures.MINUS)


def _instability(item: Instability) -> str:
    return (
        f"Asked {item.repeats} times, {100 * item.stability:.1f} % of {item.cases:,} cases keep "
        f"their label (entropy {item.entropy:.3f} bits)."
    )


def cause_rows(result: GateResult) -> dict[str, Sequence[dict[str, object]]]:
    """Return the findings for the run record, as plain values."""
    return {
        "identities": [
            {
                "suite": found.suite,
                "where": dict(found.where),
                "value": found.value,
                "p_value": found.p_value,
                "sources": found.sources,
                "terms": [
                    {
                        "category": term.category,
                        "term": term.term,
                        "difference": term.difference,
                        "p_value": term.p_value,
                        "p_corrected": term.p_corrected,
                        "decided": term.decided,
                    }
                    for term in found.terms
                ],
            }
            for found in result.identities
        ],
        "attribution": [
            {
                "suite": found.suite,
                "total": found.total,
                "parts": {
                    part.name: {
                        "amount": part.amount,
                        "share": part.share,
                        "share_interval": list(part.share_interval)
                        if part.share_interval
                        else None,
                    }
                    for part in found.parts
                },
                "pairs": found.pairs,
                "equal_documents": found.equal_documents,
                "crossed": found.crossed,
                "undecided": found.undecided,
                "repeated": found.repeated,
                "turned": found.turned,
            }
            for found in result.attribution
        ],
        "instability": [
            {
                "suite": item.suite,
                "relation": item.relation,
                "repeats": item.repeats,
                "cases": item.cases,
                "stability": item.stability,
                "entropy": item.entropy,
            }
            for item in result.instability
        ],
    }
