"""What a report is made of: words, blocks of six kinds, sections, and the view that holds them.

Words are spans that say whose words they are. Nothing in a block is escaped or cut: a renderer does
both for every span, by its kind, so that no section can forget it and no renderer can show more
than another. Only what the policy's `redact` hides is already hidden.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum

from fairgate.domain.outcomes import Outcome
from fairgate.domain.wording import within_sentence
from fairgate.gate.gate import GateResult
from fairgate.reports import escaping
from fairgate.reports.figures import NOTHING, Figure, RuleRow


class Kind(StrEnum):
    """Whose words a span holds, and so how it is escaped."""

    PROSE = "prose"
    """A sentence of ours, which may quote untrusted text."""
    NAME = "name"
    """An untrusted name or label."""
    CODE = "code"
    """Verbatim: a key, an id, a fingerprint."""
    COMMAND = "command"
    """Verbatim: what a reader can run."""
    QUOTE = "quote"
    """An untrusted text, already cut or hashed as the policy's `redact` asks."""
    FIGURE = "figure"
    """Numbers of ours, kept on one line."""
    DATE = "date"
    """A day, if it is one."""
    MARK = "mark"
    """The value of an outcome, drawn as its mark."""


_CODE = re.compile(r"`([^`]+)`")
_CHARACTERS = {
    Kind.NAME: escaping.NAME_CHARACTERS,
    Kind.CODE: escaping.NAME_CHARACTERS,
    Kind.FIGURE: escaping.NAME_CHARACTERS,
    Kind.DATE: escaping.NAME_CHARACTERS,
    Kind.QUOTE: escaping.FULL_CHARACTERS,
}


class Tone(StrEnum):
    """How a span stands out."""

    NORMAL = "normal"
    STRONG = "strong"
    MUTED = "muted"
    """Left out where there is little room."""
    GOOD = "good"
    BAD = "bad"
    UNSURE = "unsure"
    CHANGED = "changed"
    """The part of a text that another text lacks."""


@dataclass(frozen=True, slots=True)
class Span:
    """Words of one kind."""

    text: str
    kind: Kind = Kind.PROSE
    tone: Tone = Tone.NORMAL

    @property
    def shown(self) -> str:
        """Return the words, cut to the length that their kind may have; not escaped."""
        return escaping.excerpt(self.text, _CHARACTERS.get(self.kind, escaping.SENTENCE_CHARACTERS))


Inline = str | Span | Sequence[str | Span]
"""Words on a line; a bare string is prose."""
Words = list[str | Span]
"""Words on a line that is being put together."""
KeyValue = tuple[Inline, Inline]
"""A name with what is known of it."""


def spans(words: Inline) -> list[Span]:
    """Return the spans of a line, without empty ones; names within a sentence read as such.

    What sentences put in backticks is code.
    """
    parts = [words] if isinstance(words, str | Span) else words
    spanned = (part if isinstance(part, Span) else Span(part) for part in parts)
    line = [piece for span in spanned if span.text for piece in _of_code(span)]
    before = ""
    for number, span in enumerate(line):
        if span.kind is Kind.NAME and before and not before.endswith((".", "?", "!")):
            line[number] = replace(span, text=within_sentence(span.text))
        before = "" if span.kind is Kind.MARK else span.text.rstrip() or before
    return line


def _of_code(span: Span) -> Sequence[Span]:
    if span.kind is not Kind.PROSE or "`" not in span.text:
        return [span]
    pieces = _CODE.split(span.shown)
    kinds = (Kind.CODE if number % 2 else Kind.PROSE for number in range(len(pieces)))
    texts_and_kinds = zip(pieces, kinds, strict=True)
    return [replace(span, text=text, kind=kind) for text, kind in texts_and_kinds if text]


def name(text: str, tone: Tone = Tone.NORMAL) -> Span:
    """Return an untrusted name or label."""
    return Span(text, Kind.NAME, tone)


def code(text: str) -> Span:
    """Return a key, an id or a fingerprint."""
    return Span(text, Kind.CODE)


def command(text: str) -> Span:
    """Mark a text as a command that a reader can run."""
    return Span(text, Kind.COMMAND)


def figure(text: str, tone: Tone = Tone.NORMAL) -> Span:
    """Return numbers of ours."""
    return Span(text, Kind.FIGURE, tone)


def strong(text: str) -> Span:
    """Return words of ours that stand out."""
    return Span(text, Kind.PROSE, Tone.STRONG)


