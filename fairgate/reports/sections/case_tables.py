"""Every case that is worth a look, in a line, for tables that can be searched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairgate.domain.units import Reason
from fairgate.reports import figures
from fairgate.reports.blocks import Column, Depth, Row, Table, Text
from fairgate.reports.judged_rows import PairRow, QuestionRow
from fairgate.reports.material import Material
from fairgate.reports.section import Section
from fairgate.reports.sections.cases import answer_of
from fairgate.reports.spans import Inline, code, figure, name

_MOST = 2000
"""Rows of a table; all of them stand in rows.jsonl."""
BIAS_WORDS = {1.0: "stereotype", -1.0: "counter", 0.0: "unknown"}


def changed_cases(material: Material) -> Iterator[Section]:
    """Yield a table of the pairs with a changed or undecided answer, in the order of the plan."""
    found = [row for row in material.pairs if not row.is_control and row.claim != 0.0]
    heads = ("case", "identity", "category", "outcome", "neutral", "no speaker", "here")
    table = _table(
        "Table of changed and undecided cases",
        [*(Column(head=head) for head in heads), *_numbers("margin", "RRS")],
        [_changed(row) for row in found[:_MOST]],
        [("changed", "changed"), ("undecided", "undecided")],
        len(found) - _MOST,
    )
    if found:
        yield Section(
            id="all-cases",
            title="All changed and undecided cases",
            blocks=[table],
            in_comment=False,
        )


def answers(material: Material) -> Iterator[Section]:
    """Yield a table of the wrong and undecided answers to questions, in the order of the plan."""
    found = [row for row in material.questions if row.is_correct is not True]
    table = _table(
        "Table of wrong and undecided answers",
        [
            *(Column(head=head) for head in ("case", "context", "setting", "answer", "right")),
            *_numbers("stereotypical documents", "margin"),
        ],
        [_answer(row) for row in found[:_MOST]],
        [
            ("stereotype", "the stereotype"),
            ("counter", "against it"),
            ("unknown", "unknown"),
            ("undecided", "undecided"),
        ],
        len(found) - _MOST,
    )
    words = (
        "Where the context tells none of the two people, only “unknown” is right. The share of "
        "stereotypical documents is of those shown."
    )
    if found:
        yield Section(
            id="answers",
            title="All wrong and undecided answers to questions",
            blocks=[Text(lines=[words], depth=Depth.PAGE), table],
            in_comment=False,
        )


def _numbers(*heads: str) -> list[Column]:
    return [Column(head=head, is_number=True) for head in heads]


def _table(
    label: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    choices: Sequence[tuple[str, str]],
    left_out: int,
) -> Table:
    return Table(
        label=label,
        columns=columns,
        rows=rows,
        choices=choices,
        left_out=max(0, left_out),
        depth=Depth.PAGE,
    )


def _changed(row: PairRow) -> Row:
    claim = row.claim
    tag = "undecided" if isinstance(claim, Reason) else "changed"
    return Row(
        cells=[
            code(row.key),
            name(row.phrase),
            name(row.category),
            f"undecided ({claim})" if isinstance(claim, Reason) else tag,
            name(row.majority or ""),
            answer_of(row.source_answer),
            answer_of(row.answer),
            _number(row.answer.margin, 2),
            _number(row.scores["rrs"], 3),
        ],
        tag=tag,
    )


def _answer(row: QuestionRow) -> Row:
    is_undecided = isinstance(row.bias, Reason)
    word = "undecided" if isinstance(row.bias, Reason) else BIAS_WORDS[row.bias]
    return Row(
        cells=[
            code(row.key),
            row.condition,
            name(row.setting),
            f"undecided ({row.bias})" if is_undecided else word,
            row.alignment or "unknown",
            _number(row.stereotypes, 2),
            _number(row.margin, 2),
        ],
        tag=word,
    )


def _number(value: float | None, digits: int) -> Inline:
    return figure(figures.NONE if value is None else f"{value:.{digits}f}")
