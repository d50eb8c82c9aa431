"""From tables to measurements with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np

from fairgate.domain.measurements import Better, Measurement
from fairgate.domain.outcomes import Degradation, Instability
from fairgate.domain.units import Unit, Value
from fairgate.gate.judge import ReadingsOf
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import Metric, demographic_rows, observe
from fairgate.metrics.retriever_robustness import BANDS
from fairgate.metrics.table import Table
from fairgate.stats.association import auc, entropy, stability
from fairgate.stats.bootstrap import BootstrapSettings, bootstrap_many
from fairgate.stats.interval import TOO_FEW_CLUSTERS, Interval, NoInterval, t_interval
from fairgate.stats.observations import ClusterTotals, Observations, cluster_totals, estimate

DECIMALS = 6
Found = tuple[tuple[float, float] | None, str]
"""An interval, or None and why there is none."""
_DECIMALS = 6
Answers = Mapping[tuple[str, str, str], Sequence[Value]]
"""Suite, relation and key to how the relation's oracle reads a case's repeats; cases with an
unreadable one are left out."""


def slices(metric: Metric, table: Table) -> Iterator[dict[str, str]]:
    """Yield the slices in which a metric is reported: the whole, then by each dimension."""
    if metric.of_planned and not metric.arms[0].select(table).any():
        return
    if metric.reported:
        yield from _crossed_slices(metric, table)
        return
    if "band" not in metric.dimensions:
        yield {}
    for dimension in metric.dimensions:
        if dimension in metric.row_dimensions and "band" in metric.dimensions:
            continue
        for level in BANDS if dimension == "band" else _levels(table, dimension):
            yield {dimension: level}


def _levels(table: Table, dimension: str) -> list[str]:
    """Return the values of a dimension that have a line of their own; one relation has none."""
    if dimension not in table.dimensions:
        return []
    rows = demographic_rows(table) & table.counted_rows({dimension: ""})
    found = [level for level in table.levels(dimension, rows) if level]
    return found if dimension != "relation" or len(found) > 1 else []


def _crossed_slices(metric: Metric, table: Table) -> Iterator[dict[str, str]]:
    """Yield the combinations that occur; dimensions with one level add none."""
    if not all(arm.select(table).any() for arm in metric.arms):
        return
    rows = np.flatnonzero(metric.arms[0].select(table))
    levels = {name: table.dimension(name).taken(rows) for name in metric.dimensions}
    for combination in metric.reported:
        others = (levels[name].first_rows() for name in combination[1:] if name != "category")
        if any(len(found.keys() - {""}) < 2 for found in others):
            continue
        found = dict.fromkeys(zip(*(levels[name] for name in combination), strict=True))
        for values in found:
            if "" not in values:
                yield dict(zip(combination, values, strict=True))


def measure(
    tables: Mapping[str, Table],
    *,
    confidence: float,
    seed: int,
    has_intervals: bool = True,
    metrics: Iterable[Metric] = METRICS,
) -> list[Measurement]:
    """Return the metrics in every slice, with cluster-bootstrap intervals if they are asked for.

    Deterministic given the seed. Metrics that a suite cannot have are listed with a note.
    """
    wanted = [metric for metric in metrics if not metric.compares_terms]  # gate/identity.py
    return [
        measurement
        for table in tables.values()
        for measurement in _measure_table(
            table, wanted, confidence, seed, has_intervals=has_intervals
        )
    ]


def _measure_table(
    table: Table, metrics: Sequence[Metric], confidence: float, seed: int, *, has_intervals: bool
) -> list[Measurement]:
    present: list[tuple[Metric, Measurement]] = []
    totals: list[ClusterTotals] = []
    absent: list[Measurement] = []
    for metric in metrics:
        if metric.column in table.not_evaluated:
            absent.append(_absent_measurement(metric, table))
        elif metric.column in table.values:
            for where in slices(metric, table):
                # Kept are sums a source: the cases of all slices would be many times the table.
                observations = observe(metric, table, where)
                present.append((metric, measured_once(metric, table, where, observations)))
                totals += [cluster_totals(observations)] if has_intervals else []
    none: Found = (None, "")
    observed = [metric for metric, _ in present]
    intervals = _intervals(observed, totals, confidence, seed) if has_intervals else repeat(none)
    found = (_with_interval(measured, next(intervals)) for _, measured in present)
    return [*found, *absent]


def measure_slice(
    metric: Metric, table: Table, where: Mapping[str, str], *, confidence: float, seed: int = 0
) -> Measurement:
    """Return one metric in a slice that no report line covers (two dimensions at once, say)."""
    if metric.column in table.not_evaluated:
        return _absent_measurement(metric, table, where)
    observations = observe(metric, table, where)
    totals = cluster_totals(observations)
    measured = measured_once(metric, table, where, observations)
    return _with_interval(measured, next(_intervals([metric], [totals], confidence, seed)))


def _absent_measurement(
    metric: Metric, table: Table, where: Mapping[str, str] | None = None
) -> Measurement:
    note = "not evaluated: " + table.not_evaluated[metric.column]
    return Measurement(metric=metric.id, suite=table.suite, where=where or {}, note=note)


def _intervals(
    metrics: Sequence[Metric], totals: Sequence[ClusterTotals], confidence: float, seed: int
) -> Iterator[Found]:
    settings = BootstrapSettings(confidence=confidence)
    found = bootstrap_many(totals, settings, seed=seed)
    for metric, total, result in zip(metrics, totals, found, strict=True):
        if metric.student and isinstance(result, NoInterval) and result.reason == TOO_FEW_CLUSTERS:
            result = t_interval(total, confidence=confidence)  # noqa: PLW2901 (the better one)
        if isinstance(result, Interval):
            yield _possible(metric, result.low, result.high), ""
        else:
            yield None, result.reason


def _possible(metric: Metric, low: float, high: float) -> tuple[float, float]:
    """Cut what Student's interval of a share promises below 0 or above 1."""
    if metric.is_rate and len(metric.arms) == 1 and metric.better is not Better.TOWARD_ZERO:
        return max(0.0, low), min(1.0, high)
    return low, high


