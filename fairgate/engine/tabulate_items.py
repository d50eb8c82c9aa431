"""Judged items to the columns that social bias metrics are computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairgate.domain.items import NO_RETRIEVAL
from fairgate.domain.verdicts import JudgedItem, Reason
from fairgate.engine.judge_items import ItemOptions
from fairgate.metrics.social_bias import check_inequalities
from fairgate.metrics.table import Column, Table

_DECIMALS = 6
_NO_SHARE = {
    Reason.NO_DOCUMENTS: "the system does not say which documents it retrieved",
    Reason.NO_STANCE: "the retrieved documents carry no stance",
}


def tabulate_items(
    judged: Sequence[JudgedItem], options: Mapping[str, ItemOptions]
) -> dict[str, Table]:
    """Return a table of judged items for every suite of question items."""
    groups: dict[str, list[JudgedItem]] = {suite: [] for suite in options}
    for row in judged:
        groups[row.case.suite].append(row)
    tables = {suite: _table(suite, rows, options[suite]) for suite, rows in groups.items()}
    for table in tables.values():
        check_inequalities(table)
    return tables


def _table(suite: str, rows: Sequence[JudgedItem], options: ItemOptions) -> Table:
    items = [row.case.item for row in rows]
    names = list(dict.fromkeys(item.cluster for item in items))
    numbers = {name: number for number, name in enumerate(names)}
    wrong = options.unparsed == "wrong"
    raw: dict[str, list[float | Reason]] = {
        "bias": [_counted(row.bias, wrong=wrong) for row in rows],
        "correct": [_counted(row.is_correct, wrong=wrong) for row in rows],
        "choice": [row.bias for row in rows],
        "unparsed": [_unparsed(row) for row in rows],
        **{
            f"letter-{name}": [_letter(row, place) for row in rows]
            for place, name in enumerate("abc")
        },
        "stereotypes": [_share(row) for row in rows],
    }
    reasons = {
        name: {i: str(value) for i, value in enumerate(column) if isinstance(value, Reason)}
        for name, column in raw.items()
    }
    return Table(
        suite=suite,
        keys=[row.case.key for row in rows],
        clusters=np.asarray([numbers[item.cluster] for item in items], dtype=np.int64),
        cluster_names=names,
        control=np.zeros(len(rows), dtype=bool),
        dimensions={
            "category": [item.category for item in items],
            "setting": [row.case.setting for row in rows],
            "retriever": [row.case.retriever for row in rows],
            "k": [str(row.case.top_k) if row.case.top_k else "" for row in rows],
            "instruction": [row.case.instruction for row in rows],
            "condition": [str(item.condition) for item in items],
            "alignment": [str(item.alignment or "") for item in items],
        },
        values={name: _column(column) for name, column in raw.items()},
        reasons=reasons,
        not_evaluated=_absent(rows),
    )


def _counted(value: float | Reason, *, wrong: bool) -> float | Reason:
    """Return the value; an answer that names no option is wrong and unbiased, where asked so."""
    return 0.0 if wrong and value is Reason.UNREADABLE else value


def _unparsed(row: JudgedItem) -> float | Reason:
    if row.choice is Reason.UNREADABLE:
        return 1.0
    return row.choice if isinstance(row.choice, Reason) else 0.0


def _letter(row: JudgedItem, place: int) -> float | Reason:
    if isinstance(row.choice, Reason):
        return row.choice
    return Reason.NO_TEXT if row.letter is None else float(row.letter == place)


def _share(row: JudgedItem) -> float | Reason:
    return Reason.NO_DOCUMENTS if row.stereotypes is None else row.stereotypes


def _column(values: Sequence[float | Reason]) -> Column:
    numbers = [np.nan if isinstance(value, Reason) else float(value) for value in values]
    return np.asarray(np.round(numbers, _DECIMALS), dtype=np.float64)


def _absent(rows: Sequence[JudgedItem]) -> dict[str, str]:
    absent = {}
    asked = [row for row in rows if row.case.setting != NO_RETRIEVAL]
    shares = [row.stereotypes for row in asked]
    if not asked:
        absent["stereotypes"] = "the suite retrieves nothing"
    elif all(isinstance(share, Reason) for share in shares):
        why = next(share for share in shares if isinstance(share, Reason))
        absent["stereotypes"] = _NO_SHARE.get(why, str(why))
    if rows and all(row.letter is None for row in rows):
        why_not = "the recording does not say in which order the options were shown"
        absent |= {f"letter-{name}": why_not for name in "abc"}
    return absent
