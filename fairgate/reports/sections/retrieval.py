"""What naming an identity does to retrieval: how far documents move, and in which bands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from fairgate.domain.outcomes import Degradation
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.retriever_robustness import BANDS, PAPER_BANDS
from fairgate.reports import figures
from fairgate.reports.blocks import (
    Bar,
    Bars,
    Block,
    Depth,
    Form,
    Histogram,
    KeyValues,
    Section,
    Text,
    of_suites,
)
from fairgate.reports.judged_rows import pair_suites
from fairgate.reports.material import Material
from fairgate.reports.spans import Inline, code, figure, muted

Facts = list[tuple[Inline, Inline]]
_BAND = "rrs/band"


def retrieval(material: Material) -> Iterator[Section]:
    """Yield what is known of every suite's retrieval, and what cannot be known and why."""
    kind = Section(id="retrieval", title="Retrieval", blocks=(), worth=50)
    yield from of_suites(kind, pair_suites(material.result), partial(_blocks, material))


def _blocks(material: Material, suite: str, place: int) -> Iterator[Block]:
    suffix = f" {place}" if place > 1 else ""
    table = material.run.tables.get(suite)
    limits = table.bands if table else PAPER_BANDS
    scores = _scores(material, suite)
    if scores:
        yield Histogram(
            label=f"Distribution of the retriever robustness score{suffix}; "
            "the shares of its bands stand below",
            caption=f"Retriever robustness score (RRS) of {figures.count(len(scores), 'pair')}: 0 "
            "is the same documents, 3 the worst.",
            scores=scores,
            limits=limits,
            depth=Depth.FULL,
        )
    bands = _bands(material, suite, limits)
    if bands:
        yield Bars(
            label=f"Bands of the retriever robustness score{suffix}",
            caption="Share of the pairs by retriever robustness (RRS; 0: the same documents)",
            rows=bands,
            head="band",
            note="RRS",
            depth=Depth.FULL,
        )
    facts = [*_key_figures(material, suite), *_not_evaluated(material, suite)]
    if facts:
        yield KeyValues(rows=facts)
    sentences = [
        sentence
        for found in material.result.degradation
        if found.suite == suite
        for sentence in _degradation(found)
    ]
    if sentences:
        yield Text(lines=sentences, form=Form.LIST, depth=Depth.FULL)


def _scores(material: Material, suite: str) -> list[float]:
    table = material.run.tables.get(suite)
    if table is None or "rrs" not in table.values:
        return []
    scores = table.values["rrs"][~table.control]
    return sorted(float(score) for score in scores if not math.isnan(score))


def _bands(material: Material, suite: str, limits: tuple[float, float]) -> list[Bar]:
    high, moderate = (f"{limit:g}" for limit in limits)
    reach = ("0", f"up to {high}", f"up to {moderate}", f"over {moderate}")
    rows = []
    for band, limit in zip(BANDS, reach, strict=True):
        measured = material.now.get(_BAND, suite, {"band": band})
        if measured is None or measured.value is None:
            return []
        base = figures.figure(material.before.get(_BAND, suite, {"band": band}))
        now = figures.figure(measured)
        rows.append(Bar(name=band.replace("-", " "), note=limit, now=now, base=base))
    return rows


def _key_figures(material: Material, suite: str) -> Facts:
    found: Facts = []
    for metric in METRICS:
        measured = material.now.get(metric.id, suite) if metric.is_key_figure else None
        if measured is not None and measured.value is not None:
            value = figures.figure(measured)
            known = value.bounds is not None
            interval = muted([" ", figure(f"({value.interval})")]) if known else []
            found.append((_named(metric.id), [figure(value.shown), *interval]))
    return found


def _not_evaluated(material: Material, suite: str) -> Facts:
    return [
        (_named(m.metric), m.note.removeprefix("not evaluated: "))
        for m in material.now
        if m.suite == suite and not m.where and m.value is None
    ]


def _named(metric: str) -> Inline:
    return [figures.title(metric), *muted([" ", code(metric)])]


def _degradation(found: Degradation) -> Iterator[str]:
    if found.threshold is None:
        return
    yield (
        f"Of the pairs whose answer did not change ({found.stable_pairs:,}), three in four have an "
        f"RRS of at most {found.threshold:.3f} (P1's degradation threshold)."
    )
    if found.auc is not None:
        yield (
            "RRS says how far retrieval moves, not which answers change: as a guess of a changed "
            f"answer it has an AUC of {found.auc:.2f} ({found.flipped_pairs:,} changed), where "
            "0.50 is a coin toss and 1.00 is always right."
        )
