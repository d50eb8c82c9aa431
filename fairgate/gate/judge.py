"""Answers to judged units, and these to tables, a claim a column; pure, no model involved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fairgate.domain.cases import TestPlan
from fairgate.domain.ports import Executed, SystemUnderTest
from fairgate.domain.units import Claim, Judged, Reason, Unit
from fairgate.gate.baseline import Baseline
from fairgate.metrics.table import Column, RowReasons, Table
from fairgate.suites.readings import Readings
from fairgate.suites.suite import Executions, Suite, VectorsOf

ReadingsOf = Mapping[str, Readings]
"""Suite to its readings."""
JudgeUnits = Callable[[Suite, Sequence[Unit], Readings, Executions, VectorsOf], list[Judged]]
_DECIMALS = 6


def readings_of(suites: Mapping[str, Suite], executions: Executed) -> ReadingsOf:
    """Return the readings of every suite; an answer is read when it is first needed."""
    return {
        name: Readings(name, suite.oracles, suite.unstable_margin, executions)
        for name, suite in suites.items()
    }


def judge_units(
    suite: Suite,
    units: Sequence[Unit],
    readings: Readings,
    executions: Executions,
    vectors: VectorsOf,
) -> list[Judged]:
    """Return a judged unit for every unit of one suite, as the suite decides it."""
    return suite.judge(units, readings, executions, vectors)


def judge(
    plan: TestPlan,
    suites: Mapping[str, Suite],
    readings: ReadingsOf,
    executions: Executed,
    sut: SystemUnderTest,
    judge_units: JudgeUnits = judge_units,
) -> list[Judged]:
    """Return a judged unit for every unit of the plan, suite by suite, in the order of the plan."""
    units = {name: plan.units_of(name) for name in suites}
    return [
        judged
        for name, suite in suites.items()
        for judged in judge_units(suite, units[name], readings[name], executions, sut.vectors)
    ]


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
    values: dict[str, Column] = {}
    reasons: dict[str, Mapping[int, str]] = {}
    absent: dict[str, str] = {}
    # Units are many, different claims few: every column is made of those.
    places = {id(row.claims): place for place, row in enumerate(rows)}
    different = [rows[place].claims for place in places.values()]
    numbers = {name: number for number, name in enumerate(places)}
    of_rows = np.fromiter((numbers[id(row.claims)] for row in rows), np.int64, count=len(rows))
    for column in suite.columns:
        claims = [each[column] for each in different]
        undecided = [claim for claim in claims if isinstance(claim, Reason)]
        values[column] = _column(claims)[of_rows]
        reasons[column] = RowReasons(
            [str(claim) if isinstance(claim, Reason) else None for claim in claims], of_rows
        )
        if rows and len(undecided) == len(claims):
            why = suite.absent(column, [undecided[number] for number in of_rows.tolist()])
            if why is not None:
                absent[column] = why
    return table_with(
        suite.id,
        [row.unit for row in rows],
        values=values,
        reasons=reasons,
        not_evaluated=absent,
        bands=bands,
    )


def table_with(
    suite: str,
    units: Sequence[Unit],
    *,
    values: Mapping[str, Column],
    reasons: Mapping[str, Mapping[int, str]],
    not_evaluated: Mapping[str, str],
    bands: tuple[float, float],
) -> Table:
    """Return the table whose rows are `units` and whose columns are `values`."""
    names = list(dict.fromkeys(unit.cluster for unit in units))
    numbers = {name: number for number, name in enumerate(names)}
    dimensions = units[0].dimensions if units else ()
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
        advisory=_advisory(units),
        bands=bands,
    )


def _advisory(units: Sequence[Unit]) -> frozenset[str]:
    """Return the advisory relations; none where the suite has no others: it was made for them."""
    if all(unit.advisory for unit in units):
        return frozenset()
    return frozenset(unit.dimensions["relation"] for unit in units if unit.advisory)


def _column(claims: Sequence[Claim]) -> Column:
    numbers = [np.nan if isinstance(claim, Reason) else float(claim) for claim in claims]
    return np.asarray(np.round(numbers, _DECIMALS), dtype=np.float64)
