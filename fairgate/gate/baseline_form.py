"""Whether a file's content is a baseline: every value has its declared type and range.

A baseline with a valid hash can still be edited by hand: an error in it is reported with its place
in the file, before any later step fails on it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, get_type_hints

import numpy as np

from fairgate.domain.measurements import Measurement
from fairgate.domain.wording import shown
from fairgate.gate.baseline import Baseline, BaselineSuite
from fairgate.gate.identity import identity_finding, identity_measurements
from fairgate.gate.measure import measured_once, quartiles
from fairgate.metrics.catalogue import BY_ID, METRICS
from fairgate.metrics.metric import Metric, observe
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
    found = [
        f for name, one in baseline.suites.items() for f in _suite_faults(one, f"suites.{name}.")
    ]
    yield from found or _stored_copies(baseline)


def _stored_copies(baseline: Baseline) -> Iterator[str]:
    """Yield what stands in the file and is not what its rows give.

    Whole suites of several relations are left to a comparison of baselines: which relations count
    in them is not kept.
    """
    for name, suite in baseline.suites.items():
        given = quartiles(suite.table)
        if suite.quartiles != given:
            yield f"suites.{name}.quartiles are {suite.quartiles}; its cases give {given}"
    for number, stored in enumerate(baseline.measurements):
        metric, known = BY_ID.get(stored.metric), baseline.suites.get(stored.suite)
        if (
            metric is None
            or baseline.metric_versions.get(metric.id, metric.version) != metric.version
        ):
            continue
        if known is None or metric.column not in known.table.values:
            continue
        relations = set(known.table.dimensions.get("relation", ()))
        if len(relations) > 1 and "relation" not in stored.where:
            continue
        found = _measured_again(metric, known.table, stored)
        for field in ("value", "decided", "inconclusive", "violated"):
            kept, given = getattr(stored, field), getattr(found, field)
            if kept != given:
                yield f"measurements[{number}].{field} is {kept}; its cases give {given}"


def _measured_again(metric: Metric, table: Table, stored: Measurement) -> Measurement:
    """Return what a slice gives, without what depends on a confidence and a seed."""
    if not metric.compares_terms:
        return measured_once(metric, table, stored.where, observe(metric, table, stored.where))
    found = identity_finding(metric, table, stored.where, alpha=0.05, seed=0, n_draws=1)
    measured = identity_measurements([] if found is None else [found])
    return measured[0] if measured else replace(stored, value=None)


def _suite_faults(suite: BaselineSuite, place: str) -> Iterator[str]:
    yield from _wrong_types(suite, place)
    table = suite.table
    rows = len(table.keys)
    if len(set(table.keys)) < rows:
        yield f"{place}variants: two of them give a source the same key"
    if set(suite.contents) != set(table.keys):
        yield f"{place}sources: their contents are not those of their cases"
    yield from _uneven(table, place)
    absent = [text for pair in table.not_evaluated.items() for text in pair]
    if not all(isinstance(text, str) for text in (*absent, *table.values)):
        yield f"{place}not_evaluated is {shown(table.not_evaluated)}; expected names and reasons"
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
