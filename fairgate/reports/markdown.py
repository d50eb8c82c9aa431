"""Blocks as Markdown: `report.md` in full, the pull-request comment within its limit.

Every span is escaped in one place, by its kind. What does not fit is left out by whole sections,
never inside a table, and the text says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fairgate.domain.outcomes import Outcome
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
    Section,
    Table,
    Text,
)
from fairgate.reports.spans import Inline, Kind, Span, Tone, joined, spans
from fairgate.reports.view import View

COMMENT_LIMIT = 60_000
"""GitHub refuses comments above 65,536 characters; the rest is for markers and footers."""
SUMMARY_LIMIT = 1_000_000
MARKS = {
    Outcome.PASS: "✅",
    Outcome.FAIL: "❌",
    Outcome.INCONCLUSIVE: "⚠️",
    Outcome.NOT_EVALUATED: "➖",
}
_STANDING_OUT = (Tone.STRONG, Tone.CHANGED, Tone.BAD, Tone.UNSURE)
_FOLD = "All rules, identities, cases and figures"


def render_report(view: View, *, limit: int = SUMMARY_LIMIT) -> str:
    """Return `report.md`: everything a reviewer may ask, the verdict first."""
    below = (*view.warnings, *view.summary, *view.remarks)
    top = [f"# {_title(view)}", _line(view.lead), *_blocks(below, Depth.FULL)]
    sections = [(s, _section(s, Depth.FULL, "##")) for s in view.sections]
    return _within(top, sections, limit, lambda parts: parts)


def render_comment(view: View, *, limit: int = COMMENT_LIMIT, report_url: str = "") -> str:
    """Return the pull-request comment: three lines where all is well, else details to unfold."""
    link = (
        f"[full report]({report_url})" if report_url else escaping.markdown_code(view.run_command)
    )
    title, standing = f"### {_title(view)}", f"{_line(view.standing)} · {link}"
    remarks = _blocks(view.remarks, Depth.SHORT)
    if view.outcome is Outcome.PASS:
        warnings = _blocks(view.warnings, Depth.SHORT)
        return _joined([title, f"{_line(view.lead)}\n{standing}", *warnings, *remarks])
    below = _blocks((*view.warnings, *view.summary), Depth.SHORT)
    sections = [(s, _section(s, Depth.SHORT, "####")) for s in view.sections if s.in_comment]
    top = [title, _line(view.lead), *below, standing]
    return _within(top, sections, limit, lambda parts: _folded([*remarks, *parts]))


def render_blocks(blocks: Sequence[Block]) -> str:
    """Return blocks without a report around them."""
    return "\n\n".join(_blocks(blocks, Depth.SHORT))


def length(text: str) -> int:
    """Return the length that a limit counts: UTF-16 units, never fewer than code points."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _title(view: View) -> str:
    mark = MARKS[view.outcome]
    return f"{mark} FairGate: {_line(view.title)} in {escaping.markdown_code(view.policy)}"


def _folded(parts: list[str]) -> list[str]:
    return [f"<details><summary>{_FOLD}</summary>", *parts, "</details>"] if parts else []


def _within(
    top: Sequence[str],
    sections: Sequence[tuple[Section, str]],
    limit: int,
    around: Callable[[list[str]], list[str]],
) -> str:
    """Return the report with as many sections as fit, those of little worth left out first."""
    kept = [(section, text) for section, text in sections if text]
    left_out: list[Section] = []
    while True:
        text = _joined([*top, *around([text for _, text in kept]), *_left_out(left_out)])
        if length(text) <= limit or not kept:
            return text
        least = min(kept, key=lambda item: item[0].worth)
        kept.remove(least)
        left_out.append(least[0])


def _left_out(sections: Sequence[Section]) -> list[str]:
    if not sections:
        return []
    names = _line(joined([section.title for section in sections]))
    return [f"Left out because this text has a limit: {names}. See the full report."]


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(section: Section, depth: Depth, level: str) -> str:
    blocks = _blocks(section.blocks, depth)
    return "\n\n".join([f"{level} {_line(section.title)}", *blocks]) if blocks else ""


def _blocks(blocks: Sequence[Block], depth: Depth) -> list[str]:
    shown = (_block(block, depth) for block in blocks if block.depth <= depth)
    return [text for text in shown if text]


def _block(block: Block, depth: Depth) -> str:
    return _RENDERERS[type(block)](block, depth)


def _key_values(block: KeyValues, _: Depth) -> str:
    return "\n".join(f"- {_line(key)}: {_line(value)}" for key, value in block.rows)


def _matrix(block: Matrix, depth: Depth) -> str:
    return _table(block.as_table(), depth)


def _ranges(block: RangeChart, depth: Depth) -> str:
    if depth > Depth.SHORT:
        return _table(text_charts.as_table(block), depth)
    return _chart(block.caption, text_charts.ranges(block))


def _bars(block: Bars, _: Depth) -> str:
    return _chart(block.caption, text_charts.bars(block))


