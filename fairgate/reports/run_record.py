"""The run record: `run.json` and one JSON line per judged pair, for machines and for later runs.

Documented in docs/reference/run-record.md. Equal results give equal bytes: keys stand in a fixed
order, numbers are written as the engine rounded them, there are no timings, and what is not a
finite number is null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping

from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import Change, GateResult, Overlap, RuleResult
from fairgate.domain.verdicts import JudgedPair, Reason
from fairgate.reports.cases import score
from fairgate.reports.causes import cause_rows

SCHEMA_VERSION = 1
MustMatch = Mapping[str, Mapping[str, str]]


def render_run_record(result: GateResult, must_match: MustMatch) -> str:
    """Return `run.json`; `must_match` gives each suite's fields that a baseline must share."""
    return json.dumps(run_record(result, must_match), indent=2, allow_nan=False) + "\n"


def run_record(result: GateResult, must_match: MustMatch) -> dict[str, object]:
    """Return the content of `run.json` as plain values."""
    evidence, provenance = result.evidence, result.provenance
    return {
        "schema_version": SCHEMA_VERSION,
        "fairgate": provenance.fairgate,
        "policy": result.policy,
        "outcome": result.outcome.value,
        "exit_code": int(result.exit_code),
        "measurements": [_measurement(item) for item in result.measurements],
        "rules": [_rule(rule) for rule in result.rules],
        "evidence": {
            "planned": evidence.planned,
            "decided": evidence.decided,
            "invalid": evidence.invalid,
            "missing": list(evidence.missing),
            "problems": list(evidence.problems),
            "rejected": [
                {"key": r.key, "suite": r.suite, "kind": r.kind, "reason": r.reason}
                for r in result.plan.rejected
            ],
        },
        "baseline": result.baseline_path or None,
        "overlap": _overlap(result.overlap),
        "degradation": [
            {
                "suite": found.suite,
                "threshold": _number(found.threshold),
                "auc": _number(found.auc),
                "stable_pairs": found.stable_pairs,
                "flipped_pairs": found.flipped_pairs,
            }
            for found in result.degradation
        ],
        **cause_rows(result),
        "fingerprint": {
            suite: dict(sorted(fields.items())) for suite, fields in sorted(must_match.items())
        },
        "provenance": {
            "policy_path": provenance.policy_path,
            "commit": provenance.commit or None,
            "under_test": dict(provenance.under_test),
            "environment": dict(provenance.environment),
        },
        "notices": list(result.notices),
    }


def _measurement(item: Measurement) -> dict[str, object]:
    record: dict[str, object] = {
        "metric": item.metric,
        "suite": item.suite,
        "where": dict(item.where),
        "value": _number(item.value),
        "interval": _pair(item.interval),
        "decided": item.decided,
        "inconclusive": item.inconclusive,
        "violated": item.violated,
    }
    if item.note:
        record["note"] = item.note
    return record


def _rule(rule: RuleResult) -> dict[str, object]:
    return {
        "metric": rule.metric,
        "suite": rule.suite,
        "where": dict(rule.where),
        "gate": rule.position,
        "outcome": rule.outcome.value,
        "failed": list(rule.failed),
        "reasons": list(rule.reasons),
        "bounds": {name: _number(bound) for name, bound in rule.bounds.items()},
        "value": _number(rule.value),
        "interval": _pair(rule.interval),
        "advisory": rule.advisory,
        "reported": rule.is_reported,
        "first_run": rule.is_first_run,
        "warns": rule.warns,
        "change": _change(rule.change),
    }


def _change(change: Change | None) -> dict[str, object] | None:
    if change is None:
        return None
    return {
        "base": _number(change.base),
        "now": _number(change.now),
        "worsening": _number(change.change),
        "interval": _pair((change.lower, change.upper)),
        "p_value": _number(change.p_value),
        "p_corrected": _number(change.p_corrected),
        "significant": change.significant,
        "method": change.method,
        "sources": change.sources,
        "changed_sources": change.changed_sources,
        "changed_sources_needed": change.changed_sources_needed,
        "discordant": change.discordant,
        "margin": _number(change.margin),
        "detect": _number(change.detect),
        "minimum_detectable": _number(change.minimum_detectable),
        "sources_needed": change.sources_needed,
        "sign_changed": change.sign_changed,
    }


def _overlap(overlap: Overlap | None) -> dict[str, object] | None:
    if overlap is None:
        return None
    return {
        "compared": overlap.compared,
        "new": list(overlap.new),
        "removed": list(overlap.removed),
        "incompatible": list(overlap.incompatible),
    }


def rows_jsonl(judged: Iterable[JudgedPair]) -> Iterator[str]:
    """Yield a line of JSON, with its line end, for each pair in the order of the plan."""
    for item in judged:
        yield json.dumps(_row(item), allow_nan=False, separators=(",", ":")) + "\n"


def _row(item: JudgedPair) -> dict[str, object]:
    pair = item.pair
    return {
        "key": pair.key,
        "suite": pair.suite,
        "relation": pair.relation,
        "source": pair.source,
        "category": pair.category,
        "term": pair.term,
        "control": pair.control,
        "source_label": item.source.label,
        "follow_up_label": item.follow_up.label,
        "majority": item.majority,
        "generation": _verdict(item.generation),
        "controlled": _verdict(item.controlled),
        "retrieval": _verdict(item.retrieval),
        "mean_distance": _decided(item.mean_distance),
        "label_changes": _decided(item.label_changes),
        "rrs": _number(score(item)),
        "overlap": _decided(item.overlap),
        "margin": _number(item.follow_up.margin),
    }


def _verdict(claim: bool | Reason) -> str:  # noqa: FBT001 (a verdict is no switch)
    if isinstance(claim, Reason):
        return f"inconclusive({claim})"
    return "violated" if claim else "satisfied"


def _decided(value: float | Reason) -> float | None:
    return None if isinstance(value, Reason) else _number(value)


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _pair(bounds: tuple[float, float] | None) -> list[float | None] | None:
    return None if bounds is None else [_number(bounds[0]), _number(bounds[1])]