def muted(words: Inline) -> list[Span]:
    """Return words that are left out where there is little room."""
    return [replace(span, tone=Tone.MUTED) for span in spans(words)]


def joined(items: Sequence[Inline], separator: str = ", ") -> list[Span]:
    """Return the spans of all items with a separator between them."""
    all_spans: list[Span] = []
    for position, item in enumerate(items):
        all_spans += [Span(separator)] if position else []
        all_spans += spans(item)
    return all_spans


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


class Style(StrEnum):
    """What lines of text are."""

    PARAGRAPH = "paragraph"
    LIST = "list"
    NOTE = "note"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Block):
    """Paragraphs, a list or a note."""

    lines: Sequence[Inline]
    style: Style = Style.PARAGRAPH


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValues(Block):
    """Names with what is known of each."""

    rows: Sequence[KeyValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    head: Inline
    is_number: bool = False
    is_wide: bool = False
    """Left out where there is little room."""


def columns(*words: Inline, numbers: Iterable[Inline] = ()) -> list[Column]:
    """Return columns of words by their heads, then those of numbers."""
    counts = [Column(head=head, is_number=True) for head in numbers]
    return [*(Column(head=head) for head in words), *counts]


class RowKind(StrEnum):
    """What a row is to the rows around it."""

    NORMAL = "normal"
    GROUP = "group"
    """Stands above the rows that it holds together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table."""

    cells: Sequence[Inline]
    note: Inline = ()
    """Why; stands below the row or in a last column."""
    kind: RowKind = RowKind.NORMAL
    tone: Tone = Tone.NORMAL
    group: str = ""
    """What a row that needs no attention is counted among: folded, or left out for want of room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Block):
    """Rows under columns."""

    label: str
    """Says to those who cannot see it what the table is; unique in a report."""
    columns: Sequence[Column]
    rows: Sequence[Row]
    caption: Inline = ()
    most: int | None = None
    """Rows shown where there is little room; None: all that need attention."""

    @property
    def open(self) -> list[Row]:
        """Return the rows that need attention."""
        return [row for row in self.rows if not row.group]

    @property
    def groups(self) -> dict[str, list[Row]]:
        """Return the others by what they are counted among."""
        groups: dict[str, list[Row]] = {}
        for row in self.rows:
            if row.group:
                groups.setdefault(row.group, []).append(row)
        return groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A line of a chart."""

    name: Inline
    now: Figure
    base: Figure = NOTHING
    facts: Sequence[Inline] = ()
    """Further cells, under the chart's `facts`."""
    kind: RowKind = RowKind.NORMAL


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeChart(Block):
    """Differences with intervals on one scale, 0 in the middle, beside the baseline's."""

    label: str
    """Says to those who cannot see it what the chart is; unique in a report."""
    rows: Sequence[Range]
    head: str
    """Of the column of names."""
    caption: Inline = ()
    value: str = "points"
    """Head of the column of values."""
    interval: str = "95 % interval"
    facts: Sequence[Column] = ()
    times: int = 100
    """What labels of the scale multiply values by; 1: values are scores."""
    band: tuple[float, float] | None = None
    """Where control prompts lie, drawn behind the rows."""

    @property
    def has_base(self) -> bool:
        """Return whether any row has a value of the baseline's."""
        return any(row.base.value is not None for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSide:
    """One of the two texts of a case, with what came of it."""

    head: Inline
    text: Inline
    answer: Inline = ()
    documents: Sequence[Inline] = ()
    """Those that the other side lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseItem:
    """A case with what its reader needs to judge it."""

    title: Inline
    text: Inline
    facts: Sequence[Inline]
    command: Span
    """What to run to see more; the key where there is no such command."""
    sides: Sequence[CaseSide] = ()
    """Both texts side by side, where there are two; what differs stands out."""
    notes: Sequence[Inline] = ()
    """Of the facts, those that stand in neither side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseList(Block):
    """Cases, the clearest first; the page lets a reader search them."""

    cases: Sequence[CaseItem]


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
    blocks: Sequence[Block] = ()
    in_comment: bool = True
    in_console: bool = False
    in_page: bool = True
    chapter: Chapter = Chapter.METHOD
    count: int | None = None
    """How many of what its chapter is about it holds; None: nothing to count."""
    worth: int = 0
    """Sections of little worth are dropped first where a report has a limit."""


def of_suites(
    kind: Section,
    suites: Sequence[str],
    blocks: Callable[[str, int], Iterable[Block]],
) -> list[Section]:
    """Return a section of one kind for each suite with anything to say, distinguished by it.

    `blocks` takes a suite and its place, from 1, among those that have any.
    """
    built_sections: list[tuple[str, Section]] = []
    for suite in suites:
        built = list(blocks(suite, len(built_sections) + 1))
        if built:
            built_sections.append((suite, replace(kind, blocks=built)))
    if len(built_sections) < 2:
        return [section for _, section in built_sections]
    return [
        replace(
            section,
            id=f"{section.id}-{number}",
            title=[*spans(section.title), " (suite ", name(suite), ")"],
        )
        for number, (suite, section) in enumerate(built_sections, start=1)
    ]


TONES = {
    Outcome.PASS: Tone.GOOD,
    Outcome.FAIL: Tone.BAD,
    Outcome.INCONCLUSIVE: Tone.UNSURE,
    Outcome.NOT_EVALUATED: Tone.UNSURE,
}
WORDS = {
    Outcome.PASS: "PASS",
    Outcome.FAIL: "FAIL",
    Outcome.INCONCLUSIVE: "NO VERDICT",
    Outcome.NOT_EVALUATED: "NO VERDICT",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What the policy and the command line say about reports."""

    redact: escaping.Redaction = "excerpt"
    confidence: float = 0.95
    report_only: bool = False
    """The exit code is 0 whatever the outcome; reports still say what the outcome is."""
    limit: int | None = None
    """Sources or items of a suite that were asked about at most, where not all were (`--limit`)."""
    run_path: str = ""
    """The run's folder, as commands name it."""
    run_command: str = ""
    """The command that made this run; empty: `fairgate run` and the policy's path."""
    called: Callable[[str], str] = "fairgate {}".format
    """A command of FairGate's as this call would give it: `run` is `fairgate run --root shop`."""
    of_table: bool = False
    """Whether rows of a table were judged: there is no policy, and no run to accept."""
    place: str = ""
    """Where the run's paths start at, in the repository: `services/shop/`."""
    has_explain: bool = False
    """Whether a reader has the run's folder, and so can use `fairgate explain`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What was written, by name (`report`, `record`, …), for the console."""
    of_features: Mapping[str, object] = field(default_factory=dict)
    """What the policy says by the keys of features."""
    policy_text: str = ""
    gate_lines: Mapping[int, int] = field(default_factory=dict)
    """The 1-based line of the policy that each rule's gate stands in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything that a report shows, built once from a run and rendered by every format."""

    options: ReportOptions
    result: GateResult
    policy: str
    outcome: Outcome
    exit_code: int
    exit_meaning: str
    title: Inline
    """Follows "FairGate: " and precedes "in <policy>"."""
    lead: Inline
    """The first sentence: who is treated how, or why there is no verdict."""
    outcome_table: Sequence[Block]
    """The table of outcomes and questions: who, how much, beside what, since when."""
    example_and_cause: Sequence[Block]
    """An example, and what has changed."""
    detectable_effects: Inline
    """The minimum detectable effects; empty where nobody is asked about."""
    warnings: Sequence[Block]
    """What stands right under the verdict, whatever else there is room for."""
    next_step: Inline
    """What a reader can do now; empty where there is nothing to do."""
    notices: Sequence[Block]
    """What else a reader should know beside the verdict."""
    counts_line: Inline
    """One line for a report that has no room: how many rules passed, of how many cases."""
    rules: Sequence[RuleRow]
    sections: Sequence[Section]
    run_command: str
    commit: str
    policy_path: str
    baseline_path: str
    """Empty where nothing was compared."""

    @property
    def mark(self) -> Outcome:
        """Return the outcome that colours titles: no pass beside a waiver is green."""
        is_waived = any(row.rule.waiver for row in self.rules)
        is_passed = self.outcome is Outcome.PASS
        return Outcome.INCONCLUSIVE if is_waived and is_passed else self.outcome

    @property
    def word(self) -> str:
        """Return the outcome as titles name it."""
        return WORDS[self.outcome] if self.mark is self.outcome else "PASS WITH WARNING"

    @property
    def summary(self) -> Sequence[Block]:
        """Return the part for a busy reviewer: outcomes, an example, what could be detected."""
        blocks = [*self.outcome_table, *self.example_and_cause]
        if self.outcome is Outcome.PASS or not self.detectable_effects:  # the lead says it then
            return blocks
        return [*blocks, Text(lines=[self.detectable_effects])]
