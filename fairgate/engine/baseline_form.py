"""Whether a file's content is a baseline: every value has its declared type and range.

A baseline with a valid hash can still be edited by hand: an error in it is reported with its place
in the file, before any later step fails on it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, get_type_hints

import numpy as np

from fairgate.domain.wording import shown
from fairgate.engine.baseline import Baseline, BaselineSuite
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.table import Table

_MOST_SD = 3
_BY_PIECES = frozenset({"suites", "table", "measurements", "sds", "provenance", "history"})


def baseline_faults(baseline: Baseline) -> Iterator[str]:
    """Yield what is wrong with a baseline, each with its place; nothing where it is sound."""
    yield from _wrong_types(baseline, "")
    yield from _wrong_types(baseline.provenance, "provenance.")
    for number, measurement in enumerate(baseline.measurements):
        yield from _wrong_types(measurement, f"measurements[{number}].")
    for place, run in enumerate(baseline.history):
        yield from _wrong_types(run, f"history[{place}].")
        for number, measurement in enumerate(run.measurements):
            at = f"history[{place}].values[{number}]."
            yield from _wrong_types(measurement, at)
            if measurement.value is None:
                yield f"{at}value is missing"
    for number, known in enumerate(baseline.sds):
        yield from _wrong_types(known, f"sds[{number}].")
        if isinstance(known.sd, float | int) and not 0 <= known.sd <= _MOST_SD:
            yield f"sds[{number}].sd is {shown(known.sd)}; expected 0 to {_MOST_SD}"
    for name, suite in baseline.suites.items():
        yield from _suite_faults(suite, f"suites.{name}.")


def _suite_faults(suite: BaselineSuite, place: str) -> Iterator[str]:
    yield from _wrong_types(suite, place)
    table = suite.table
    rows = len(table.keys)
    if len(set(table.keys)) < rows:
        yield f"{place}variants: two of them give a source the same key"
    if set(suite.contents) != set(table.keys):
        yield f"{place}sources: their contents are not those of their cases"
    yield from _uneven(table, place)
    if not all(isinstance(text, str) for text in (*table.cluster_names, *table.keys)):
        yield f"{place}sources: a name is no text"
    for name, levels in table.dimensions.items():
        wrong = next((level for level in levels if not isinstance(level, str)), None)
        if wrong is not None or None in levels:
            yield f"{place}{name} is {shown(wrong)}; expected a text"
    for name, column in table.values.items():
        least, greatest = _limits().get(name, (-np.inf, np.inf))
        outside = column[(column < least) | (column > greatest)]
        if len(outside):
            yield (
                f"{place}{name} holds {float(outside[0]):g}; expected numbers from {least:g} to "
                f"{greatest:g}"
            )
    low, high = table.bands
    if not 0 <= low <= high:
        yield f"{place}bands are {low:g} and {high:g}; expected two rising numbers"


def _uneven(table: Table, place: str) -> Iterator[str]:
    lengths = {name: len(levels) for name, levels in table.dimensions.items()}
    lengths |= {name: len(column) for name, column in table.values.items()}
    for name, length in {**lengths, "control": len(table.control)}.items():
        if length != len(table.keys):
            yield f"{place}{name}: {length} values for {len(table.keys)} cases"
    for name in table.not_evaluated:
        if name in table.values and not np.isnan(table.values[name]).all():
            yield f"{place}not_evaluated names {name}, which has values"


@functools.cache
def _limits() -> Mapping[str, tuple[float, float]]:
    """Return the least and the greatest value of each column that a metric rests on."""
    found: dict[str, tuple[float, float]] = {}
    for metric in METRICS:
        low, high = found.get(metric.column, metric.row_limits)
        found[metric.column] = (min(low, metric.row_limits[0]), max(high, metric.row_limits[1]))
    return found


def _wrong_types(value: object, place: str) -> Iterator[str]:
    """Yield the fields of a dataclass whose values do not match their annotations."""
    from pydantic import ValidationError

    kind: Any = type(value)
    for name, adapter in _adapters(kind).items():
        found = getattr(value, name)
        try:
            adapter.validate_python(found)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            inner = "".join(f".{part}" for part in first["loc"])
            yield f"{place}{name}{inner} is {shown(first['input'])}; {first['msg'].lower()}"


@functools.cache
def _adapters(kind: Any) -> Mapping[str, Any]:
    from pydantic import ConfigDict, TypeAdapter

    hints = get_type_hints(kind)
    strict = ConfigDict(strict=True, allow_inf_nan=False)
    return {
        one.name: TypeAdapter(hints[one.name], config=strict)
        for one in fields(kind)
        if one.name not in _BY_PIECES
    }
