"""What machines and later runs read: `run.json`, and `rows.jsonl` with a line a judged case.

Documented in docs/reference/run-record.md. Equal results give equal bytes: keys stand in a fixed
order, numbers are written as the engine rounded them, there are no timings, and what is not a
finite number is null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import chain

from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import Change, GateResult, KeptKillScore, RuleResult
from fairgate.domain.units import Judged, Reason
from fairgate.reports.affected import alerts
from fairgate.reports.judged_rows import (
    SCORES,
    VERDICTS,
    Claim,
    PairRow,
    QuestionRow,
    other_rows,
    pair_rows,
    question_rows,
)
from fairgate.reports.sections.case_tables import BIAS_WORDS

SCHEMA_VERSION = 1
MustMatch = Mapping[str, Mapping[str, str]]
_UNTOLD = ("by_default", "is_diluted", "is_not_in_baseline")
_AS_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_MOST_HELD = 100_000
_Kind = tuple[str, str, str, str, bool]
_Ids = tuple[int, int]


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


def rows_jsonl(result: GateResult) -> Iterator[str]:
    """Yield a line of JSON, with its line end, for each judged case in the order of the plan."""
    pairs = map(_PairLines().line, pair_rows(result))
    others = chain(map(_question, question_rows(result)), map(_unit, other_rows(result)))
    yield from (f"{line}\n" for line in chain(pairs, map(_AS_JSON, others)))


class _PairLines:
    """Writes pairs as JSON; what many of them share is written once.

    A million pairs are of a few dozen kinds, and have a few hundred different outcomes.
    """

    def __init__(self) -> None:
        self._kinds: dict[_Kind, tuple[str, str]] = {}
        self._outcomes: dict[_Ids, tuple[Judged, str]] = {}

    def line(self, row: PairRow) -> str:
        """Return the line of a pair, without its end."""
        kind = row.relation, row.suite, row.category, row.term, row.is_control
        before, after = self._kinds.get(kind) or self._kinds.setdefault(kind, _kind(row))
        judged = row.judged
        name = id(judged.readings), id(judged.claims)
        # Kept with what has these ids, so that nothing else takes them.
        _, outcome = self._outcomes.get(name) or (judged, _members(_outcome(row)))
        if len(self._outcomes) < _MOST_HELD:
            self._outcomes.setdefault(name, (judged, outcome))
        return (
            f'{{"key":{_AS_JSON(row.key)},{before},"source":{_AS_JSON(row.source)},'
            f"{after},{outcome}}}"
        )


def _members(record: Mapping[str, object]) -> str:
    """Return the members of an object as JSON, without its braces."""
    return _AS_JSON(record)[1:-1]


def _kind(row: PairRow) -> tuple[str, str]:
    """Return what a line holds before the pair's source, and behind it before the outcome."""
    about = {"category": row.category, "term": row.term, "control": row.is_control}
    return _members({"suite": row.suite, "relation": row.relation}), _members(about)


def _outcome(row: PairRow) -> dict[str, object]:
    distance, changes, rrs, overlap = (_number(row.score(name)) for name in SCORES)
    return {
        "source_label": row.source_answer.value,
        "follow_up_label": row.answer.value,
        "majority": row.majority,
        **{name: _verdict(row.verdict(name)) for name in VERDICTS},
        "mean_distance": distance,
        "label_changes": changes,
        "rrs": rrs,
        "overlap": overlap,
        "margin": _number(row.answer.margin),
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _verdict(claim: Claim) -> str:
    if isinstance(claim, Reason):
        return f"inconclusive({claim})"
    return "violated" if claim else "satisfied"


def _unit(row: Judged) -> dict[str, object]:
    return {
        "key": row.unit.key,
        "suite": row.unit.suite,
        **row.unit.dimensions,
        "control": row.unit.is_control,
        **{
            name: f"inconclusive({claim})" if isinstance(claim, Reason) else _number(claim)
            for name, claim in row.claims.items()
        },
    }


def _question(row: QuestionRow) -> dict[str, object]:
    return {
        "key": row.key,
        "suite": row.suite,
        "category": row.category,
        "template": row.template,
        "condition": row.condition,
        "alignment": row.alignment,
        "setting": row.setting,
        "retriever": row.retriever or None,
        "k": row.top_k or None,
        "instruction": row.instruction,
        "answer": f"inconclusive({row.bias})"
        if isinstance(row.bias, Reason)
        else BIAS_WORDS[row.bias],
        "correct": None if isinstance(row.is_correct, Reason) else row.is_correct,
        "letter": row.letter,
        "stereotype_share": row.stereotypes,
        "margin": _number(row.margin),
    }
