"""Blocks as Markdown: `report.md` in full, the pull-request comment within its limit.

Every span is escaped in one place, by its kind. What does not fit is left out by whole sections,
never inside a table, and the text says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fairgate.domain.outcomes import Outcome
from fairgate.reports import blocks, charts, escaping

COMMENT_LIMIT = 60_000
"""GitHub refuses comments above 65,536 characters; the rest is for markers and footers."""
SUMMARY_LIMIT = 1_000_000
MARKS = {
    Outcome.PASS: "✅",
    Outcome.FAIL: "❌",
    Outcome.INCONCLUSIVE: "⚠️",
    Outcome.NOT_EVALUATED: "➖",
}
_STANDING_OUT = (blocks.Tone.STRONG, blocks.Tone.CHANGED, blocks.Tone.BAD, blocks.Tone.UNSURE)


def line(words: blocks.Inline, *, is_short: bool = False) -> str:
    """Return words as inline Markdown; muted ones are left out where it is short."""
    written = ""
    for span in blocks.spans(words):
        if is_short and span.tone is blocks.Tone.MUTED:
            continue
        text = _span(span)
        # Two code spans that touch would become one.
        touch = written.endswith("`") and text.startswith("`")
        written += f" {text}" if touch else text
    return written.rstrip(" ")


def strong(text: str) -> str:
    """Return text that stands out; a space at either end would undo it and stays outside."""
    body = text.strip(" ")
    start = text.index(body)
    return f"{text[:start]}**{body}**{text[start + len(body) :]}" if body else text


def _span(span: blocks.Span) -> str:
    text = span.shown
    if span.kind is blocks.Kind.MARK:
        return MARKS[Outcome(text)]
    escaped = _ESCAPES[span.kind](text)
    return strong(escaped) if span.tone in _STANDING_OUT else escaped


def _prose(text: str) -> str:
    """Return prose with the one space at either end that ties it to what stands beside it."""
    before, after = (" " if edge == " " else "" for edge in (text[:1], text[-1:]))
    body = escaping.markdown_prose(text)
    return f"{before}{body}{after}" if body else before


_ESCAPES: dict[blocks.Kind, Callable[[str], str]] = {
    blocks.Kind.PROSE: _prose,
    blocks.Kind.NAME: escaping.markdown,
    blocks.Kind.CODE: escaping.markdown_code,
    blocks.Kind.COMMAND: escaping.markdown_code,
    blocks.Kind.QUOTE: escaping.markdown_code,
    blocks.Kind.FIGURE: lambda text: escaping.markdown_figure(text).replace(" ", "&nbsp;"),
    blocks.Kind.DATE: escaping.markdown_date,
}


class MarkdownBlocks:
    """Writes blocks as they stand in a report of some depth."""

    def __init__(self, depth: blocks.Depth) -> None:
        """Take the depth: what is deeper is left out, and muted words are where it is short."""
        self._depth = depth
        self._is_short = depth is blocks.Depth.SHORT
        self._writers: Mapping[type[blocks.Block], Callable[[Any], str]] = {
            blocks.Text: self._text,
            blocks.KeyValues: lambda block: "\n".join(
                f"- {self.line(key)}: {self.line(value)}" for key, value in block.rows
            ),
            blocks.Table: self._table,
            blocks.RangeChart: lambda block: self._table(charts.as_table(block)),
            blocks.CaseList: self._cases,
        }

    def written(self, several: Sequence[blocks.Block]) -> list[str]:
        """Return the text of each block that stands in such a report."""
        visible = (block for block in several if block.depth <= self._depth)
        return [text for block in visible if (text := self._writers[type(block)](block))]

    def line(self, words: blocks.Inline) -> str:
        """Return words as inline Markdown."""
        return line(words, is_short=self._is_short)

    def _text(self, block: blocks.Text) -> str:
        lines = list(map(self.line, block.lines))
        match block.style:
            case blocks.Style.LIST:
                return "\n".join(f"- {words}" for words in lines)
            case blocks.Style.NOTE | blocks.Style.WARNING:
                kind = "NOTE" if block.style is blocks.Style.NOTE else "CAUTION"
                marker = "- " if len(lines) > 1 else ""
                return "\n".join([f"> [!{kind}]", *(f"> {marker}{words}" for words in lines)])
            case _:
                return "\n\n".join(lines)

    def _table(self, block: blocks.Table) -> str:
        rows = block.open[: block.most] if self._is_short else block.open
        parts = [self._rows(block, rows)] if rows else []
        left = len(block.open) - len(rows)
        parts += [f"{left:,} further rows are not shown here."] if left else []
        for group, folded in () if self._is_short else block.groups.items():
            summary = f"<summary>{len(folded):,} {escaping.markdown(group)}</summary>"
            parts.append(f"<details>{summary}\n\n{self._rows(block, folded)}\n\n</details>")
        caption = self.line(block.caption)
        return "\n\n".join([f"{caption}:", *parts] if caption and parts else parts)

    def _rows(self, block: blocks.Table, rows: Sequence[blocks.Row]) -> str:
        notes = [self.line(row.note) for row in rows]
        lines = [
            [*(self.line(column.head) or " " for column in block.columns), "why"],
            [*("--:" if column.is_number else ":--" for column in block.columns), ":--"],
        ]
        for row, note in zip(rows, notes, strict=True):
            first, *rest = (self.line(cell) or " " for cell in row.cells)
            first = strong(first) if row.kind is blocks.RowKind.GROUP else first
            lines.append([first, *rest, note or " "])
        rows_with_notes = (cells if any(notes) else cells[:-1] for cells in lines)
        return "\n".join(f"| {' | '.join(cells)} |" for cells in rows_with_notes)

    def _cases(self, block: blocks.CaseList) -> str:
        entries = []
        for number, case in enumerate(block.cases, start=1):
            lines = map(self.line, (case.title, case.text, *case.facts, case.command))
            indent = " " * (len(str(number)) + 2)
            entries.append(f"{number}. " + f"<br>\n{indent}".join(filter(None, lines)))
        return "\n".join(entries)


_SHORT, _FULL = MarkdownBlocks(blocks.Depth.SHORT), MarkdownBlocks(blocks.Depth.FULL)


def render_report(view: blocks.View, *, limit: int = SUMMARY_LIMIT) -> str:
    """Return `report.md`: everything a reviewer may ask, the verdict first."""
    top = [
        f"# {_title(view)}",
        line(view.lead),
        *_FULL.written((*view.warnings, *view.summary)),
        line(view.next_step),
        *_FULL.written(view.notices),
    ]
    sections = [(s, _section(s, _FULL, "##")) for s in view.sections]
    is_pass = view.outcome is Outcome.PASS
    return _within(top, sections, limit, _folded if is_pass else lambda parts: parts)


def render_comment(view: blocks.View, *, limit: int = COMMENT_LIMIT, report_url: str = "") -> str:
    """Return the pull-request comment: three lines where all is well, else details to unfold."""
    run = escaping.markdown_code(view.run_command)
    link = f"[full report]({report_url})" if report_url else run
    title, counts = f"### {_title(view)}", f"{line(view.counts_line)} · {link}"
    notices = _SHORT.written(view.notices)
    if view.outcome is Outcome.PASS:
        lead = "\n".join(filter(None, (line(view.lead), counts, line(view.next_step))))
        return _joined([title, lead, *_SHORT.written(view.warnings), *notices])
    below = _SHORT.written((*view.warnings, *view.summary))
    sections = [(s, _section(s, _SHORT, "####")) for s in view.sections if s.in_comment]
    top = [title, line(view.lead), *below, line(view.next_step), counts]
    return _within(top, sections, limit, lambda parts: _folded([*notices, *parts]))


def _folded(parts: list[str]) -> list[str]:
    fold = "<details><summary>Cases and figures</summary>"
    return [fold, *parts, "</details>"] if parts else []


def render_blocks(several: Sequence[blocks.Block]) -> str:
    """Return blocks without a report around them."""
    return "\n\n".join(_FULL.written(several))


def length(text: str) -> int:
    """Return the bytes of a text as UTF-8, never fewer than the characters that GitHub counts."""
    return len(text.encode("utf-8", "replace"))


def _title(view: blocks.View) -> str:
    mark = MARKS[view.mark]
    return f"{mark} FairGate: {line(view.title)} in {escaping.markdown_code(view.policy)}"


def _within(
    top: Sequence[str],
    sections: Sequence[tuple[blocks.Section, str]],
    limit: int,
    around: Callable[[list[str]], list[str]],
) -> str:
    """Return the report with as many sections as fit, those of little worth left out first."""
    fitting = [(section, text) for section, text in sections if text]
    left_out: list[blocks.Section] = []
    while True:
        names = line(blocks.joined([section.title for section in left_out]))
        last = f"Left out because this text has a limit: {names}. See the full report."
        text = _joined([*top, *around([text for _, text in fitting]), last if left_out else ""])
        if length(text) <= limit or not fitting:
            return text
        least = min(fitting, key=lambda item: item[0].worth)
        fitting.remove(least)
        left_out.append(least[0])


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(section: blocks.Section, writer: MarkdownBlocks, level: str) -> str:
    parts = writer.written(section.blocks)
    return "\n\n".join([f"{level} {line(section.title)}", *parts]) if parts else ""
