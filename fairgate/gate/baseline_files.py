"""Baselines as reviewable JSON: summary in plain text, one source a line, fixed precision, a hash.

Reading is strict: a damaged, edited, incomplete or unknown file raises BaselineError, never a
partial baseline.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, get_type_hints

import numpy as np

from fairgate.domain.errors import BaselineError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.outcomes import Measurement, Measurements, Provenance
from fairgate.domain.wording import harmless, quoted, shown
from fairgate.gate import suite_cells
from fairgate.gate.baseline import SCHEMA_VERSION, Baseline, BaselineSuite
from fairgate.gate.measure import (
    measure,
    measured_once,
    quartiles,
)
from fairgate.metrics.attribution import COLUMNS as CROSSED
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import observe
from fairgate.stats.observations import Levels

MAX_BYTES = 256 << 20
_MOST_FAULTS = 5
_AGAIN = (
    "restore it from version control, or make it again with `fairgate baseline accept RUN "
    "--reason …`"
)
_BY_PIECES = frozenset({"suites", "table", "measurements", "provenance"})


def dump_baseline(baseline: Baseline) -> str:
    """Return the file's text. Equal baselines give equal bytes."""
    body: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "policy": baseline.policy,
        "reason": baseline.reason,
        "date": baseline.date,
        "provenance": asdict(baseline.provenance),
        "metric_versions": dict(baseline.metric_versions),
        "measurements": [
            {name: value for name, value in asdict(item).items() if value not in (None, "", {})}
            for item in baseline.measurements
        ],
        "suites": {
            name: suite_cells.suite_to(suite) for name, suite in sorted(baseline.suites.items())
        },
    }
    body["integrity"] = _integrity(body)
    return "\n".join(_lines(body)) + "\n"


def baseline_faults(baseline: Baseline) -> Iterator[str]:
    """Yield what is wrong with a baseline, each with its place; nothing where it is sound.

    A baseline with a valid hash can still be edited by hand: an error in it is reported with its
    place in the file, before any later step fails on it.
    """
    yield from _wrong_types(baseline, "")
    yield from _wrong_types(baseline.provenance, "provenance.")
    for number, measurement in enumerate(baseline.measurements):
        yield from _wrong_types(measurement, f"measurements[{number}].")
    faults = [
        f
        for name, suite in baseline.suites.items()
        for f in _suite_faults(suite, f"suites.{name}.")
    ]
    yield from faults or _stored_copies(baseline)


def _stored_copies(baseline: Baseline) -> Iterator[str]:
    """Yield what stands in the file and is not what its rows give.

    Not kept is which relations count in a suite of several, which is left to a comparison of
    baselines, and which undecided cases combine nothing, which are not counted here.
    """
    for name, suite in baseline.suites.items():
        expected = quartiles(suite.table)
        if suite.quartiles != expected:
            yield f"suites.{name}.quartiles are {suite.quartiles}; its cases give {expected}"
    several = {
        name: len(Levels.of(suite.table.dimensions.get("relation", ())).first_rows()) > 1
        for name, suite in baseline.suites.items()
    }
    for number, stored in enumerate(baseline.measurements):
        metric, suite_measured = METRICS.get(stored.metric), baseline.suites.get(stored.suite)
        if (
            metric is None
            or suite_measured is None
            or metric.column not in suite_measured.table.values
        ):
            continue
        if baseline.metric_versions.get(metric.id, metric.version) != metric.version:
            continue
        if several[stored.suite] and "relation" not in stored.where:
            continue
        # Measured again without what depends on a confidence and a seed.
        table, where = suite_measured.table, stored.where
        measured = measured_once(metric, table, where, observe(metric, table, where))
        counted = () if metric.of_combinations else ("inconclusive",)
        for field in ("value", "decided", "violated", *counted):
            value, computed = getattr(stored, field), getattr(measured, field)
            if value != computed:
                yield f"measurements[{number}].{field} is {value}; its cases give {computed}"


