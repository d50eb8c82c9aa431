"""The nine blocks as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fairgate.reports import escaping, text_charts
from fairgate.reports.blocks import (
    Bars,
    Block,
    CaseItem,
    CaseList,
    Depth,
    Details,
    Form,
    Histogram,
    KeyValues,
    Matrix,
    RangeChart,
    Row,
    RowKind,
    Table,
    Text,
)
from fairgate.reports.markdown_words import html_line, line, plain, strong
from fairgate.reports.spans import Inline


class MarkdownBlocks:
    """Writes blocks as they stand in a report of some depth."""

    def __init__(self, depth: Depth) -> None:
        """Take the depth: what is deeper is left out, and muted words are where it is short."""
        self._depth = depth
        self._is_short = depth is Depth.SHORT
        self._writers: Mapping[type[Block], Callable[[Any], str]] = {
            Text: self._text,
            KeyValues: self._key_values,
            Table: self._table,
            Matrix: lambda block: self._table(block.as_table()),
            RangeChart: self._ranges,
            Bars: lambda block: self._chart(block.caption, text_charts.bars(block)),
            Histogram: lambda block: self._chart(block.caption, text_charts.histogram(block)),
            CaseList: self._cases,
            Details: self._details,
        }

    def written(self, blocks: Sequence[Block]) -> list[str]:
        """Return the text of each block that stands in such a report."""
        shown = (block for block in blocks if block.depth <= self._depth)
        return [text for block in shown if (text := self._writers[type(block)](block))]

    def line(self, words: Inline) -> str:
        """Return words as inline Markdown."""
        return line(words, is_short=self._is_short)

    def _text(self, block: Text) -> str:
        if block.form is Form.COMMAND:
            return escaping.markdown_block("\n".join(map(plain, block.lines)))
        lines = list(map(self.line, block.lines))
        match block.form:
            case Form.LIST:
                return "\n".join(f"- {words}" for words in lines)
            case Form.NOTE | Form.WARNING:
                kind = "NOTE" if block.form is Form.NOTE else "CAUTION"
                marker = "- " if len(lines) > 1 else ""
                return "\n".join([f"> [!{kind}]", *(f"> {marker}{words}" for words in lines)])
            case Form.SMALL:
                return "\n\n".join(f"<sub>{words}</sub>" for words in lines)
            case _:
                return "\n\n".join(lines)

    def _key_values(self, block: KeyValues) -> str:
        return "\n".join(f"- {self.line(key)}: {self.line(value)}" for key, value in block.rows)

    def _ranges(self, block: RangeChart) -> str:
        if self._is_short:
            return self._chart(block.caption, text_charts.ranges(block))
        return self._table(text_charts.as_table(block))

    def _chart(self, caption: Inline, chart: str) -> str:
        return self._captioned(caption, [escaping.markdown_block(chart)])

    def _captioned(self, caption: Inline, parts: list[str]) -> str:
        words = self.line(caption)
        head = words if words.endswith((".", ":")) else f"{words}:"
        return "\n\n".join([head, *parts] if words else parts)

    def _table(self, block: Table) -> str:
        rows, left = block.kept(block.most if self._is_short else None)
        notes = [self.line(row.note) for row in rows]
        heads = [self.line(column.head) or " " for column in block.columns]
        marks = ["--:" if column.is_number else ":--" for column in block.columns]
        has_notes = any(notes)
        lines = [_row(heads, block.notes, has_notes=has_notes)]
        lines.append(_row(marks, ":--", has_notes=has_notes))
        lines += [
            _row(self._cells(row), note or " ", has_notes=has_notes)
            for row, note in zip(rows, notes, strict=True)
        ]
        left += block.left_out
        more = [f"{left:,} further rows are not shown here."] if left else []
        return self._captioned(block.caption, ["\n".join(lines), *more])

    def _cells(self, row: Row) -> list[str]:
        first, *rest = (self.line(cell) or " " for cell in row.cells)
        return [strong(first) if row.kind is RowKind.GROUP else first, *rest]

    def _cases(self, block: CaseList) -> str:
        return "\n".join(self._case(case, at) for at, case in enumerate(block.cases, start=1))

    def _case(self, case: CaseItem, number: int) -> str:
        lines = map(self.line, (case.title, case.text, *case.facts, case.command))
        indent = " " * (len(str(number)) + 2)
        return f"{number}. " + f"<br>\n{indent}".join(words for words in lines if words)

    def _details(self, block: Details) -> str:
        head = f"<details><summary>{html_line(block.summary)}</summary>"
        return "\n\n".join([head, *self.written(block.blocks), "</details>"])


def _row(cells: Iterable[str], note: str, *, has_notes: bool) -> str:
    return f"| {' | '.join([*cells, note] if has_notes else cells)} |"
