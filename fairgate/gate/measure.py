"""Make tables of assessed units, measurements of tables, and comparisons of identities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fairgate.domain.outcomes import (
    Degradation,
    Measurement,
)
from fairgate.domain.units import Assessed, Unit
from fairgate.gate.baseline import Baseline
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.columns import AssessedSuite, AssessedUnits, Column
from fairgate.metrics.metric import (
    Metric,
    Table,
    demographic_rows,
    observe,
)
from fairgate.metrics.retriever_robustness import BANDS
from fairgate.stats.association import auc
from fairgate.stats.interval import NoInterval, confidence_interval
from fairgate.stats.observations import Floats, Observations, estimate
from fairgate.suites.suite import Suite

_DECIMALS = 6
_NOTHING_DECIDED = "nothing was decided"


def rounded(value: float) -> float:
    """Return a number as results have it: six decimals, and 0 without a sign."""
    return round(float(value), _DECIMALS) + 0.0


def tabulate(
    suites: Mapping[str, Suite], assessed: Sequence[Assessed], baseline: Baseline | None
) -> dict[str, Table]:
    """Return a table for every suite; bands of scores may be the baseline's quartiles."""
    of_suites = AssessedUnits.of(assessed).suites
    tables = {}
    for name, suite in suites.items():
        kept_suite = baseline.suites.get(name) if baseline else None
        bands = suite.bands(kept_suite.quartiles if kept_suite else None)
        tables[name] = table_of(suite, of_suites.get(name, ()), bands)
        suite.verify(tables[name])
    return tables


def table_of(suite: Suite, rows: Sequence[Assessed], bands: tuple[float, float]) -> Table:
    """Return the table of one suite's units, in their order."""
    assessed = AssessedSuite.of(rows)
    none = Column.of(())
    columns = {name: assessed.columns[name] if len(rows) else none for name in suite.columns}
    absent: dict[str, str] = {}
    for name, column in columns.items():
        if len(column) and len(column.reasons) == len(column):
            why = suite.absent(name, list(column.reasons.values()))
            if why is not None:
                absent[name] = why
    return table_with(
        suite.id,
        assessed.units,
        values={name: column.rounded for name, column in columns.items()},
        reasons={name: column.reasons for name, column in columns.items()},
        not_evaluated=absent,
        bands=bands,
    )


def table_with(
    suite: str,
    units: Sequence[Unit],
    *,
    values: Mapping[str, Floats],
    reasons: Mapping[str, Mapping[int, str]],
    not_evaluated: Mapping[str, str],
    bands: tuple[float, float],
) -> Table:
    """Return the table whose rows are `units` and whose columns are `values`."""
    names = list(dict.fromkeys(unit.cluster for unit in units))
    numbers = {name: number for number, name in enumerate(names)}
    dimensions = units[0].dimensions if units else ()
    # A suite of advisory relations alone was made for them.
    advisory = [] if all(unit.advisory for unit in units) else [u for u in units if u.advisory]
    return Table(
        suite=suite,
        keys=[unit.key for unit in units],
        clusters=np.asarray([numbers[unit.cluster] for unit in units], dtype=np.int64),
        cluster_names=names,
        control=np.asarray([unit.is_control for unit in units], dtype=bool),
        dimensions={name: [unit.dimensions[name] for unit in units] for name in dimensions},
        values=values,
        reasons=reasons,
        not_evaluated=not_evaluated,
        advisory=frozenset(unit.dimensions["relation"] for unit in advisory),
        bands=bands,
    )


def slices(metric: Metric, table: Table) -> Iterator[dict[str, str]]:
    """Yield the slices in which a metric is reported: the whole, then by each dimension."""
    if metric.of_planned and not metric.arms[0].select(table).any():
        return
    if metric.units.reported:
        yield from _crossed_slices(metric, table)
        return
    if "band" not in metric.dimensions:
        yield {}
    for dimension in metric.dimensions:
        if dimension in metric.units.dimensions and "band" in metric.dimensions:
            continue
        for level in BANDS if dimension == "band" else _levels(table, dimension):
            yield {dimension: level}


def _levels(table: Table, dimension: str) -> list[str]:
    """Return the values of a dimension that have a line of their own; one relation has none."""
    if dimension not in table.dimensions:
        return []
    rows = demographic_rows(table) & table.counted_rows({dimension: ""})
    levels = [level for level in table.levels(dimension, rows) if level]
    return levels if dimension != "relation" or len(levels) > 1 else []