NOT_CHECKED = (
    "intervals, notes, whole-suite values of several relations, "
    "whether values of identities are missing, attribution, reason, date and provenance"
)
"""What does not follow from the cases in a file, for `baseline verify`."""


def unverified(baseline: Baseline) -> Iterator[str]:
    """Yield why a sound file is not known to be what an accepted run gave.

    Versions of metrics must be this FairGate's, for by others no value can be computed again; and
    every value that the cases give must be there.
    """
    own = {metric.id: metric.version for metric in METRICS}
    for name, version in sorted(baseline.metric_versions.items()):
        if name not in own:
            yield f"metric_versions names {quoted(name)}, which this FairGate does not have"
        elif version != own[name]:
            yield f"metric_versions.{name} is {shown(version)}; this FairGate computes {own[name]}"
    used = {stored.metric for stored in baseline.measurements}
    for name in sorted(used - baseline.metric_versions.keys()):
        yield f"metric_versions lacks {quoted(name)}, of which there are measurements"
    for number, measurement in enumerate(baseline.measurements):
        suite, metric = baseline.suites.get(measurement.suite), METRICS.get(measurement.metric)
        if measurement.value is None or metric is None or metric.column in CROSSED.values():
            continue  # a baseline has no crossed answers, see NOT_CHECKED
        if suite is None or metric.column not in suite.table.values:
            subject = f"{measurement.metric} of {quoted(measurement.suite)}"
            yield f"measurements[{number}] is {subject}, whose cases the file lacks"
    stored = Measurements(baseline.measurements)
    tables = {name: suite.table for name, suite in baseline.suites.items()}
    for measurement in measure(tables):
        relations = set(tables[measurement.suite].dimensions.get("relation", ()))
        if measurement.value is None or (
            len(relations) > 1 and "relation" not in measurement.where
        ):
            continue
        if stored.get(measurement.metric, measurement.suite, measurement.where) is None:
            where = "".join(f", {key} {level}" for key, level in sorted(measurement.where.items()))
            subject = f"{measurement.metric} of {quoted(measurement.suite)}"
            yield f"measurements lack {subject}{harmless(where)}"


def _suite_faults(suite: BaselineSuite, prefix: str) -> Iterator[str]:
    yield from _wrong_types(suite, prefix)
    table = suite.table
    if len(set(table.keys)) < len(table.keys):
        yield f"{prefix}variants: two of them give a source the same key"
    absent = [text for pair in table.not_evaluated.items() for text in pair]
    if not all(isinstance(text, str) for text in (*absent, *table.values)):
        yield f"{prefix}not_evaluated is {shown(table.not_evaluated)}; expected names and reasons"
    if not all(isinstance(text, str) for text in table.cluster_names):
        yield f"{prefix}sources: a name is no text"
    for name, levels in table.dimensions.items():
        wrong = next((level for level in levels if not isinstance(level, str)), None)
        if wrong is not None or None in levels:
            yield f"{prefix}{name} is {shown(wrong)}; expected a text"
    for name, column in table.values.items():
        least, greatest = _limits().get(name, (-np.inf, np.inf))
        outside = column[(column < least) | (column > greatest)]
        if len(outside):
            yield (
                f"{prefix}{name} holds {float(outside[0]):g}; expected numbers from {least:g} to "
                f"{greatest:g}"
            )
    low, high = table.bands
    if not 0 <= low <= high:
        yield f"{prefix}bands are {low:g} and {high:g}; expected two rising numbers"


@functools.cache
def _limits() -> Mapping[str, tuple[float, float]]:
    """Return the least and the greatest value of each column that a metric rests on."""
    limits: dict[str, tuple[float, float]] = {}
    for metric in METRICS:
        least, greatest = metric.row_limits
        low, high = limits.get(metric.column, (least, greatest))
        limits[metric.column] = (min(low, least), max(high, greatest))
    return limits


def _wrong_types(value: object, prefix: str) -> Iterator[str]:
    """Yield the fields of a dataclass whose values do not match their annotations."""
    from pydantic import ValidationError

    kind: Any = type(value)
    for name, adapter in _adapters(kind).items():
        try:
            adapter.validate_python(getattr(value, name))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            inner = "".join(f".{part}" for part in first["loc"])
            yield f"{prefix}{name}{inner} is {shown(first['input'])}; {first['msg'].lower()}"


