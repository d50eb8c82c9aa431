"""`rows.jsonl`: one JSON line per judged case, in the order of the plan.

Documented in docs/reference/run-record.md. Equal results give equal bytes: keys stand in a fixed
order, numbers are written as the engine rounded them, and what is not a finite number is null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from itertools import chain

from fairgate.domain.outcomes import GateResult
from fairgate.domain.units import Judged, Reason
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

_AS_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_MOST_HELD = 100_000
_Kind = tuple[str, str, str, str, bool]
_Ids = tuple[int, int]


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
