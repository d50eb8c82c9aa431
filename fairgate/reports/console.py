"""Blocks for a terminal: what happened, to whom, and what to do next, in one screen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fairgate.reports import blocks, charts, figures
from fairgate.reports.escaping import excerpt, plain
from fairgate.reports.markdown import MARKS

_WIDTH = 100
_LEAST = 20
_NOTES = 2
_INDENT = "  "
_COLOURS = {blocks.Tone.GOOD: "32", blocks.Tone.BAD: "31", blocks.Tone.UNSURE: "33"}
_BOLD = "1"
_OUTCOMES = {"fail": "FAIL", "pass": "ok"}
"""What stands for marks, which terminals draw in different widths."""
_KEPT = "\N{NO-BREAK SPACE}"
"""Stands for the spaces of a command, which can so be copied, and of figures until the end."""
_MARKUP = re.compile(r"\x00([0-9]+)\x01(.*?)\x02", re.DOTALL)


def render_console(view: blocks.View, *, colour: bool = False, whole: bool = False) -> str:
    """Return the result as plain text, in one screen unless the `whole` of it is asked for.

    `colour` adds ANSI colours, never from hostile text.
    """

    def drawn(*several: blocks.Block) -> list[str]:
        return [line for block in several for line in _block(block, whole=whole)]

    sections = [section for section in view.sections if whole or section.in_console]
    heads = {
        section.id: [blocks.Text(lines=[section.title])] if whole else [] for section in sections
    }
    content = (block for section in sections for block in (*heads[section.id], *section.blocks))
    files: list[blocks.Inline] = [
        [f"{name} ", blocks.command(path)] for name, path in view.options.files.items()
    ]
    word = _painted(f"{MARKS[view.mark]} {view.word}", _COLOURS[blocks.TONES[view.mark]])
    parts = [
        [f"{word}  {_words(view.title)} in {plain(view.policy)}", *_wrapped(view.lead)],
        drawn(*view.warnings),
        *(drawn(block) for block in view.summary),
        [*_wrapped(view.next_step), *drawn(*view.notices)],
        *map(drawn, content),
        [*_wrapped(view.counts_line), *_wrapped(blocks.joined(files))],
    ]
    lines = [line for part in parts if part for line in (*part, "")]
    return _finished(lines[:-1], colour=colour)


def render_blocks(several: Sequence[blocks.Block]) -> str:
    """Return blocks as plain text, without a report around them."""
    lines = [line for block in several for line in (*_block(block, whole=True), "")]
    return _finished(lines[:-1], colour=False)


def _finished(lines: Sequence[str], *, colour: bool) -> str:
    """Return lines without our marks of colours, and with nothing that steers a terminal."""
    finished = []
    for line in lines:
        # Our marks of colours are control characters, which `plain` would show.
        marked = re.split(r"(\x00[0-9]+\x01|\x02)", line.replace(_KEPT, " "))
        clean = "".join(p if p[:1] in ("\0", "\2") else plain(p) for p in marked).rstrip()
        finished.append(_MARKUP.sub(r"\033[\1m\2\033[0m" if colour else r"\2", clean))
    return "\n".join(finished) + "\n"


def _painted(text: str, code: str | None) -> str:
    return f"\0{code}\1{text}\2" if code else text


def _words(words: blocks.Inline) -> str:
    """Return words on one line: the one place that escapes."""
    return "".join(map(_span, blocks.spans(words)))


def _span(span: blocks.Span) -> str:
    if span.kind is blocks.Kind.MARK:
        return _OUTCOMES.get(span.text, "")
    text = plain(span.shown)
    is_whole = span.kind in (blocks.Kind.COMMAND, blocks.Kind.FIGURE)
    return text.replace(" ", _KEPT) if is_whole else figures.unbroken(text)


def _block(block: blocks.Block, *, whole: bool) -> Iterator[str]:
    if block.depth > (blocks.Depth.FULL if whole else blocks.Depth.SHORT):
        return
    match block:
        case blocks.Text():
            head = {blocks.Style.NOTE: "note: ", blocks.Style.LIST: "- "}.get(block.style, "")
            colour = _COLOURS[blocks.Tone.BAD] if block.style is blocks.Style.WARNING else None
            is_cut = block.style is blocks.Style.NOTE and not whole and len(block.lines) > _NOTES
            more = [f"{len(block.lines) - _NOTES:,} more in the report"] if is_cut else []
            for words in [*block.lines[: _NOTES if is_cut else None], *more]:
                yield from (
                    _painted(line, colour) for line in _wrapped([head, *blocks.spans(words)])
                )
        case blocks.KeyValues():
            for key, value in block.rows:
                yield from _wrapped([*blocks.spans(key), ": ", *blocks.spans(value)])
        case blocks.Table():
            yield from _table(block, whole=whole)
        case blocks.RangeChart():
            yield from _table(charts.as_table(block), whole=whole)
        case blocks.CaseList():
            for case in block.cases:
                yield from _wrapped(case.title)
                yield from _wrapped(case.text, _INDENT * 3)


def _table(block: blocks.Table, *, whole: bool) -> Iterator[str]:
    rows = block.rows if whole else block.open[: block.most]
    left = max(0, len(block.open) - len(rows))
    if not rows:
        return
    if blocks.spans(block.caption):
        yield _painted(f"{_INDENT}{_words(block.caption)}", _BOLD)
    texts = [[_cell(cell) for cell in row.cells] for row in rows]
    heads = [_words(column.head) for column in block.columns]
    widths = [max(map(len, column)) for column in zip(heads, *texts, strict=True)]
    # The widest is cut where a line would be too long.
    while sum(widths) + len(_INDENT) * len(widths) > _WIDTH and max(widths) > _LEAST:
        widths[widths.index(max(widths))] -= 1
    yield _painted(_line(heads, widths, block.columns), _BOLD)
    for row, cells in zip(rows, texts, strict=True):
        cut = [_cut(row, number, widths[number]) for number in range(len(cells))]
        yield _painted(_line(cut, widths, block.columns), _COLOURS.get(row.tone))
        note = [span for span in blocks.spans(row.note) if span.tone is not blocks.Tone.MUTED]
        yield from _wrapped(note, _INDENT * 3)
    if left:
        yield f"{_INDENT}and {left:,} further rows in the report"


def _cell(cell: blocks.Inline) -> str:
    loud = [span for span in blocks.spans(cell) if span.tone is not blocks.Tone.MUTED]
    words = [span for span in loud if span.kind is not blocks.Kind.MARK]
    # The outcome's word says what its mark would.
    drawn = words if any(span.shown.strip() for span in words) else loud
    return "".join(map(_span, drawn)).strip()


def _cut(row: blocks.Row, column: int, width: int) -> str:
    """Return a cell in its width; its first words are cut, so that a slice never falls off."""
    whole = _cell(row.cells[column])
    words = [span for span in blocks.spans(row.cells[column]) if span.tone is not blocks.Tone.MUTED]
    if len(whole) <= width or len(words) < 2:
        return excerpt(whole, width)
    rest = "".join(map(_span, words[1:])).rstrip()
    first = excerpt(_span(words[0]), max(_LEAST // 2, width - len(rest)))
    return excerpt(f"{first}{rest}", width)


def _line(cells: Sequence[str], widths: Sequence[int], columns: Sequence[blocks.Column]) -> str:
    padded = [
        f"{cell:>{width}}" if column.is_number else f"{cell:<{width}}"
        for cell, width, column in zip(cells, widths, columns, strict=True)
    ]
    return f"{_INDENT}{_INDENT.join(padded)}"


def _wrapped(words: blocks.Inline, indent: str = _INDENT) -> Iterator[str]:
    import textwrap

    yield from textwrap.wrap(
        _words(words),
        width=_WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
