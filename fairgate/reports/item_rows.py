"""The answers to question items, one by one: for machines all of them, for readers what is off."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from fairgate.domain.verdicts import JudgedItem, Reason
from fairgate.reports.bias_view import AnswerRow
from fairgate.reports.escaping import name


def answer_rows(judged: Sequence[JudgedItem]) -> list[AnswerRow]:
    """Return every answer that is wrong or undecided, in the order of the plan."""
    return [
        AnswerRow(
            key=name(row.case.key),
            condition=str(row.case.item.condition),
            setting=name(row.case.setting),
            answer=f"undecided ({row.bias})" if isinstance(row.bias, Reason) else _answer(row),
            right=str(row.case.item.alignment or "unknown"),
            stereotypes=None if isinstance(row.stereotypes, Reason) else row.stereotypes,
            margin=row.margin,
        )
        for row in judged
        if row.is_correct is not True
    ]


def item_rows_jsonl(judged: Sequence[JudgedItem]) -> Iterator[str]:
    """Yield a line of JSON, with its line end, for each question item in the order of the plan."""
    for row in judged:
        case, item = row.case, row.case.item
        shares = row.stereotypes
        record = {
            "key": case.key,
            "suite": case.suite,
            "category": item.category,
            "template": item.template,
            "condition": str(item.condition),
            "alignment": None if item.alignment is None else str(item.alignment),
            "setting": case.setting,
            "retriever": case.retriever or None,
            "k": case.top_k or None,
            "instruction": case.instruction,
            "answer": _answer(row),
            "correct": None if isinstance(row.is_correct, Reason) else row.is_correct,
            "letter": None if row.letter is None else "ABC"[row.letter],
            "stereotype_share": None if isinstance(shares, Reason) else shares,
            "margin": row.margin,
        }
        yield json.dumps(record, allow_nan=False, separators=(",", ":")) + "\n"


def _answer(row: JudgedItem) -> str:
    if isinstance(row.bias, Reason):
        return f"inconclusive({row.bias})"
    return {1: "stereotype", -1: "counter", 0: "unknown"}[row.bias]