def _histogram(block: Histogram, _: Depth) -> str:
    return _chart(block.caption, text_charts.histogram(block))


def _chart(caption: Inline, chart: str) -> str:
    return _captioned(caption, [escaping.markdown_block(chart)])


def _cases(block: CaseList, _: Depth) -> str:
    return "\n".join(_case(case, at) for at, case in enumerate(block.cases, start=1))


def _details(block: Details, depth: Depth) -> str:
    head = f"<details><summary>{_html_line(block.summary)}</summary>"
    return "\n\n".join([head, *_blocks(block.blocks, depth), "</details>"])


def _text(block: Text, _: Depth) -> str:
    lines = [_line(words) for words in block.lines]
    match block.form:
        case Form.LIST:
            return "\n".join(f"- {line}" for line in lines)
        case Form.NOTE | Form.WARNING:
            kind = "NOTE" if block.form is Form.NOTE else "CAUTION"
            marker = "- " if len(lines) > 1 else ""
            return "\n".join([f"> [!{kind}]", *(f"> {marker}{line}" for line in lines)])
        case Form.COMMAND:
            return escaping.markdown_block("\n".join(_plain(words) for words in block.lines))
        case Form.SMALL:
            return "\n\n".join(f"<sub>{line}</sub>" for line in lines)
        case _:
            return "\n\n".join(lines)


def _captioned(caption: Inline, parts: list[str]) -> str:
    words = _line(caption)
    return "\n\n".join([f"{words}:", *parts] if words else parts)


def _table(block: Table, depth: Depth) -> str:
    rows, left = block.kept(block.most if depth is Depth.SHORT else None)
    has_notes = any(spans(row.note) for row in rows)
    columns = [*block.columns]
    heads = [_line(column.head) or " " for column in columns] + ([block.notes] if has_notes else [])
    marks = ["--:" if column.is_number else ":--" for column in columns]
    marks += [":--"] if has_notes else []
    lines = [_row_of(heads), _row_of(marks), *(_row(row, has_notes=has_notes) for row in rows)]
    left += block.left_out
    more = [f"{left:,} further rows are not shown here."] if left else []
    return _captioned(block.caption, ["\n".join(lines), *more])


def _row(row: Row, *, has_notes: bool) -> str:
    cells = [_line(cell) or " " for cell in row.cells]
    if row.kind is RowKind.GROUP:
        cells[0] = _strong(cells[0])
    return _row_of([*cells, *([_line(row.note) or " "] if has_notes else [])])


def _row_of(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _case(case: CaseItem, number: int) -> str:
    lines = [_line(case.title), _line(case.text), *map(_line, case.facts), _line(case.command)]
    indent = " " * (len(str(number)) + 2)
    return f"{number}. " + f"<br>\n{indent}".join(line for line in lines if line)


def _line(words: Inline) -> str:
    """Return words as inline Markdown: the one place that escapes."""
    found = ""
    for text in map(_span, spans(words)):
        # Two code spans that touch would become one.
        touch = found.endswith("`") and text.startswith("`")
        found += f" {text}" if touch else text
    return found


def _span(span: Span) -> str:
    text = span.shown
    if span.kind is Kind.MARK:
        return MARKS[Outcome(text)]
    escaped = _ESCAPES[span.kind](text)
    return _strong(escaped) if span.tone in _STANDING_OUT else escaped


def _prose(text: str) -> str:
    """Return prose with the one space at either end that ties it to what stands beside it."""
    before, after = (" " if edge == " " else "" for edge in (text[:1], text[-1:]))
    body = escaping.markdown_prose(text)
    return f"{before}{body}{after}" if body else before


def _figure(text: str) -> str:
    return escaping.markdown_figure(text).replace(" ", "&nbsp;")


_ESCAPES: dict[Kind, Callable[[str], str]] = {
    Kind.PROSE: _prose,
    Kind.NAME: escaping.markdown,
    Kind.CODE: escaping.markdown_code,
    Kind.COMMAND: escaping.markdown_code,
    Kind.QUOTE: escaping.markdown_code,
    Kind.FIGURE: _figure,
    Kind.DATE: escaping.markdown_date,
}


def _strong(text: str) -> str:
    """Return text that stands out; a space at either end would undo it and stays outside."""
    body = text.strip(" ")
    start = text.index(body)
    return f"{text[:start]}**{body}**{text[start + len(body) :]}" if body else text


def _plain(words: Inline) -> str:
    return "".join(span.shown for span in spans(words))


def _html_line(words: Inline) -> str:
    """Return words for an element inside which Markdown is not read."""
    return "".join(
        escaping.html_prose(span.shown)
        if span.kind is Kind.PROSE
        else escaping.html_code(span.shown)
        for span in spans(words)
    )


_RENDERERS: Mapping[type[Block], Callable[[Any, Depth], str]] = {
    Text: _text,
    KeyValues: _key_values,
    Table: _table,
    Matrix: _matrix,
    RangeChart: _ranges,
    Bars: _bars,
    Histogram: _histogram,
    CaseList: _cases,
    Details: _details,
}
