"""What a pull request's report says beside the gate's own: who decided, and what the change edits.

The rest of the comment and of the summary is the report; this is put before and after it, and the
whole is kept within the limits of where it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from fairgate.domain.outcomes import Outcome
from fairgate.reports import figures
from fairgate.reports.blocks import Block, Column, Form, Row, Table, Text
from fairgate.reports.escaping import markdown_block, short_sentence
from fairgate.reports.markdown import (
    COMMENT_LIMIT,
    length,
    render_blocks,
    render_comment,
    render_report,
)
from fairgate.reports.spans import Inline, Kind, Span, code, joined, strong
from fairgate.reports.view import View

_NAMED, _NAME = 5, 120
"""Most files of one role that are named, and most characters of a name."""
_SMALLEST_REPORT = 2_000
_LONGEST = 300
"""Characters of an entry where not all entries are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What stands where there is not room for everything; None lists all of it."""

    loosened: int | None = None
    others: int | None = None
    has_report: bool = True


_WHOLE = Room()
_STEPS = (
    Room(loosened=20, others=20),
    Room(loosened=20, others=5),
    Room(loosened=20, others=0),
    Room(loosened=20, others=0, has_report=False),
    Room(loosened=5, others=0, has_report=False),
    Room(loosened=1, others=0, has_report=False),
)
"""What is left out for want of room, step by step; what is less strict than before is the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """A change that edits the policy or baseline by which it is judged."""

    files: Mapping[str, Sequence[str]]
    """By what they are: `sources`, `judge's record`."""
    edits_policy: bool
    decided_by: str
    """`base` or `proposed`."""
    base: Inline
    """The result by the base commit's files: `❌ FAIL`."""
    proposed: Inline
    """The result by the change's own files."""
    loosened: Sequence[str]
    differences: Sequence[str]
    """What separates the two baselines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """What stands beside the report."""

    remarks: Sequence[str] = ()
    edits: Edits | None = None


def render_notes(notes: Notes, room: Room = _WHOLE) -> str:
    """Return the Markdown that follows the report; empty where there is nothing to say."""
    blocks: list[Block] = _edits(notes.edits, room) if notes.edits else []
    if notes.remarks:
        blocks.append(Text(lines=_some(notes.remarks, room.others), form=Form.NOTE))
    return render_blocks(blocks)


def render_edited(notes: Notes, room: Room = _WHOLE) -> str:
    """Return the Markdown that precedes the report: what the change edits, by what it is."""
    if notes.edits is None or not notes.edits.files:
        return ""
    line: list[Span | str] = [strong("This change edits")]
    for role, files in notes.edits.files.items():
        named = files[: _NAMED if room.others is None else min(_NAMED, room.others)]
        more = len(files) - len(named)
        line.append(f"{' ' if len(line) == 1 else '; '}{role} ")
        line += joined([code(_shortened(file)) for file in named], ", ")
        if more:
            line.append(f" and {more:,} more" if named else f"({figures.count(more, 'file')})")
    return render_blocks([Text(lines=[line])])


def _shortened(file: str) -> str:
    return file if len(file) <= _NAME else f"{file[: _NAME // 2]}…{file[-_NAME // 2 :]}"


def _cut(text: str, most: int | None) -> str:
    return text if most is None or len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _some(items: Sequence[str], most: int | None) -> list[str]:
    """Return the first entries, and how many more there are; all of them stand in `report.md`."""
    shown = [_cut(item, most) for item in items[:most]]
    more = len(items) - len(shown)
    return [*shown, *([f"and {more:,} more, in report.md of this run"] if more else [])]


def _edits(edits: Edits, room: Room) -> list[Block]:
    by_base = edits.decided_by == "base"
    decides, compares = strong("decides"), "for comparison"
    table = Table(
        label="Results of both sides",
        columns=[Column(head="judged by the files of"), Column(head="result"), Column(head="")],
        rows=[
            Row(cells=["the base commit", edits.base, decides if by_base else compares]),
            Row(cells=["this change", edits.proposed, compares if by_base else decides]),
        ],
    )
    many = f"Less strict than before ({len(edits.loosened):,}, the worst first):"
    loosened = _listed(many, edits.loosened, room.loosened)
    if edits.edits_policy and not edits.loosened:
        loosened = [Text(lines=["No bound is less strict than before."])]
    return [
        table,
        *loosened,
        *_listed("What separates the baselines:", edits.differences, room.others),
    ]


def _listed(title: str, items: Sequence[str], most: int | None) -> list[Block]:
    if not items:
        return []
    return [Text(lines=[title]), Text(lines=_some(items, most), form=Form.LIST)]


def pull_request_comment(
    view: View, notes: Notes, *, report_url: str, most: int = COMMENT_LIMIT
) -> str:
    """Return the comment without its marker, in at most so many characters as GitHub counts."""
    shown = view
    if notes.edits and notes.edits.loosened:
        less = figures.count(len(notes.edits.loosened), "thing")
        line: Inline = [strong(f"This change makes {less} less strict"), ", listed below."]
        warning = Text(lines=[line], form=Form.WARNING)
        shown = replace(view, warnings=[warning, *view.warnings])

    def render(limit: int) -> str:
        return render_comment(shown, limit=limit, report_url=report_url)

    return _within(view, notes, render, most, length, _STEPS)


def several_head(views: Sequence[View], outcome: Outcome) -> str:
    """Return what stands above the reports of several policies: which ended how, and the worst."""
    bad = sum(bool(view.exit_code) for view in views)
    words = f"{bad} of {len(views)} policies did not pass" if bad else f"{len(views)} policies pass"
    warned = [view.mark for view in views if view.mark is not view.outcome]
    if warned and outcome is Outcome.PASS:
        outcome, words = warned[0], f"{words}, {len(warned)} with a warning"
    title = render_blocks([Text(lines=[[Span(outcome.value, Kind.MARK), f" FairGate: {words}"]])])
    table = Table(
        label="Policies",
        columns=[Column(head="policy"), Column(head="outcome"), Column(head="")],
        rows=[
            Row(cells=[
                code(view.policy), [Span(view.mark.value, Kind.MARK), f" {view.word}"], view.lead
            ])
            for view in views
        ],
    )  # fmt: skip
    return f"### {title.strip()}\n\n{render_blocks([table])}"


def no_verdict_comment(problem: str, exit_code: int, *, head: str, report_url: str) -> str:
    """Return the comment of a run that ended before it had a verdict."""
    commit = f" at commit `{head[:12]}`" if head else ""
    shown = markdown_block(short_sentence(problem))
    return (
        f"### FairGate: no verdict (exit code {exit_code})\n\n{shown}\n\n"
        f"The gate could not judge this change{commit} · [run]({report_url})\n"
    )


def job_summary(view: View, notes: Notes, *, limit: int) -> str:
    """Return the job summary in at most `limit` bytes of UTF-8."""

    def render(characters: int) -> str:
        return render_report(view, limit=characters)

    def measure(text: str) -> int:
        return len(text.encode("utf-8", "replace"))

    fewer = [Room(loosened=many, others=many) for many in (None, 1_000, 200)]
    return _within(view, notes, render, limit, measure, [*fewer, *_STEPS])


def _within(
    view: View,
    notes: Notes,
    render: Callable[[int], str],
    limit: int,
    measure: Callable[[str], int],
    steps: Sequence[Room],
) -> str:
    """Return report and notes with as much as fits; what is less strict is left out last."""
    for room in steps:
        edited, extra = render_edited(notes, room), render_notes(notes, room)
        characters = limit - measure(edited) - measure(extra)
        while room.has_report and characters >= _SMALLEST_REPORT:
            text = _joined(edited, render(characters), extra)
            if measure(text) <= limit:
                return text
            characters //= 2
        if not room.has_report and measure(text := _joined(edited, _head(view), extra)) <= limit:
            return text
    return _head(view)


def _head(view: View) -> str:
    """Return what stands in the place of a report that does not fit."""
    line: Inline = [
        Span(view.outcome.value, Kind.MARK),
        f" FairGate: {view.word} in ",
        code(_cut(view.policy, 1)),
        f" (exit code {view.exit_code})",
    ]
    left = "The report does not fit in here; it stands in the report files of this run.\n"
    return f"### {render_blocks([Text(lines=[line])])}\n\n{left}"


def with_notes(report: str, notes: Notes) -> str:
    """Return a report with the notes, nothing of them left out."""
    if notes.edits is None:
        return report
    return _joined(render_edited(notes), report, render_notes(notes))


def _joined(head: str, report: str, extra: str) -> str:
    above = f"{head.rstrip()}\n\n" if head else ""
    return f"{above}{report.rstrip()}\n\n{extra}\n" if extra else f"{above}{report}"
