"""What a report is made of: sections of nine kinds of blocks, which every renderer knows.

Blocks hold words and numbers as they are. Nothing in them is escaped or cut: a renderer does both
for every span, by its kind, so that no section can forget it. Only what the policy's `redact` hides
is already hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum

from fairgate.reports import spans
from fairgate.reports.spans import Inline, Span, Tone, joined

Bounds = tuple[float, float]


class Depth(IntEnum):
    """The least detailed report that a block stands in."""

    SHORT = 0
    """Console, pull-request comment, and those below."""
    FULL = 1
    """`report.md` and the page."""
    PAGE = 2
    """The page alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Anything a section holds."""

    depth: Depth = Depth.SHORT


class Form(StrEnum):
    """What lines of text are."""

    PARAGRAPH = "paragraph"
    LIST = "list"
    NOTE = "note"
    WARNING = "warning"
    SMALL = "small"
    """A remark below a table."""
    COMMAND = "command"
    """Lines to be copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Block):
    """Paragraphs, a list, a note, or commands."""

    lines: Sequence[Inline]
    form: Form = Form.PARAGRAPH


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValues(Block):
    """Names with what is known of each."""

    rows: Sequence[tuple[Inline, Inline]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    head: Inline
    is_number: bool = False
    is_wide: bool = False
    """Left out where there is little room."""


class RowKind(StrEnum):
    """What a row is to the rows around it."""

    NORMAL = "normal"
    GROUP = "group"
    """Stands above the rows that it holds together."""
    REFERENCE = "reference"
    """What the others are to be read beside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table."""

    cells: Sequence[Inline]
    note: Inline = ()
    """Why; stands below the row or in a last column."""
    kind: RowKind = RowKind.NORMAL
    tone: Tone = Tone.NORMAL
    is_settled: bool = False
    """Whether it needs no attention, and so is folded where the table says what it holds."""
    is_repeat: bool = False
    """Whether it says of one more slice what rows above say of theirs; is folded likewise."""
    rank: int = 0
    """Rows of a low rank are kept where not all can be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Block):
    """Rows under columns."""

    label: str
    """Says to those who cannot see it what the table is; unique in a report."""
    columns: Sequence[Column]
    rows: Sequence[Row]
    caption: Inline = ()
    notes: str = "why"
    """Head of the column of notes."""
    most: int | None = None
    """Rows shown where there is little room; None: all of them."""
    folded: str = ""
    """What settled rows are called; on the page they are folded into one line of this name."""
    repeated: str = ""
    """What repeating rows are called, for the same purpose."""
    left_out: int = 0
    """Further rows, which only the machine-readable files hold."""

    def kept(self, most: int | None) -> tuple[list[Row], int]:
        """Return at most `most` rows, the lowest ranks in their order, and how many are left."""
        if most is None or len(self.rows) <= most:
            return list(self.rows), 0
        ranked = sorted(range(len(self.rows)), key=lambda place: (self.rows[place].rank, place))
        return [self.rows[place] for place in sorted(ranked[:most])], len(self.rows) - most


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A value with its interval, as tables write it and as charts draw it; dashes if unknown."""

    shown: str = "\N{EN DASH}"
    interval: str = "\N{EN DASH}"
    value: float | None = None
    bounds: Bounds | None = None


NOTHING = Figure()


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A line of a range chart."""

    name: Inline
    now: Figure
    base: Figure = NOTHING
    facts: Sequence[Inline] = ()
    """Further cells, under the chart's `facts`."""
    kind: RowKind = RowKind.NORMAL
    others: Sequence[Figure] = ()
    """What the page can show instead of the base, in the order of the chart's `others`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeChart(Block):
    """Values with intervals on one scale, beside the baseline's and beside a reference."""

    label: str
    """Says to those who cannot see it what the chart is; unique in a report."""
    rows: Sequence[Range]
    head: str
    """Of the column of names."""
    value: str = "now"
    """Head of the column of values."""
    interval: str = "95 % interval"
    facts: Sequence[Column] = ()
    caption: Inline = ()
    most: int | None = None
    """Rows shown where there is little room, groups left out."""
    is_signed: bool = False
    """Whether 0 stands in the middle."""
    factor: float = 100.0
    """By which values are multiplied on the axis."""
    unit: str = " %"
    has_lanes: bool = False
    """Whether the baseline's value and interval have a line of their own above this run's."""
    usual: str = ""
    """Id of what the base is of, where a reader can choose another one."""
    others: Sequence[tuple[str, str]] = ()
    """Id and head of each of those."""

    @property
    def has_base(self) -> bool:
        """Return whether any row has a value of the baseline's."""
        return any(row.base.value is not None for row in self.rows)

    @property
    def reference(self) -> Range | None:
        """Return the row that the others are to be read beside."""
        return next((row for row in self.rows if row.kind is RowKind.REFERENCE), None)

    def values(self) -> Iterator[float]:
        """Yield every number that the scale must hold."""
        for row in self.rows:
            for figure in (row.now, row.base):
                yield from (v for v in (figure.value, *(figure.bounds or ())) if v is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar, and the baseline's end beside it."""

    name: Inline
    note: str = ""
    now: Figure
    base: Figure = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(Block):
    """Shares as bars from 0 to `full`, or to both sides of 0."""

    label: str
    rows: Sequence[Bar]
    head: str
    note: str = ""
    """Head of the column of notes; empty where no bar has one."""
    caption: Inline = ()
    full: float = 1.0
    is_signed: bool = False

    @property
    def has_base(self) -> bool:
        """Return whether any row has a value of the baseline's."""
        return any(row.base.value is not None for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(Block):
    """How many scores lie where; scores of exactly 0 stand apart."""

    label: str
    caption: Inline
    scores: Sequence[float]
    """In rising order, none below 0; at least one."""
    limits: Sequence[float]
    """Where one band ends and the next begins, in rising order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix(Block):
    """Values by row and column; the extremes of every column are marked."""

    label: str
    corner: str
    columns: Sequence[Inline]
    rows: Sequence[tuple[Inline, Sequence[Sequence[Figure]]]]
    """Name, then for each column one or several values."""

    def as_table(self) -> Table:
        """Return the table that shows it: ▲ marks a column's highest value and ▽ its lowest."""
        cells = [
            [self._cell(row, column) for column in range(len(self.columns))]
            for row in range(len(self.rows))
        ]
        return Table(
            depth=self.depth,
            label=self.label,
            columns=[
                Column(head=self.corner),
                *(Column(head=head, is_number=True) for head in self.columns),
            ],
            rows=[Row(cells=[head, *row]) for (head, _), row in zip(self.rows, cells, strict=True)],
        )

    def _cell(self, row: int, column: int) -> list[Span]:
        parts = self.rows[row][1][column]
        return joined([self._part(figure, column, at) for at, figure in enumerate(parts)], " / ")

    def _part(self, figure: Figure, column: int, at: int) -> Inline:
        values = {value for _, row in self.rows if (value := row[column][at].value) is not None}
        if len(values) > 1 and figure.value == max(values):
            return [spans.figure(figure.shown, Tone.STRONG), " ▲"]
        if len(values) > 1 and figure.value == min(values):
            return [spans.figure(figure.shown), " ▽"]
        return spans.figure(figure.shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseItem:
    """A case with what its reader needs to judge it."""

    title: Inline
    text: Inline
    facts: Sequence[Inline]
    command: Span
    """What to run to see more; the key where there is no such command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseList(Block):
    """Cases, the clearest first."""

    cases: Sequence[CaseItem]
    most: int | None = None
    """Cases shown where there is little room; None: all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Details(Block):
    """Blocks that are folded until a reader asks for them."""

    summary: Inline
    blocks: Sequence[Block]


class Chapter(StrEnum):
    """A part of the page, in the order in which they stand."""

    SUMMARY = "Summary"
    WHO = "Who"
    CASES = "Cases"
    RETRIEVAL = "Retrieval"
    SOCIAL_BIAS = "Social bias"
    RELATIONS = "Relations"
    METHOD = "Method"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Blocks that answer one question of a reader's."""

    id: str
    """Unique in a report, kebab-case."""
    title: Inline
    blocks: Sequence[Block]
    in_comment: bool = True
    in_console: bool = False
    in_page: bool = True
    chapter: Chapter = Chapter.METHOD
    count: int | None = None
    """How many of what its chapter is about it holds; None: nothing to count."""
    worth: int = 0
    """Sections of little worth are dropped first where a report has a limit."""


def numbered(sections: Sequence[Section], suites: Sequence[str]) -> list[Section]:
    """Return sections of one kind, distinguished by their suite where there are several."""
    if len(sections) < 2:
        return list(sections)
    return [
        replace(
            section,
            id=f"{section.id}-{place}",
            title=[*spans.spans(section.title), " (suite ", spans.name(suite), ")"],
        )
        for place, (section, suite) in enumerate(zip(sections, suites, strict=True), start=1)
    ]


def of_suites(
    kind: Section, suites: Sequence[str], blocks: Callable[[str, int], Iterable[Block]]
) -> list[Section]:
    """Return a section of one kind for each suite with anything to say.

    `blocks` takes a suite and its place, from 1, among those that have any.
    """
    found: list[str] = []
    sections: list[Section] = []
    for suite in suites:
        built = list(blocks(suite, len(found) + 1))
        if built:
            found.append(suite)
            sections.append(replace(kind, blocks=built))
    return numbered(sections, found)
