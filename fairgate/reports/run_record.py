"""The run record: `run.json`, for machines and for later runs.

Documented in docs/reference/run-record.md. Equal results give equal bytes: keys stand in a fixed
order, numbers are written as the engine rounded them, there are no timings, and what is not a
finite number is null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum

from fairgate.domain.findings import KeptKillScore
from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import Change, GateResult, RuleResult
from fairgate.reports.alerts import alerts

SCHEMA_VERSION = 1
MustMatch = Mapping[str, Mapping[str, str]]


def render_run_record(result: GateResult, must_match: MustMatch) -> str:
    """Return `run.json`; `must_match` gives each suite's fields that a baseline must share."""
    return json.dumps(run_record(result, must_match), indent=2, allow_nan=False) + "\n"


def run_record(result: GateResult, must_match: MustMatch) -> dict[str, object]:
    """Return the content of `run.json` as plain values."""
    provenance = result.provenance
    rejected = [_record(item, without=("relation",)) for item in result.plan.rejected]
    return {
        "schema_version": SCHEMA_VERSION,
        "fairgate": provenance.fairgate,
        "policy": result.policy,
        "outcome": result.outcome.value,
        "exit_code": int(result.exit_code),
        "measurements": [_measurement(item) for item in result.measurements],
        "rules": [_rule(rule) for rule in result.rules],
        "warnings": [alert.rule.reasons[0] for alert in alerts(result)],
        "evidence": {**_record(result.evidence), "rejected": rejected},
        "baseline": result.baseline_path if result.overlap is not None else None,
        "overlap": _plain(result.overlap),
        "anchor": result.anchor_path if result.anchor_overlap is not None else None,
        "anchor_overlap": _plain(result.anchor_overlap),
        "degradation": _plain(result.degradation),
        "identities": _plain(result.identities),
        "attribution": [
            {
                **_record(found),
                "parts": {part.name: _record(part, without=("name",)) for part in found.parts},
            }
            for found in result.attribution
        ],
        "instability": _plain(result.instability),
        "kill_score": _kill_score(result.kill_score),
        "fingerprint": {
            suite: dict(sorted(own.items())) for suite, own in sorted(must_match.items())
        },
        "provenance": {
            "policy_path": provenance.policy_path,
            "commit": provenance.commit or None,
            "under_test": dict(provenance.under_test),
            "environment": dict(provenance.environment),
        },
        **({} if result.pace is None else {"pace": _record(result.pace)}),
        "notices": result.remarks,
    }


def _kill_score(found: KeptKillScore | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {"share": round(found.share, 6), **_record(found, without=("policy_hash",))}


def _measurement(item: Measurement) -> dict[str, object]:
    return _record(item, without=() if item.note else ("note",))


_UNTOLD = ("by_default", "is_diluted", "is_not_in_baseline")


def _rule(rule: RuleResult) -> dict[str, object]:
    names = {"position": "gate", "is_first_run": "first_run", "is_reported": "reported"}
    changes = ("change", "since_anchor")
    moved = {name: _change(getattr(rule, name)) for name in changes}
    return {**_record(rule, without=(*_UNTOLD, *changes), names=names), **moved}


def _change(change: Change | None) -> dict[str, object] | None:
    if change is None:
        return None
    record = _record(
        change, without=("lower", "upper", "decided_once"), names={"change": "worsening"}
    )
    return {**record, "interval": _plain((change.lower, change.upper))}


def _record(
    item: object, *, without: Sequence[str] = (), names: Mapping[str, str] | None = None
) -> dict[str, object]:
    """Return the fields of a dataclass in their order, some left out or called otherwise."""
    assert is_dataclass(item)  # noqa: S101 (called with our own shapes alone)
    return {
        (names or {}).get(field.name, field.name): _plain(getattr(item, field.name))
        for field in fields(item)
        if field.name not in without
    }


def _plain(value: object) -> object:
    """Return a value as JSON knows it; what is not a finite number is None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return _record(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