def measured_once(
    metric: Metric,
    table: Table,
    where: Mapping[str, str],
    observations: Observations,
) -> Measurement:
    """Return a metric in a slice, without its interval."""
    value = estimate(observations)
    if metric.of_planned:
        observations = observe(replace(metric, of_planned=False), table, where)
    counts = np.asarray([arm.weight > 0 for arm in metric.arms], dtype=bool)
    sliced = counts[observations.arms]
    decided = observations.decided & sliced
    known = decided.any() and not np.isnan(value)
    return Measurement(
        metric=metric.id,
        suite=table.suite,
        where=where,
        value=round(float(value), DECIMALS) + 0.0 if known else None,
        decided=int(decided.sum()),
        inconclusive=int((sliced & ~observations.decided).sum()),
        violated=int(observations.values[decided].sum()) if metric.violations else None,
    )


def _with_interval(measured: Measurement, found: Found) -> Measurement:
    interval, note = found
    rounded = None
    if interval is not None:
        rounded = round(interval[0], DECIMALS) + 0.0, round(interval[1], DECIMALS) + 0.0
    stated = "nothing was decided" if measured.value is None else note
    return replace(measured, interval=rounded, note=stated)


def degradation(tables: Mapping[str, Table]) -> list[Degradation]:
    """Return P1's threshold: the third quartile of RRS among pairs whose answer did not flip."""
    found = []
    for table in tables.values():
        if "rrs" not in table.values:
            continue
        rows = demographic_rows(table)
        scores, flips = table.values["rrs"], table.values["generation"]
        known = rows & ~np.isnan(scores) & ~np.isnan(flips)
        stable, flipped = scores[known & (flips == 0)], scores[known & (flips == 1)]
        both = len(stable) and len(flipped)
        area = auc(scores[known], flips[known] == 1) if both else None
        found.append(
            Degradation(
                suite=table.suite,
                threshold=round(float(np.quantile(stable, 0.75)), DECIMALS)
                if len(stable)
                else None,
                auc=None if area is None else round(area, DECIMALS),
                stable_pairs=len(stable),
                flipped_pairs=len(flipped),
            )
        )
    return found


def quartiles(table: Table) -> tuple[float, float] | None:
    """Return Q1 and Q3 of RRS over the demographic pairs; None without scores."""
    if "rrs" not in table.values:
        return None
    scores = table.values["rrs"][demographic_rows(table)]
    scores = scores[~np.isnan(scores)]
    if not len(scores):
        return None
    low, high = (round(float(np.quantile(scores, q)), DECIMALS) for q in (0.25, 0.75))
    return low, high


def instability(units: Sequence[Unit], readings: ReadingsOf) -> list[Instability]:
    """Return entropy and stability for each suite and relation; empty without repeats."""
    answers: dict[tuple[str, str, str], Sequence[Value]] = {}
    for unit in units:
        relation = unit.dimensions.get("relation")
        if relation is None or not readings[unit.suite].has_repeats:
            continue
        for key in unit.asks.values():
            name = unit.suite, relation, key
            repeats = () if name in answers else readings[unit.suite].repeats_of(key, relation)
            values = [reading.value for reading in repeats if reading.value is not None]
            if values and len(values) == len(repeats):
                answers[name] = values
    if not answers:
        return []
    return steadiness(units, answers)


def steadiness(units: Sequence[Unit], answers: Answers) -> list[Instability]:
    """Return entropy and stability of the cases that each relation's pairs consist of."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for unit in units:
        if "relation" in unit.dimensions:
            keys = groups.setdefault((unit.suite, unit.dimensions["relation"]), {})
            keys |= dict.fromkeys(unit.asks.values())
    found = []
    for (suite, relation), keys in groups.items():
        names = [(suite, relation, key) for key in keys]
        known = [answers[name] for name in names if name in answers]
        if known:
            mean = math.fsum(entropy(case) for case in known) / len(known)
            found.append(
                Instability(
                    suite=suite,
                    relation=relation,
                    repeats=max(len(case) for case in known),
                    cases=len(known),
                    stability=round(stability(known), _DECIMALS),
                    entropy=round(mean, _DECIMALS) + 0.0,
                )
            )
    return found
