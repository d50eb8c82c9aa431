"""Judged units to the tables that every metric is computed from: one a suite, a claim a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairgate.domain.units import Claim, Judged, Reason
from fairgate.engine.baseline import Baseline
from fairgate.metrics.table import Column, Table
from fairgate.suites.suite import Suite, column_values

_DECIMALS = 6


def tabulate(
    suites: Mapping[str, Suite], judged: Sequence[Judged], baseline: Baseline | None
) -> dict[str, Table]:
    """Return a table for every suite; bands of scores may be the baseline's quartiles."""
    groups: dict[str, list[Judged]] = {name: [] for name in suites}
    for row in judged:
        groups[row.unit.suite].append(row)
    tables = {}
    for name, suite in suites.items():
        known = baseline.suites.get(name) if baseline else None
        bands = suite.bands(known.quartiles if known else None)
        tables[name] = table_of(suite, groups[name], bands)
        suite.verify(tables[name])
    return tables


def table_of(suite: Suite, rows: Sequence[Judged], bands: tuple[float, float]) -> Table:
    """Return the table of one suite's units, in their order."""
    names = list(dict.fromkeys(row.unit.cluster for row in rows))
    numbers = {name: number for number, name in enumerate(names)}
    values: dict[str, Column] = {}
    reasons: dict[str, dict[int, str]] = {}
    absent: dict[str, str] = {}
    for column in suite.columns:
        claims = column_values(rows, column)
        undecided = {i: claim for i, claim in enumerate(claims) if isinstance(claim, Reason)}
        values[column] = _column(claims)
        reasons[column] = {i: str(reason) for i, reason in undecided.items()}
        if rows and len(undecided) == len(rows):
            why = suite.absent(column, list(undecided.values()))
            if why is not None:
                absent[column] = why
    dimensions = rows[0].unit.dimensions if rows else ()
    return Table(
        suite=suite.id,
        keys=[row.unit.key for row in rows],
        clusters=np.asarray([numbers[row.unit.cluster] for row in rows], dtype=np.int64),
        cluster_names=names,
        control=np.asarray([row.unit.is_control for row in rows], dtype=bool),
        dimensions={name: [row.unit.dimensions[name] for row in rows] for name in dimensions},
        values=values,
        reasons=reasons,
        not_evaluated=absent,
        advisory=_advisory(rows),
        bands=bands,
    )


def _advisory(rows: Sequence[Judged]) -> frozenset[str]:
    """Return the advisory relations; none where the suite has no others: it was made for them."""
    if all(row.unit.advisory for row in rows):
        return frozenset()
    return frozenset(row.unit.dimensions["relation"] for row in rows if row.unit.advisory)


def _column(claims: Sequence[Claim]) -> Column:
    numbers = [np.nan if isinstance(claim, Reason) else float(claim) for claim in claims]
    return np.asarray(np.round(numbers, _DECIMALS), dtype=np.float64)
