"""Baselines as reviewable JSON: summary in plain text, one source a line, fixed precision, a hash.

A key is what a source's variants share and what makes it this one (`#…`, `@…`); whatever follows
from the variant alone is written once a suite, the rest once a source, packed (`packed_suite`).
Format 2 (`listed_suite`) is read, format 3 written.

Reading is strict: a damaged, edited, incomplete or unknown file raises BaselineError, never a
partial baseline.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from fairgate.domain.errors import BaselineError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import Provenance
from fairgate.domain.wording import harmless, quoted
from fairgate.gate import listed_suite, packed_suite
from fairgate.gate.baseline import SCHEMA_VERSION, AcceptedRun, Baseline, KnownSd
from fairgate.gate.baseline_form import baseline_faults
from fairgate.gate.history import entry_of

_SUITE_FROM = {2: listed_suite.suite_from, SCHEMA_VERSION: packed_suite.suite_from}
"""How each format that is read keeps a suite."""
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
        "suites": {
            name: packed_suite.suite_to(suite) for name, suite in sorted(baseline.suites.items())
        },
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
    version = body.get("schema_version") if isinstance(body, dict) else type(body).__name__
    if type(version) is not int or version not in _SUITE_FROM:
        raise BaselineError(
            f"{path}: baseline format {version!r:.40}, this FairGate reads "
            f"{' and '.join(map(str, _SUITE_FROM))}; accept a new run with `fairgate baseline "
            "accept RUN --reason …`, or install the FairGate that wrote it"
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


def _baseline_from(body: Mapping[str, Any]) -> Baseline:
    suite_from = _SUITE_FROM[body["schema_version"]]
    return Baseline(
        policy=body["policy"],
        reason=body["reason"],
        date=body["date"],
        suites={name: suite_from(name, suite) for name, suite in body["suites"].items()},
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
