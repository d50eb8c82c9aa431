"""Baselines as reviewable JSON: one source a line, sorted, fixed precision, with a hash.

Reading is strict: a damaged, edited, incomplete or unknown file raises BaselineError, never a
partial baseline.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fairgate.domain.errors import BaselineError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import Provenance
from fairgate.domain.wording import harmless, quoted
from fairgate.engine.baseline import SCHEMA_VERSION, Baseline, BaselineSuite, KnownSd
from fairgate.engine.baseline_form import baseline_faults
from fairgate.engine.item_rows import KIND, is_item_table, item_rows, table_of_rows
from fairgate.metrics.table import VERDICT_COLUMNS, Table

_LETTERS = {0.0: "s", 1.0: "v"}
_VALUES = {"s": 0.0, "v": 1.0, ".": math.nan}
MAX_BYTES = 256 << 20
_MOST_FAULTS = 5
_AGAIN = (
    "restore it from version control, or make it again with `fairgate baseline accept RUN "
    "--reason …`"
)


def dump_baseline(baseline: Baseline) -> str:
    """Return the file's text. Equal baselines give equal bytes."""
    body: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "policy": baseline.policy,
        "reason": baseline.reason,
        "date": baseline.date,
        "provenance": asdict(baseline.provenance),
        "metric_versions": dict(baseline.metric_versions),
        "sds": [asdict(known) for known in baseline.sds],
        "measurements": [_measurement_to(item) for item in baseline.measurements],
        "suites": {name: _suite_to(suite) for name, suite in sorted(baseline.suites.items())},
    }
    body["integrity"] = _integrity(body)
    return "\n".join(_lines(body)) + "\n"


def load_baseline(text: str, path: str) -> Baseline:
    """Return the baseline. Raises BaselineError that says what is wrong and what to do."""
    if len(text) > MAX_BYTES:
        raise BaselineError(f"{path}: larger than {MAX_BYTES >> 20} MiB; not a baseline")
    try:
        body = read_json(text)
    except JsonError as error:
        place = f"{path}:{error.line}:{error.column}" if error.line else path
        raise BaselineError(f"{place}: {error}; {_AGAIN}") from error
    if not isinstance(body, dict) or body.get("schema_version") != SCHEMA_VERSION:
        found = body.get("schema_version") if isinstance(body, dict) else type(body).__name__
        raise BaselineError(
            f"{path}: baseline format {found!r:.40}, this FairGate reads {SCHEMA_VERSION}; accept "
            "a new run with `fairgate baseline accept RUN --reason …`"
        )
    claimed = body.pop("integrity", None)
    actual = _integrity(body)
    if claimed != actual:
        raise BaselineError(
            f"{path}: the integrity hash does not match its content (file says "
            f"{quoted(str(claimed)[:16])}, content gives '{actual[:16]}'): it was edited by hand "
            "or merged; restore it or accept a new run"
        )
    try:
        baseline = _baseline_from(body)
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
        f"    {_compact(key)}: {_compact(row)}" for key, row in suite["sources"].items()
    )
    return "\n".join([f"  {_compact(name)}: {{", *head, '   "sources": {', sources, "   }\n  }"])


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _measurement_to(item: Measurement) -> dict[str, Any]:
    row = asdict(item)
    return {k: v for k, v in row.items() if v not in (None, "", {})}


def _suite_to(suite: BaselineSuite) -> dict[str, Any]:
    table = suite.table
    if is_item_table(table):
        return {
            "must_match": dict(suite.must_match),
            "not_evaluated": dict(table.not_evaluated),
            **item_rows(table, suite.contents),
        }
    variants: dict[str, list[Any]] = {}
    rows: dict[str, dict[str, int]] = {}
    for row, key in enumerate(table.keys):
        source = table.cluster_names[table.clusters[row]]
        variant = key.removeprefix(source)
        variants.setdefault(
            variant,
            [
                variant,
                table.dimensions["category"][row],
                table.dimensions["term"][row],
                bool(table.control[row]),
            ],
        )
        rows.setdefault(source, {})[variant] = row
    return {
        "must_match": dict(suite.must_match),
        "quartiles": None if suite.quartiles is None else list(suite.quartiles),
        "bands": list(table.bands),
        "not_evaluated": dict(table.not_evaluated),
        "variants": list(variants.values()),
        "sources": {
            source: _source_to(suite, list(variants), positions)
            for source, positions in rows.items()
        },
    }


