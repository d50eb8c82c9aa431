"""From the baseline to now: every compared rule, and the metrics that a suite is known by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import Change, GateResult, RuleResult
from fairgate.metrics.catalogue import BY_ID
from fairgate.reports import figures
from fairgate.reports.escaping import name
from fairgate.reports.measured import Figure, figure
from fairgate.reports.trend_view import TrendGroup, TrendRow

Slice = tuple[str, str, tuple[tuple[str, str], ...]]
"""Metric, suite, where."""
_ALWAYS = (
    "asr/generation/controlled",
    "asr/generation/controlled/control",
    "asr/generation",
    "asr/generation/control",
    "asr/retrieval",
    "asr/retrieval/control",
    "rrs/mean",
    "rrs/mean/control",
)
_BY_SETTING = ("diff-bias/ambiguous", "diff-bias/disambiguated")
_UNITS = {
    (True, False): "share of pairs or answers, in %",
    (True, True): "points to either side of 0, which is best",
    (False, False): "score",
    (False, True): "score, 0 is best",
}


def trend_groups(result: GateResult, before: Sequence[Measurement]) -> list[TrendGroup]:
    """Return what can be told of both runs; nothing where they cannot be compared."""
    if result.overlap is None or result.overlap.incompatible:
        return []
    now, base = _by_slice(result.measurements), _by_slice(before)
    compared = {_slice(rule): rule for rule in result.rules if rule.change is not None}
    rows: dict[tuple[str, bool, bool], list[TrendRow]] = {}
    for key in dict.fromkeys((*compared, *_known(now))):
        metric, suite, _ = key
        row = _row(key, now.get(key), base.get(key), compared.get(key))
        if row.now.value is not None and row.base.value is not None:
            group = (suite, figures.is_rate(metric), _both_sides(metric, row))
            rows.setdefault(group, []).append(row)
    return [
        TrendGroup(
            suite=name(suite),
            unit=_UNITS[is_rate, both_sides],
            factor=100.0 if is_rate else 1.0,
            both_sides=both_sides,
            rows=found,
        )
        for (suite, is_rate, both_sides), found in rows.items()
    ]


def _by_slice(measurements: Sequence[Measurement]) -> Mapping[Slice, Measurement]:
    return {(m.metric, m.suite, tuple(sorted(m.where.items()))): m for m in measurements}


def _slice(rule: RuleResult) -> Slice:
    return rule.metric, rule.suite, tuple(sorted(rule.where.items()))


def _known(now: Mapping[Slice, Measurement]) -> list[Slice]:
    """Return the slices that are shown even where no rule compares them."""
    return [key for metric in _ALWAYS for key in now if key[0] == metric and not key[2]] + [
        key
        for metric in _BY_SETTING
        for key in now
        if key[0] == metric and [part for part, _ in key[2]] == ["setting"]
    ]


def _row(
    key: Slice, now: Measurement | None, base: Measurement | None, rule: RuleResult | None
) -> TrendRow:
    metric, _, where = key
    change = rule.change if rule else None
    return TrendRow(
        title=figures.title(metric),
        metric=metric,
        slice=name(", ".join(f"{part} {value}" for part, value in where)),
        base=_measured(base, change.base if change else None, metric),
        now=_measured(now, change.now if change else None, metric),
        change=figures.signed(figures.movement(change, metric), metric) if change else figures.NONE,
        interval=_interval(change, metric),
        failed=rule is not None and "regression" in rule.failed,
    )


def _measured(measured: Measurement | None, compared: float | None, metric: str) -> Figure:
    """Return what a run measured; what the rule compared where the run's value is not at hand."""
    if measured is not None and measured.value is not None:
        return figure(measured)
    return Figure(shown=figures.value(compared, metric), value=compared)


def _interval(change: Change | None, metric: str) -> str:
    if change is None:
        return figures.NONE
    return figures.signed_interval(figures.movement_interval(change, metric), metric)


def _both_sides(metric: str, row: TrendRow) -> bool:
    known = BY_ID.get(metric)
    values = (row.base.value or 0.0, row.now.value or 0.0)
    return (known is not None and known.better == "toward-zero") or min(values) < 0
