"""Judged units and tables as JSON rows, and back: everything that a verdict is recomputed from.

A row is one judged unit: what it is about, how its answers were read, and a number or a reason for
each column of its suite's table. It holds no prompt and no answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairgate.domain.cases import Rejected, TestPlan
from fairgate.domain.units import Arm, Claim, Judged, Reading, Reason, Unit, Value
from fairgate.gate.tabulate import table_with
from fairgate.metrics.table import Table

Row = dict[str, Any]
_HIDDEN = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictInput:
    """What a verdict follows from, besides policy, baseline and anchor."""

    plan: TestPlan
    """Units and what was rejected; the cases are not needed."""
    judged: Sequence[Judged]
    tables: Mapping[str, Table]
    must_match: Mapping[str, Mapping[str, str]]


def hidden(text: str) -> str:
    """Return what stands for a redacted text; equal texts, equal stand-ins."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"sha256:{digest[:_HIDDEN]}"


def rows_of(
    judged: Iterable[Judged], tables: Mapping[str, Table], *, redact: bool
) -> Iterator[Row]:
    """Yield a row for each judged unit, in their order; `redact` hides what oracles read."""
    places = dict.fromkeys(tables, 0)
    for one in judged:
        unit, table = one.unit, tables[one.unit.suite]
        claims = _cells(table, places[unit.suite])
        places[unit.suite] += 1
        if one.decisive not in claims:
            decision = one.decision
            claims[one.decisive] = str(decision) if isinstance(decision, Reason) else decision
        yield {
            "key": unit.key,
            "suite": unit.suite,
            "cluster": unit.cluster,
            "arm": unit.arm.value,
            "advisory": unit.advisory,
            "dimensions": dict(unit.dimensions),
            "content": unit.content,
            "follows": unit.follows,
            "names": dict(unit.names),
            "asks": dict(unit.asks),
            "readings": {role: _reading_to(one.readings[role], redact) for role in unit.asks},
            "decisive": one.decisive,
            "claims": claims,
            **_judges_to(unit),
        }


def _judges_to(unit: Unit) -> Row:
    """Return which judges decide a unit, and whether they count; nothing where none does."""
    if not unit.verdicts:
        return {}
    return {"verdicts": list(unit.verdicts), "unproven": unit.is_unproven}


def _cells(table: Table, row: int) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name, column in table.values.items():
        value = float(column[row])
        cells[name] = table.reasons.get(name, {}).get(row) if np.isnan(value) else value
    return cells


def _reading_to(reading: Reading, redact: bool) -> Row:  # noqa: FBT001 - called here alone
    value: object = reading.value
    if isinstance(reading.value, tuple):
        value = list(reading.value)
    if redact and not isinstance(reading.value, float | None):
        value = hidden(repr(reading.value))
    return {"value": value, "reason": reading.reason, "shown": reading.shown}


def tables_to(
    tables: Mapping[str, Table],
    must_match: Mapping[str, Mapping[str, str]],
    rejected: Sequence[Rejected],
    *,
    redact: bool,
) -> Row:
    """Return what rows do not say: the columns of each suite, and what was not executed."""
    return {
        "redacted": redact,
        "suites": {
            name: {
                "columns": list(table.values),
                "not_evaluated": dict(table.not_evaluated),
                "bands": list(table.bands),
                "must_match": dict(must_match[name]),
            }
            for name, table in tables.items()
        },
        "rejected": [
            {**asdict(one), "reason": hidden(one.reason) if redact else one.reason}
            for one in rejected
        ],
    }


def verdict_input(
    tables: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], order: Sequence[str]
) -> VerdictInput:
    """Return what the rows say; `order` is that of the suites in the policy.

    No row is kept, and what is equal in many is kept once. Raises LookupError, TypeError,
    ValueError where they are none.
    """
    suites = {name: tables["suites"][name] for name in order}
    if suites.keys() != tables["suites"].keys():
        raise ValueError("the tables are of other suites than those of the policy")
    judged: list[Judged] = []
    groups: dict[str, list[Judged]] = {name: [] for name in suites}
    cells: dict[str, dict[str, list[Any]]] = {
        name: {column: [] for column in suite["columns"]} for name, suite in suites.items()
    }
    known = _Known()
    for row in rows:
        one = _judged_from(row, suites, known)
        judged.append(one)
        groups[one.unit.suite].append(one)
        for column, own in cells[one.unit.suite].items():
            own.append(row["claims"][column])
    if len({(one.unit.suite, one.unit.key) for one in judged}) < len(judged):
        raise ValueError("two rows of a suite have one key")
    return VerdictInput(
        plan=TestPlan(
            cases=(),
            units=[one.unit for one in judged],
            rejected=[Rejected(**one) for one in tables["rejected"]],
        ),
        judged=judged,
        tables={
            name: _table_from(name, suite, cells[name], groups[name])
            for name, suite in suites.items()
        },
        must_match={name: dict(suite["must_match"]) for name, suite in suites.items()},
    )


class _Known:
    """What stands in many rows, once."""

    def __init__(self) -> None:
        self._mappings: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self._readings: dict[tuple[object, ...], Reading] = {}

    def mapping(self, found: Mapping[str, str]) -> dict[str, str]:
        return self._mappings.setdefault(tuple(found.items()), dict(found))

    def reading(self, found: Mapping[str, Any]) -> Reading:
        own = _reading_from(found)
        return self._readings.setdefault((type(own.value), own.value, own.reason, own.shown), own)


def _judged_from(row: Mapping[str, Any], suites: Mapping[str, Any], known: _Known) -> Judged:
    if row["suite"] not in suites:
        raise ValueError(f"a row is of suite {row['suite']!r:.40}, which is not among the tables")
    unit = Unit(
        key=row["key"],
        suite=row["suite"],
        asks=dict(row["asks"]),
        cluster=row["cluster"],
        dimensions=known.mapping(row["dimensions"]),
        content=row["content"],
        follows=row["follows"],
        arm=Arm(row["arm"]),
        advisory=row["advisory"],
        verdicts=tuple(row.get("verdicts", ())),
        is_unproven=bool(row.get("unproven", False)),
        names=known.mapping(row["names"]),
    )
    return Judged(
        unit=unit,
        readings={role: known.reading(row["readings"][role]) for role in unit.asks},
        claims={name: _claim(value) for name, value in row["claims"].items() if value is not None},
        decisive=row["decisive"],
    )


def _reading_from(row: Mapping[str, Any]) -> Reading:
    value: Value | list[str] | None = row["value"]
    if isinstance(value, list):
        value = tuple(value)
    reason = None if row["reason"] is None else Reason(row["reason"])
    return Reading(value=value, reason=reason, shown=row["shown"])


def _claim(value: object) -> Claim:
    if isinstance(value, str):
        return Reason(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a claim is {value!r:.40}; expected a number or a reason")
    return float(value)


def _table_from(
    name: str,
    suite: Mapping[str, Any],
    columns: Mapping[str, Sequence[Any]],
    judged: Sequence[Judged],
) -> Table:
    return table_with(
        name,
        [one.unit for one in judged],
        values={
            column: np.asarray(
                [np.nan if cell is None else _number(_claim(cell)) for cell in cells], np.float64
            )
            for column, cells in columns.items()
        },
        reasons={
            column: {place: cell for place, cell in enumerate(cells) if isinstance(cell, str)}
            for column, cells in columns.items()
        },
        not_evaluated=dict(suite["not_evaluated"]),
        bands=(float(suite["bands"][0]), float(suite["bands"][1])),
    )


def _number(claim: Claim) -> float:
    return np.nan if isinstance(claim, Reason) else claim