def _crossed_slices(metric: Metric, table: Table) -> Iterator[dict[str, str]]:
    """Yield the combinations that occur; dimensions with one level add none."""
    if not all(arm.select(table).any() for arm in metric.arms):
        return
    rows = np.flatnonzero(metric.arms[0].select(table))
    levels = {name: table.dimension(name).taken(rows) for name in metric.dimensions}
    for combination in metric.units.reported:
        others = (levels[name].first_rows() for name in combination[1:] if name != "category")
        if any(len(values_of_dimension.keys() - {""}) < 2 for values_of_dimension in others):
            continue
        values_of_dimension = dict.fromkeys(
            zip(*(levels[name] for name in combination), strict=True)
        )
        for values in values_of_dimension:
            if "" not in values:
                yield dict(zip(combination, values, strict=True))


def measure(tables: Mapping[str, Table], metrics: Iterable[Metric] = METRICS) -> list[Measurement]:
    """Return the metrics in every slice; those that a suite cannot have are listed with a note."""
    wanted = list(metrics)
    measurements: list[Measurement] = []
    for table in tables.values():
        absent = [metric for metric in wanted if metric.column in table.not_evaluated]
        measurements += [
            measure_slice(metric, table, where)
            for metric in wanted
            if metric.column in table.values and metric not in absent
            for where in slices(metric, table)
        ]
        measurements += [measure_slice(metric, table, {}) for metric in absent]
    return measurements


def measure_slice(metric: Metric, table: Table, where: Mapping[str, str]) -> Measurement:
    """Return one metric in a slice, with its confidence interval."""
    if metric.column in table.not_evaluated:
        note = f"not evaluated: {table.not_evaluated[metric.column]}"
        return Measurement(metric=metric.id, suite=table.suite, where=where, note=note)
    observations = observe(metric, table, where)
    measurement = measured_once(metric, table, where, observations)
    if measurement.value is None:
        return replace(measurement, note=_NOTHING_DECIDED)
    limits = metric.least, metric.greatest
    interval = confidence_interval(
        observations,
        is_share=metric.is_share,
        limits=limits if all(map(math.isfinite, limits)) else None,
    )
    if isinstance(interval, NoInterval):
        return replace(measurement, note=interval.reason)
    return replace(measurement, interval=(rounded(interval.low), rounded(interval.high)))


def measured_once(
    metric: Metric, table: Table, where: Mapping[str, str], observations: Observations
) -> Measurement:
    """Return a metric in a slice, without its interval."""
    value = estimate(observations)
    if metric.of_planned:
        observations = observe(replace(metric, of_planned=False), table, where)
    sliced = np.asarray(observations.weights, dtype=np.float64)[observations.arms] > 0
    decided = observations.decided & sliced
    return Measurement(
        metric=metric.id,
        suite=table.suite,
        where=where,
        value=rounded(value) if decided.any() and not np.isnan(value) else None,
        decided=int(decided.sum()),
        inconclusive=int((sliced & ~observations.decided).sum()),
        violated=int(observations.values[decided].sum()) if metric.violations else None,
    )


def degradation(tables: Mapping[str, Table]) -> list[Degradation]:
    """Return P1's threshold: the third quartile of RRS among pairs whose answer did not flip."""
    degradations = []
    for table in tables.values():
        if "rrs" not in table.values:
            continue
        rows = demographic_rows(table)
        scores, flips = table.values["rrs"], table.values["generation"]
        defined = rows & ~np.isnan(scores) & ~np.isnan(flips)
        stable, flipped = scores[defined & (flips == 0)], scores[defined & (flips == 1)]
        both = len(stable) and len(flipped)
        area = auc(scores[defined], flips[defined] == 1) if both else None
        degradations.append(
            Degradation(
                suite=table.suite,
                threshold=rounded(np.quantile(stable, 0.75)) if len(stable) else None,
                auc=None if area is None else rounded(area),
                stable_pairs=len(stable),
                flipped_pairs=len(flipped),
            )
        )
    return degradations


def quartiles(table: Table) -> tuple[float, float] | None:
    """Return Q1 and Q3 of RRS over the demographic pairs; None without scores."""
    if "rrs" not in table.values:
        return None
    scores = table.values["rrs"][demographic_rows(table)]
    scores = scores[~np.isnan(scores)]
    if not len(scores):
        return None
    low, high = (rounded(np.quantile(scores, q)) for q in (0.25, 0.75))
    return low, high
