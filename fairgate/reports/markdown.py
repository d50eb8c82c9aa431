"""Blocks as Markdown: `report.md` in full, the pull-request comment within its limit.

Every span is escaped in one place, by its kind. What does not fit is left out by whole sections,
never inside a table, and the text says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fairgate.domain.outcomes import Outcome
from fairgate.reports import escaping
from fairgate.reports.blocks import Block, Depth
from fairgate.reports.markdown_blocks import MarkdownBlocks
from fairgate.reports.markdown_words import MARKS, line
from fairgate.reports.section import Section
from fairgate.reports.spans import joined
from fairgate.reports.view import View

COMMENT_LIMIT = 60_000
"""GitHub refuses comments above 65,536 characters; the rest is for markers and footers."""
SUMMARY_LIMIT = 1_000_000
_SHORT, _FULL = MarkdownBlocks(Depth.SHORT), MarkdownBlocks(Depth.FULL)
_FOLD = "All rules, identities, cases and figures"


def render_report(view: View, *, limit: int = SUMMARY_LIMIT) -> str:
    """Return `report.md`: everything a reviewer may ask, the verdict first."""
    top = [
        f"# {_title(view)}",
        line(view.lead),
        *_FULL.written((*view.warnings, *view.summary)),
        line(view.next_step),
        *_FULL.written(view.remarks),
    ]
    sections = [(s, _section(s, _FULL, "##")) for s in view.sections]
    return _within(top, sections, limit, lambda parts: parts)


def render_comment(view: View, *, limit: int = COMMENT_LIMIT, report_url: str = "") -> str:
    """Return the pull-request comment: three lines where all is well, else details to unfold."""
    link = (
        f"[full report]({report_url})" if report_url else escaping.markdown_code(view.run_command)
    )
    title, standing = f"### {_title(view)}", f"{line(view.standing)} · {link}"
    remarks = _SHORT.written(view.remarks)
    if view.outcome is Outcome.PASS:
        lead = "\n".join(filter(None, (line(view.lead), standing, line(view.next_step))))
        return _joined([title, lead, *_SHORT.written(view.warnings), *remarks])
    below = _SHORT.written((*view.warnings, *view.summary))
    sections = [(s, _section(s, _SHORT, "####")) for s in view.sections if s.in_comment]
    top = [title, line(view.lead), *below, line(view.next_step), standing]
    return _within(top, sections, limit, lambda parts: _folded([*remarks, *parts]))


def render_blocks(blocks: Sequence[Block]) -> str:
    """Return blocks without a report around them."""
    return "\n\n".join(_FULL.written(blocks))


def length(text: str) -> int:
    """Return the length that a limit counts: UTF-16 units, never fewer than code points."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _title(view: View) -> str:
    mark = MARKS[view.mark]
    return f"{mark} FairGate: {line(view.title)} in {escaping.markdown_code(view.policy)}"


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
    names = line(joined([section.title for section in sections]))
    return [f"Left out because this text has a limit: {names}. See the full report."]


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(section: Section, writer: MarkdownBlocks, level: str) -> str:
    blocks = writer.written(section.blocks)
    return "\n\n".join([f"{level} {line(section.title)}", *blocks]) if blocks else ""
