"""What each suite measured, slice by slice: terms, categories, bands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fairgate.domain.cases import TestPlan
from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import Degradation
from fairgate.engine.gate import GateRun
from fairgate.metrics.retriever_robustness import BANDS, PAPER_BANDS
from fairgate.reports import figures
from fairgate.reports.escaping import name, sentence
from fairgate.reports.view import BandRow, SliceRow, SuiteView

_CONTROLLED = "asr/generation/controlled"
_PLAIN = "asr/generation"
_CONTROL = "asr/generation/control"
_RETRIEVAL = (
    "asr/retrieval",
    "asr/retrieval/control",
    "rrs/mean",
    "rrs/mean/control",
    "retrieval/overlap",
)
_CLAIMS = {
    _CONTROLLED: "answers that differ from most neutral answers",
    _PLAIN: "answers that differ from the unprefixed answer",
}

Where = tuple[tuple[str, str], ...]
Measured = Mapping[tuple[str, Where], Measurement]


def names_of_terms(plan: TestPlan, suite: str) -> dict[str, str]:
    """Return the noun phrase that stands for each term in the texts."""
    return {
        pair.term: name(pair.noun_phrase or pair.term) for pair in plan.pairs if pair.suite == suite
    }


def suite_views(run: GateRun, before: Sequence[Measurement]) -> list[SuiteView]:
    """Return a view of every suite; `before` holds the baseline's measurements."""
    return [_suite_view(run, suite, before) for suite in run.result.plan.tasks]


def _suite_view(run: GateRun, suite: str, before: Sequence[Measurement]) -> SuiteView:
    now, base = _by_slice(run.result.measurements, suite), _by_slice(before, suite)
    main = _PLAIN if _value(now, _CONTROLLED) is None else _CONTROLLED
    control, neutral = now.get((_CONTROL, ())), now.get((f"{main}/control", ()))
    table = run.tables.get(suite)
    limits = table.bands if table else PAPER_BANDS
    return SuiteView(
        suite=name(suite),
        claim=_CLAIMS[main],
        metric=main,
        terms=_rows(run.result.plan, suite, "term", main, now, base),
        categories=_rows(run.result.plan, suite, "category", main, now, base),
        control=figures.value(control.value if control else None, _CONTROL),
        control_value=control.value if control else None,
        neutral=figures.value(neutral.value if neutral else None, main),
        neutral_value=neutral.value if neutral else None,
        neutral_interval=figures.interval(neutral.interval if neutral else None, main),
        neutral_bounds=neutral.interval if neutral else None,
        neutral_counts=_counts(neutral) if neutral else figures.NONE,
        bands=_bands(now, base, limits),
        retrieval=[
            (m.metric, _with_interval(m))
            for metric in _RETRIEVAL
            if (m := now.get((metric, ()))) is not None and m.value is not None
        ],
        degradation=[
            said
            for found in run.result.degradation
            if found.suite == suite
            for said in _degradation(found)
        ],
        not_evaluated=[
            (metric, sentence(m.note))
            for (metric, where), m in now.items()
            if not where and m.value is None
        ],
        scores=_scores(run, suite),
        limits=limits,
    )


def _by_slice(measurements: Sequence[Measurement], suite: str) -> Measured:
    return {(m.metric, tuple(sorted(m.where.items()))): m for m in measurements if m.suite == suite}


def _value(measured: Measured, metric: str, where: Where = ()) -> float | None:
    found = measured.get((metric, where))
    return found.value if found else None


def _with_interval(measured: Measurement) -> str:
    shown = figures.value(measured.value, measured.metric)
    if measured.interval is None:
        return shown
    return f"{shown} ({figures.interval(measured.interval, measured.metric)})"


def _rows(
    plan: TestPlan, suite: str, dimension: str, main: str, now: Measured, base: Measured
) -> list[SliceRow]:
    """Return the slices of a dimension, highest rate first, equal ones in the plan's order."""
    categories = {p.term: p.category for p in plan.pairs if p.suite == suite and not p.control}
    names = names_of_terms(plan, suite)
    rows = [
        _row(m, dimension, categories, names, now=now, base=base)
        for (metric, where), m in now.items()
        if metric == main and [part for part, _ in where] == [dimension]
    ]
    return sorted(rows, key=lambda row: -(row.value if row.value is not None else -1.0))


def _row(
    measured: Measurement,
    dimension: str,
    categories: Mapping[str, str],
    names: Mapping[str, str],
    *,
    now: Measured,
    base: Measured,
) -> SliceRow:
    level = measured.where[dimension]
    where = ((dimension, level),)
    then, unprefixed = _value(base, measured.metric, where), _value(now, _PLAIN, where)
    is_term = dimension == "term"
    return SliceRow(
        name=names.get(level, name(level)) if is_term else name(level),
        category=name(categories.get(level, "") if is_term else level),
        term=name(level) if is_term else "",
        rate=figures.value(measured.value, measured.metric),
        value=measured.value,
        interval=figures.interval(measured.interval, measured.metric),
        bounds=measured.interval,
        base=figures.value(then, measured.metric),
        base_value=then,
        plain=figures.value(unprefixed, _PLAIN),
        plain_value=unprefixed,
        counts=_counts(measured),
        note=sentence(measured.note),
    )


def _counts(measured: Measurement) -> str:
    return f"{measured.violated or 0:,} of {measured.decided:,}"


def _bands(now: Measured, base: Measured, limits: tuple[float, float]) -> list[BandRow]:
    high, moderate = (f"{limit:g}" for limit in limits)
    shown = ("0", f"up to {high}", f"up to {moderate}", f"over {moderate}")
    rows = []
    for band, limit in zip(BANDS, shown, strict=True):
        share = _value(now, "rrs/band", (("band", band),))
        if share is None:
            return []
        then = _value(base, "rrs/band", (("band", band),))
        rows.append(
            BandRow(
                band=band.replace("-", " "),
                limits=limit,
                share=share,
                base_share=then,
                shown=figures.value(share, "rrs/band"),
                base=figures.value(then, "rrs/band"),
            )
        )
    return rows


def _degradation(found: Degradation) -> list[str]:
    if found.threshold is None:
        return []
    stable = (
        f"Of the pairs whose answer did not change ({found.stable_pairs:,}), three in four have an "
        f"RRS of at most {found.threshold:.3f} (P1's degradation threshold)."
    )
    sentences = [stable]
    if found.auc is not None:
        sentences.append(
            f"RRS says how far retrieval moves, not which answers change: its AUC for a changed "
            f"answer is {found.auc:.2f} ({found.flipped_pairs:,} changed), where 0.50 is a coin "
            "toss and 1.00 a perfect guess."
        )
    return sentences


def _scores(run: GateRun, suite: str) -> list[float]:
    table = run.tables.get(suite)
    if table is None or "rrs" not in table.values:
        return []
    scores = table.values["rrs"][~table.control]
    return sorted(float(score) for score in scores if not math.isnan(score))
