"""The pools of a suite, and the columns that are computed from them (`metrics/columns.py`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fairgate.domain.errors import UsageError
from fairgate.domain.ports import Executed
from fairgate.domain.units import Claim, Reason, Unit
from fairgate.domain.wording import quoted, shown
from fairgate.metrics.columns import (
    AssessedSuite,
    Column,
    Pool,
    PoolAnswer,
    PoolColumns,
    Values,
    VectorsOf,
)
from fairgate.relations.oracles.text import spoken
from fairgate.suites.metamorphic.assess import CONTROLS, EXCLUDED
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE
from fairgate.suites.readings import Readings


def pool_columns_of(
    columns: Mapping[str, Sequence[PoolColumns]],
    assessed: AssessedSuite,
    readings: Readings,
    executions: Executed,
    vectors: VectorsOf,
) -> dict[str, Column]:
    """Compute the columns of pairs that their relation, or the suite, rests on pools.

    `columns`: id of a relation to what is computed from its pools. Raises UsageError where a column
    breaks its contract.
    """
    units, of_controls = assessed.units, assessed.readings.get(CONTROLS)
    # A pair that is excluded has its reason throughout.
    why = [None if of_controls is None else of_controls[row].reason for row in range(len(units))]
    excluded = [reason if reason in EXCLUDED else None for reason in why]
    computed = list(
        dict.fromkeys(pool_columns for several in columns.values() for pool_columns in several)
    )
    claims: dict[str, list[Claim]] = {
        name: [reason or Reason.OTHER_RELATION for reason in excluded]
        for pool_columns in computed
        for name in pool_columns.names
    }
    rows_of: dict[tuple[str, str], list[int]] = {}
    for row, unit in enumerate(units):
        if excluded[row] is None:
            group = unit.dimensions["relation"], unit.asks[SOURCE]
            rows_of.setdefault(group, []).append(row)
    for pool_columns in computed:
        groups = {
            group: rows
            for group, rows in rows_of.items()
            if any(pool_columns is other for other in columns.get(group[0], ()))
        }
        pools = [
            _pool(relation, source, [units[row] for row in rows], readings, executions)
            for (relation, source), rows in groups.items()
        ]
        number = -1
        for number, values in enumerate(pool_columns.compute(pools, vectors)):
            if number >= len(pools):
                break
            _check(pool_columns, pools[number], values)
            rows = groups[pools[number].relation, pools[number].source.key]
            for name in pool_columns.names:
                for row, value in zip(rows, values[name], strict=True):
                    claims[name][row] = value if isinstance(value, Reason) else float(value)
        if number + 1 != len(pools):
            count = f"more than {len(pools)}" if number >= len(pools) else f"{number + 1}"
            raise UsageError(
                f"column {quoted(pool_columns.names[0])}: values of {count} pools were computed; "
                f"expected those of {len(pools)}, one mapping for each pool"
            )
    return {name: Column.of(values) for name, values in claims.items()}


def _pool(
    relation: str, source: str, units: Sequence[Unit], readings: Readings, executions: Executed
) -> Pool:
    return Pool(
        relation=relation,
        source=_answer(source, None, relation, readings, executions),
        members=[
            _answer(unit.asks[FOLLOW_UP], unit, relation, readings, executions) for unit in units
        ],
    )


def _answer(
    key: str, unit: Unit | None, relation: str, readings: Readings, executions: Executed
) -> PoolAnswer:
    executed = (executions.get((readings.suite, repeat)) for repeat in readings.repeat_keys(key))
    several = [execution for execution in executed if execution is not None]
    return PoolAnswer(
        key=key,
        unit=unit,
        reading=readings.all_of(key, relation),
        executions=several,
        responses=[
            spoken(execution.response, readings.thinking)
            for execution in several
            if execution.response is not None
        ],
    )


def _check(column: PoolColumns, pool: Pool, values: Mapping[str, Values]) -> None:
    """Raise UsageError where a pool's values are not one finite number or reason a member."""
    location = f"for source {quoted(pool.source.key)}"
    for name in column.names:
        if name not in values:
            raise UsageError(
                f"column {quoted(name)}: no values {location}; expected a key {name!r}"
            )
        if len(values[name]) != len(pool.members):
            raise UsageError(
                f"column {quoted(name)}: {len(values[name])} values {location}; expected "
                f"{len(pool.members)}, one for each follow-up"
            )
        for value in values[name]:
            if not isinstance(value, Reason) and not _is_finite(value):
                raise UsageError(
                    f"column {quoted(name)}: {shown(value)} {location}; expected a finite number "
                    "or a Reason"
                )


def _is_finite(value: object) -> bool:
    try:
        return math.isfinite(value)  # type: ignore[arg-type]
    except TypeError:
        return False