def _source_to(
    suite: BaselineSuite, variants: Sequence[str], positions: Mapping[str, int]
) -> dict[str, Any]:
    keys = suite.table.keys
    present = [positions.get(variant) for variant in variants]
    entry: dict[str, Any] = {
        "content": [None if row is None else suite.contents[keys[row]] for row in present]
    }
    for name, column in suite.table.values.items():
        if name in suite.table.not_evaluated:
            continue
        numbers = [math.nan if row is None else float(column[row]) for row in present]
        if name in VERDICT_COLUMNS:
            entry[name] = "".join(_LETTERS.get(number, ".") for number in numbers)
        else:
            entry[name] = [None if math.isnan(number) else number for number in numbers]
    return entry


def _baseline_from(body: Mapping[str, Any]) -> Baseline:
    return Baseline(
        policy=body["policy"],
        reason=body["reason"],
        date=body["date"],
        suites={name: _suite_from(name, suite) for name, suite in body["suites"].items()},
        measurements=[_measurement_from(row) for row in body["measurements"]],
        metric_versions=body["metric_versions"],
        provenance=Provenance(**body["provenance"]),
        sds=[KnownSd(**known) for known in body.get("sds", [])],
    )


def _measurement_from(row: Mapping[str, Any]) -> Measurement:
    interval = row.get("interval")
    return Measurement(
        **{**row, "interval": None if interval is None else (interval[0], interval[1])}
    )


def _suite_from(name: str, suite: Mapping[str, Any]) -> BaselineSuite:
    if suite.get("kind") == KIND:
        items, asked = table_of_rows(name, suite)
        return BaselineSuite(
            must_match=suite["must_match"], contents=asked, table=items, quartiles=None
        )
    variants = suite["variants"]
    keys: list[str] = []
    clusters: list[int] = []
    chosen: list[int] = []
    contents: dict[str, str] = {}
    columns: dict[str, list[float]] = {}
    for number, (source, entry) in enumerate(suite["sources"].items()):
        for position, (variant, content) in enumerate(zip(variants, entry["content"], strict=True)):
            if content is None:
                continue
            key = source + variant[0]
            keys.append(key)
            clusters.append(number)
            chosen.append(position)
            contents[key] = content
            for column, cells in entry.items():
                if column != "content":
                    columns.setdefault(column, []).append(_cell(cells[position]))
    table = Table(
        suite=name,
        keys=keys,
        clusters=np.asarray(clusters, dtype=np.int64),
        cluster_names=list(suite["sources"]),
        control=np.asarray([variants[i][3] for i in chosen], dtype=bool),
        dimensions={
            "category": [variants[i][1] for i in chosen],
            "term": [variants[i][2] for i in chosen],
        },
        values={
            **{k: np.asarray(v, dtype=np.float64) for k, v in columns.items()},
            **{k: np.full(len(keys), np.nan) for k in suite["not_evaluated"]},
        },
        not_evaluated=suite["not_evaluated"],
        bands=(suite["bands"][0], suite["bands"][1]),
    )
    quartiles = suite["quartiles"]
    return BaselineSuite(
        must_match=suite["must_match"],
        contents=contents,
        table=table,
        quartiles=None if quartiles is None else (quartiles[0], quartiles[1]),
    )


def _cell(value: str | float | None) -> float:
    if isinstance(value, str):
        return _VALUES[value]
    return math.nan if value is None else float(value)
