"""Baselines as reviewable JSON: one source a line, sorted, fixed precision, with a hash.

A key is what a source's variants share and what makes it this one (`#…`, `@…`); whatever follows
from the variant alone is written once a suite, the rest once a source.

Reading is strict: a damaged, edited, incomplete or unknown file raises BaselineError, never a
partial baseline.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fairgate.domain.errors import BaselineError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.keys import split_variant
from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import Provenance
from fairgate.domain.wording import harmless, quoted
from fairgate.engine.baseline import (
    SCHEMA_VERSION,
    AcceptedRun,
    Baseline,
    BaselineSuite,
    KnownSd,
)
from fairgate.engine.baseline_form import baseline_faults
from fairgate.engine.history import entry_of
from fairgate.metrics.table import Table

_LETTERS = {0.0: "0", 1.0: "1", -1.0: "-"}
_VALUES = {"0": 0.0, "1": 1.0, "-": -1.0, ".": math.nan}
"""A column of verdicts has one letter a variant; a dot is not decided."""
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
        "history": [_accepted_to(run) for run in baseline.history],
        "measurements": [_measurement_to(item) for item in baseline.measurements],
        "suites": {name: _suite_to(suite) for name, suite in sorted(baseline.suites.items())},
    }
    if not baseline.history:
        del body["history"]
    body["integrity"] = _integrity(body)
    return "\n".join(_lines(body)) + "\n"


def load_baseline(text: str, path: str) -> Baseline:
    """Return the baseline. Raises BaselineError with the fault and the next step."""
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
            f"{path}: the integrity hash does not match its content (file has "
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
        if name in ("measurements", "history"):
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


def _accepted_to(run: AcceptedRun) -> dict[str, Any]:
    values = [entry_of(item) for item in run.measurements]
    return {"date": run.date, "commit": run.commit, "values": values}


def _suite_to(suite: BaselineSuite) -> dict[str, Any]:
    table = suite.table
    stems: dict[str, dict[str, int]] = {}
    variants: dict[str, int] = {}
    for row, key in enumerate(table.keys):
        stem, variant = split_variant(key)
        stems.setdefault(stem, {})[variant] = row
        variants.setdefault(variant, row)
    of_variant = [
        name
        for name, levels in table.dimensions.items()
        if _follows_variant(levels, stems, variants)
    ]
    of_source = [name for name in table.dimensions if name not in of_variant]
    return {
        "must_match": dict(suite.must_match),
        "quartiles": None if suite.quartiles is None else list(suite.quartiles),
        "bands": list(table.bands),
        "not_evaluated": dict(table.not_evaluated),
        "variant_dimensions": of_variant,
        "source_dimensions": of_source,
        "variants": [
            [variant, bool(table.control[row]), *(table.dimensions[n][row] for n in of_variant)]
            for variant, row in variants.items()
        ],
        "sources": {
            stem: _source_to(suite, list(variants), rows, of_source) for stem, rows in stems.items()
        },
    }


def _follows_variant(
    levels: Sequence[str], stems: Mapping[str, Mapping[str, int]], variants: Mapping[str, int]
) -> bool:
    """Return whether a dimension has one level for each variant, whatever the source."""
    return all(
        levels[row] == levels[variants[variant]]
        for rows in stems.values()
        for variant, row in rows.items()
    )


def _source_to(
    suite: BaselineSuite,
    variants: Sequence[str],
    positions: Mapping[str, int],
    dimensions: Sequence[str],
) -> dict[str, Any]:
    table = suite.table
    rows = [positions.get(variant) for variant in variants]

    def of_each(value: Callable[[int], str]) -> str | list[str | None]:
        """Return what all variants of the source share, else what each has; null: not asked."""
        found = [None if row is None else value(row) for row in rows]
        same = found[0] is not None and len(set(found)) == 1
        return str(found[0]) if same else found

    entry: dict[str, Any] = {
        "cluster": of_each(lambda row: table.cluster_names[table.clusters[row]]),
        "content": of_each(lambda row: suite.contents[table.keys[row]]),
        "dimensions": [of_each(table.dimensions[name].__getitem__) for name in dimensions],
        "columns": {},
    }
    for name, column in table.values.items():
        if name not in table.not_evaluated:
            numbers = [math.nan if row is None else float(column[row]) for row in rows]
            entry["columns"][name] = _cells(numbers)
    return entry


def _cells(numbers: Sequence[float]) -> str | list[float | None]:
    """Return verdicts as a letter each, other values as numbers."""
    if all(math.isnan(number) or number in _LETTERS for number in numbers):
        return "".join(_LETTERS.get(number, ".") for number in numbers)
    return [None if math.isnan(number) else number for number in numbers]


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
        history=[_accepted_from(run) for run in body.get("history", [])],
    )


def _accepted_from(run: Mapping[str, Any]) -> AcceptedRun:
    return AcceptedRun(
        date=run["date"],
        commit=run["commit"],
        measurements=[_entry_from(*entry) for entry in run["values"]],
    )


def _entry_from(
    metric: str, suite: str, where: Mapping[str, str], value: float, *ends: float
) -> Measurement:
    low_high = (ends[0], ends[1]) if ends else None
    return Measurement(metric=metric, suite=suite, where=where, value=value, interval=low_high)


def _measurement_from(row: Mapping[str, Any]) -> Measurement:
    interval = row.get("interval")
    return Measurement(
        **{**row, "interval": None if interval is None else (interval[0], interval[1])}
    )


def _suite_from(name: str, suite: Mapping[str, Any]) -> BaselineSuite:
    variants = suite["variants"]
    of_variant, of_source = suite["variant_dimensions"], suite["source_dimensions"]
    rows: list[tuple[str, str, int, Mapping[str, Any], str]] = []
    """Key, content, position of the variant, the source's entry, cluster."""
    for source, entry in suite["sources"].items():
        for position, variant in enumerate(variants):
            content = _of_variant(entry["content"], position)
            if content is not None:
                cluster = str(_of_variant(entry["cluster"], position))
                rows.append((source + variant[0], content, position, entry, cluster))
    clusters = list(dict.fromkeys(row[4] for row in rows))
    numbers = {cluster: number for number, cluster in enumerate(clusters)}
    columns = list(dict.fromkeys(name for row in rows for name in row[3]["columns"]))
    table = Table(
        suite=name,
        keys=[row[0] for row in rows],
        clusters=np.asarray([numbers[row[4]] for row in rows], dtype=np.int64),
        cluster_names=clusters,
        control=np.asarray([variants[row[2]][1] for row in rows], dtype=bool),
        dimensions={
            **{n: [variants[row[2]][2 + i] for row in rows] for i, n in enumerate(of_variant)},
            **{
                n: [str(_of_variant(row[3]["dimensions"][i], row[2])) for row in rows]
                for i, n in enumerate(of_source)
            },
        },
        values={
            **{
                n: np.asarray([_cell(row[3]["columns"][n][row[2]]) for row in rows], np.float64)
                for n in columns
            },
            **{k: np.full(len(rows), np.nan) for k in suite["not_evaluated"]},
        },
        not_evaluated=suite["not_evaluated"],
        bands=(suite["bands"][0], suite["bands"][1]),
    )
    quartiles = suite["quartiles"]
    return BaselineSuite(
        must_match=suite["must_match"],
        contents={row[0]: row[1] for row in rows},
        table=table,
        quartiles=None if quartiles is None else (quartiles[0], quartiles[1]),
    )


def _of_variant(value: str | Sequence[str | None], position: int) -> str | None:
    return value if isinstance(value, str) else value[position]


def _cell(value: str | float | None) -> float:
    if isinstance(value, str):
        return _VALUES[value]
    return math.nan if value is None else float(value)