@functools.cache
def _adapters(kind: Any) -> Mapping[str, Any]:
    from pydantic import ConfigDict, TypeAdapter

    hints = get_type_hints(kind)
    strict = ConfigDict(strict=True, allow_inf_nan=False)
    return {
        entry.name: TypeAdapter(hints[entry.name], config=strict)
        for entry in fields(kind)
        if entry.name not in _BY_PIECES
    }


def load_baseline(text: str, path: str) -> Baseline:
    """Return the baseline. Raises BaselineError with the fault and the next step."""
    if len(text) > MAX_BYTES:
        raise BaselineError(f"{path}: larger than {MAX_BYTES >> 20} MiB; not a baseline")
    try:
        body = read_json(text)
    except JsonError as error:
        location = f"{path}:{error.line}:{error.column}" if error.line else path
        raise BaselineError(f"{location}: {error}; {_AGAIN}") from error
    version = body.get("schema_version") if isinstance(body, dict) else type(body).__name__
    if type(version) is not int or version != SCHEMA_VERSION:
        raise BaselineError(
            f"{path}: baseline format {version!r:.40}, this FairGate reads "
            f"{SCHEMA_VERSION}; accept a new run with `fairgate baseline accept RUN --reason …`, "
            "or install the FairGate that wrote it"
        )
    claimed = body.pop("integrity", None)
    actual = _integrity(body)
    if claimed != actual:
        raise BaselineError(
            f"{path}: the integrity hash does not match its content (file has "
            f"{quoted(str(claimed)[:16])}, content gives '{actual[:16]}'): it was edited by hand "
            "or merged; restore it or accept a new run"
        )
    try:
        baseline = Baseline(
            policy=body["policy"],
            reason=body["reason"],
            date=body["date"],
            suites={
                name: suite_cells.suite_from(name, suite) for name, suite in body["suites"].items()
            },
            measurements=[_measurement_from(row) for row in body["measurements"]],
            metric_versions=body["metric_versions"],
            provenance=Provenance(**body["provenance"]),
        )
        faults = list(itertools.islice(baseline_faults(baseline), _MOST_FAULTS))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = harmless(f"{type(error).__name__}: {error}"[:120])
        raise BaselineError(f"{path}: incomplete baseline ({why}); {_AGAIN}") from error
    if faults:
        raise BaselineError(f"{path}: no baseline: {harmless('; '.join(faults))}; {_AGAIN}")
    return baseline


def _integrity(body: Mapping[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _lines(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the file: big containers one entry a line, small ones on one line."""
    yield "{"
    entries = list(body.items())
    for position, (name, value) in enumerate(entries):
        comma = "," if position < len(entries) - 1 else ""
        if name == "measurements":
            yield f' "{name}": ['
            yield ",\n".join(f"  {_compact(item)}" for item in value)
            yield f" ]{comma}"
        elif name == "suites":
            yield f' "{name}": {{'
            yield ",\n".join(_suite_text(key, suite) for key, suite in value.items())
            yield f" }}{comma}"
        else:
            yield f' "{name}": {_compact(value)}{comma}'
    yield "}"


def _suite_text(name: str, suite: Mapping[str, Any]) -> str:
    head = [f"   {_compact(key)}: {_compact(suite[key])}," for key in suite if key != "sources"]
    sources = ",\n".join(
        f"    {_compact(key)}: {json.dumps(row, ensure_ascii=False, separators=(',', ':'))}"
        for key, row in suite["sources"].items()
    )
    return "\n".join([f"  {_compact(name)}: {{", *head, '   "sources": {', sources, "   }\n  }"])


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _measurement_from(row: Mapping[str, Any]) -> Measurement:
    interval = row.get("interval")
    return Measurement(
        **{**row, "interval": None if interval is None else (interval[0], interval[1])}
    )
