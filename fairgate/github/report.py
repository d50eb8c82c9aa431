"""What a pull request shows of judged changes: files, outputs, annotations, summary and comment.

Beside the gate's own report stands who decided and what the change edits; the whole is kept within
the limits of where it goes.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.outcomes import Outcome, RuleResult
from fairgate.domain.wording import first_few, quoted
from fairgate.gate.composition import FinishedRun
from fairgate.gate.gate import GateResult
from fairgate.gate.run_folder import write_run
from fairgate.github.change import GatedChange
from fairgate.github.loosenings import judged_by_base, worst_first
from fairgate.github.runner import SUMMARY_BYTES, Annotation, Level
from fairgate.policy.schema import ANCHOR_SUFFIX
from fairgate.reports import figures
from fairgate.reports.blocks import (
    Block,
    Inline,
    Kind,
    Row,
    Span,
    Style,
    Table,
    Text,
    View,
    code,
    columns,
    joined,
    strong,
)
from fairgate.reports.escaping import excerpt, markdown_block, short_sentence
from fairgate.reports.formats import Format, known_files
from fairgate.reports.markdown import (
    COMMENT_LIMIT,
    length,
    render_blocks,
    render_comment,
    render_report,
)
from fairgate.reports.material import Material
from fairgate.reports.present import texts_of, view_of
from fairgate.reports.sections import parity

_RUN_FOLDER = "fairgate-run"
"""The folder of a reader's own run in suggested commands: the runner's folders exist only there."""
_REGRESSIONS = frozenset({"regression", "budget"})
_LEVELS: Mapping[Outcome, tuple[Level, str]] = {
    Outcome.FAIL: ("error", "rule failed"),
    Outcome.INCONCLUSIVE: ("warning", "rule is inconclusive"),
    Outcome.NOT_EVALUATED: ("notice", "rule was not evaluated"),
}
_WORSE = (ExitCode.GATE_FAILED, ExitCode.BASELINE, ExitCode.NO_VERDICT, ExitCode.PASS)
"""The worst first; what is not in here ends a run without any verdict."""
_SUMS = ("violations", "regressions", "waived")
_OF_EACH = ("outcome", "exit-code", *_SUMS, "run-folder")
_NAMED, _NAME = 5, 120
"""Most files of one role that are named, and most characters of a name."""
_BETWEEN = 10
"""Characters between notes and report."""


@dataclass(frozen=True, slots=True)
class _Room:
    """How many entries of each list the notes show, and characters of each; None: all of them."""

    loosened: int | None = None
    differences: int | None = None
    remarks: int | None = None
    characters: int | None = None


_EVERYTHING = _Room()
_IN_COMMENT = (_Room(1, 1, None, 300), _Room(1, 1, 1, 60), _Room(0, 0, 0, 60))
"""How much a comment shows: the first of these that fits."""
_IN_SUMMARY = (
    _EVERYTHING, _Room(None, 1, 20, 300), *(_Room(most, 1, 1, 60) for most in (None, 2000, 200, 1)),
    _Room(0, 0, 0, 60),
)  # fmt: skip
"""The same for a summary: everything that is less strict, whatever else there is no room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """A policy's row in the table of several policies."""

    name: str
    mark: Outcome
    word: str
    lead: Inline
    exit_code: int = 0


class Report(Protocol):
    """What one policy leaves for the runner and the pull request, judged or not."""

    @property
    def row(self) -> PolicyRow: ...  # noqa: D102 (as the classes say)
    @property
    def outcome(self) -> Outcome: ...  # noqa: D102
    @property
    def exit_code(self) -> int: ...  # noqa: D102
    @property
    def outputs(self) -> Mapping[str, str]: ...  # noqa: D102
    @property
    def annotations(self) -> Sequence[Annotation]: ...  # noqa: D102
    @property
    def needs_attention(self) -> bool: ...  # noqa: D102
    def comment(self, report_url: str, most: int | None = None) -> str: ...  # noqa: D102
    def summary(self, most: int | None = None) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReport:
    """What a finished gate leaves for the runner and the pull request."""

    view: View
    brief: Inline
    """Whom it fails for, and how much; empty where it fails for nobody."""
    outcome: Outcome
    exit_code: int
    outputs: Mapping[str, str]
    annotations: Sequence[Annotation]
    notes: Notes
    edits_rules: bool
    """The change edits what it is judged by: policy, baseline, or what decides the questions."""

    @property
    def row(self) -> PolicyRow:
        """Who, and how much; else the first sentence."""
        view = self.view
        return PolicyRow(
            name=view.policy,
            mark=view.mark,
            word=view.word,
            lead=self.brief or view.lead,
            exit_code=view.exit_code,
        )

    @property
    def needs_attention(self) -> bool:
        """Return whether a reviewer should be informed even if there is no comment yet."""
        is_open = any(row.needs_attention and not row.rule.advisory for row in self.view.rules)
        return self.exit_code != 0 or is_open or self.edits_rules

    def comment(self, report_url: str, most: int | None = None) -> str:
        """Return the comment without its marker, in at most this many bytes (GitHub's limit)."""
        room = most or COMMENT_LIMIT
        return pull_request_comment(self.view, self.notes, report_url=report_url, most=room)

    def summary(self, most: int | None = None) -> str:
        """Return the job summary, in this many bytes (the runner's limit)."""
        return job_summary(self.view, self.notes, limit=most or SUMMARY_BYTES)


def report_change(
    judged: GatedChange[FinishedRun],
    folder: Path,
    written: Sequence[Format],
    *,
    prefix: str = "",
    report_only: bool = False,
    branches: tuple[str, str] | None = None,
) -> ChangeReport:
    """Write the run's files into `folder` and return the report with the texts for GitHub.

    `branches` are the base's and the default one where a pull request is not against that.
    `prefix` is where the gate's root lies in the repository (`services/shop/`): GitHub anchors
    annotations and SARIF results at paths from the repository's own root.
    """
    decides, result = judged.decides, judged.decides.run.result
    path = f"{prefix}{decides.run.gate_input.provenance.policy_path}"
    view = _view(decides, prefix, report_only=report_only)
    notes = Notes(remarks=judged.remarks, edits=_edits(judged, prefix), branches=branches)
    texts = texts_of(view, written)
    report = texts["report.md"]
    if notes.edits is not None or branches:
        texts["report.md"] = lambda: _joined(
            render_above(notes), "".join(report()), render_notes(notes)
        )
    write_run(folder, decides.loaded, decides.run, texts, known_files())
    failed = [rule for rule in result.rules if rule.fails_gate]
    outputs = {
        "outcome": result.outcome.value,
        "exit-code": str(int(result.exit_code)),
        "violations": str(sum(not _REGRESSIONS.issuperset(rule.failed) for rule in failed)),
        "regressions": str(sum(not _REGRESSIONS.isdisjoint(rule.failed) for rule in failed)),
        "waived": str(sum(rule.waiver is not None for rule in result.rules)),
        "run-folder": str(folder),
        **{form.output: str(folder / form.file) for form in written if form.output},
    }

    def at_top(level: Level, title: str, message: str) -> Annotation:
        title = f"FairGate: {title}"
        return Annotation(level=level, title=title, message=message, file=path, line=1)

    return ChangeReport(
        view=view,
        brief=parity.brief(Material(run=decides.run, options=view.options)),
        outcome=result.outcome,
        exit_code=int(result.exit_code),
        outputs=outputs,
        annotations=[
            *(at_top("error", "no verdict", message) for message in _stopped(result)),
            *_annotations(result.rules, path, view.options.gate_lines),
        ],
        notes=notes,
        edits_rules=bool(
            (result.overlap is not None and result.overlap.removed)
            or judged.edited
            or judged.other is not None
            or any(not difference.is_under_test for difference in judged.data)
        ),
    )


def _view(finished: FinishedRun, prefix: str = "", *, report_only: bool) -> View:
    path = shlex.quote(finished.run.gate_input.provenance.policy_path)
    command = f"fairgate run {path} --out {_RUN_FOLDER}"
    return view_of(
        finished.run,
        finished.loaded,
        report_only=report_only,
        run_path=_RUN_FOLDER,
        run_command=f"cd {shlex.quote(prefix)} && {command}" if prefix else command,
        place=prefix,
    )


def _stopped(result: GateResult) -> list[str]:
    """Return why the build stops where no rule's own annotation gives the reason."""
    is_told = result.outcome is Outcome.FAIL and any(rule.fails_gate for rule in result.rules)
    if result.exit_code == 0 or is_told:
        return []
    open_rules = (rule for rule in result.rules if rule.outcome is not Outcome.PASS)
    open_rules = (rule for rule in open_rules if not (rule.advisory or rule.waiver))
    undecided = (reason for rule in open_rules for reason in rule.reasons)
    reasons = (*result.evidence.problems, *result.incompatible, *undecided)
    return [next(iter(reasons), f"the gate's outcome is {result.outcome.value}")]


def _annotations(
    rules: Sequence[RuleResult], path: str, lines: Mapping[int, int]
) -> list[Annotation]:
    """Return an annotation for each rule that did not pass, failures first."""
    return [
        Annotation(
            level="notice" if rule.advisory else "warning" if rule.waiver else level,
            title=f"FairGate: {title}{_whom(rule)}{figures.WAIVED * bool(rule.waiver)}",
            message=f"{figures.metric_in(rule.metric, rule.where)} in suite {rule.suite}: "
            f"{'; '.join(rule.reasons)}",
            file=path,
            line=lines.get(rule.position, 1),
        )
        for outcome, (level, title) in _LEVELS.items()
        for rule in rules
        if rule.outcome is outcome
        and (outcome is Outcome.FAIL or not (rule.is_first_run or rule.is_reported))
    ]


def _whom(rule: RuleResult) -> str:
    """Return whom a question about parity fails for: ` for orientation and black`."""
    names = dict.fromkeys(node.called for node in rule.failing)
    return f" for {first_few([*names])}" if names else ""


def _edits(judged: GatedChange[FinishedRun], prefix: str) -> Edits | None:
    if judged.other is None and not judged.edited and not judged.data:
        return None
    own_outcome = _side_verdict(judged.decides)
    # Empty where policy and baseline are the same.
    other: Inline = "the policy is removed" if judged.edited else ""
    if judged.other is not None:
        other = _side_verdict(judged.other)
    elif judged.is_refused:
        other = "not run"
    by_base = judged.decided_by == "base"
    policy = judged.decides.run.gate_input.provenance.policy_path
    files_by_role: dict[str, list[str]] = {}
    for file in judged.edited:
        kind = "anchor" if file.endswith(f"{ANCHOR_SUFFIX}.json") else "baseline"
        files_by_role.setdefault("policy" if file == policy else kind, []).append(f"{prefix}{file}")
    # What decides comes first, then what is under test.
    for difference in sorted(judged.data, key=lambda difference: difference.is_under_test):
        role = (
            f"{difference.role} (under test)" if difference.is_under_test else str(difference.role)
        )
        files_by_role.setdefault(role, []).append(f"{prefix}{difference.file}")
    mine, others = judged.decides.run, None if judged.other is None else judged.other.run
    base, proposed = (mine, others) if by_base else (others, mine)
    crossed = None
    if base and proposed and judged.loosened:
        crossed = judged_by_base(base.result, proposed)
    results = [run.result if run else None for run in (base, proposed)]
    loosened = worst_first(judged.loosened, results[0], results[1], crossed)
    return Edits(
        files=files_by_role,
        edits_policy=policy in judged.edited,
        decided_by=judged.decided_by,
        base=own_outcome if by_base else other,
        proposed=other if by_base else own_outcome,
        loosened=[loosening.sentence for loosening in loosened],
        differences=judged.differences,
    )


def _side_verdict(finished: FinishedRun) -> Inline:
    view = _view(finished, report_only=False)
    first = ", first run" if finished.run.gate_input.accepted_runs.baseline is None else ""
    who = parity.brief(Material(run=finished.run, options=view.options))
    return [
        Span(view.mark.value, Kind.MARK),
        f" {view.word}{first}",
        *([": ", *who] if who else []),
    ]


def _rank(report: Report) -> tuple[int, bool]:
    """Return how bad an end is, the worst first; what was judged precedes what was not."""
    return _WORSE.index(ExitCode(report.exit_code)), report.outcome is Outcome.NOT_EVALUATED


class SeveralReports:
    """The reports of at least two policies, in the order in which the workflow names them.

    Outcome and exit code are the worst policy's; a reviewer is informed of any of them.
    """

    def __init__(self, reports: Sequence[Report], branches: tuple[str, str] | None = None) -> None:
        """Raise UsageError where two policies have the same name: one would overwrite the other."""
        names = [report.row.name for report in reports]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"two policies are called {quoted(name)}; rename one of them")
        self._reports = reports
        self._worst = min(reports, key=_rank)
        self.outcome, self.exit_code = self._worst.outcome, self._worst.exit_code
        self.needs_attention = any(report.needs_attention for report in reports)
        self.annotations = [annotation for report in reports for annotation in report.annotations]
        above = render_above(Notes(branches=branches))
        self._head = _joined(above, several_head([r.row for r in reports], self.outcome), "")

    @property
    def outputs(self) -> Mapping[str, str]:
        """Return sums, else the worst policy's outputs; `results` has each policy's own."""
        results = {
            report.row.name: {name: report.outputs[name] for name in _OF_EACH}
            for report in self._reports
        }
        sums = {name: sum(int(report.outputs[name]) for report in self._reports) for name in _SUMS}
        return {
            **self._worst.outputs,
            **{name: str(value) for name, value in sums.items()},
            "results": json.dumps(results),
        }

    def comment(self, report_url: str) -> str:
        """Return a line for each policy, and the reports of those that need attention."""
        open_ones = [report for report in self._reports if report.needs_attention]
        room = (COMMENT_LIMIT - length(self._head)) // max(1, len(open_ones)) - 2
        parts = [report.comment(report_url, room).strip() for report in open_ones]
        while parts and length("\n\n".join([self._head, *parts])) >= COMMENT_LIMIT:
            parts.pop()
        return "\n\n".join([self._head.strip(), *parts]) + "\n"

    def summary(self) -> str:
        """Return the job summaries, one after the other."""
        room = (SUMMARY_BYTES - length(self._head)) // len(self._reports) - 2
        parts = [report.summary(room).strip() for report in self._reports]
        return "\n\n".join([self._head.strip(), *parts]) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """A change that edits the policy or baseline by which it is judged."""

    files: Mapping[str, Sequence[str]]
    """By role: `sources`, `judge's record`."""
    edits_policy: bool
    decided_by: str
    """`base` or `proposed`."""
    base: Inline
    """The result by the base commit's files: `❌ FAIL`; empty where they are the same."""
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
    branches: tuple[str, str] | None = None
    """The base's and the default one where a pull request is not against that."""


def render_notes(notes: Notes, room: _Room = _EVERYTHING) -> str:
    """Return the Markdown that follows the report; empty where there is nothing to say."""
    return render_blocks(_notes(notes, room))


def _notes(notes: Notes, room: _Room) -> list[Block]:
    blocks: list[Block] = []
    edits = notes.edits
    if edits is not None:
        by_base = edits.decided_by == "base"
        decides, compares = strong("decides"), "for comparison"
        table = Table(
            label="Results of both sides",
            columns=columns("judged by the files of", "result", ""),
            rows=[
                Row(cells=["the base commit", edits.base, decides if by_base else compares]),
                Row(cells=["this change", edits.proposed, compares if by_base else decides]),
            ],
        )
        many = f"Less strict than before ({len(edits.loosened):,}, the worst first):"
        less = _listed(many, edits.loosened, room.loosened, room)
        if edits.edits_policy and not edits.loosened:
            less = [Text(lines=["No bound is less strict than before."])]
        title = "What separates the baselines:"
        apart = _listed(title, edits.differences, room.differences, room)
        blocks = [*([table] if edits.base and edits.proposed else []), *less, *apart]
    if notes.remarks:
        remarks = _some(notes.remarks, room.remarks, room)
        blocks.append(Text(lines=remarks, style=Style.NOTE))
    return blocks


def with_notes(view: View, notes: Notes) -> View:
    """Return a view for a terminal that says what the change edits, too."""
    warnings = [*_above(notes, _EVERYTHING), *view.warnings]
    notices = [*_notes(notes, _EVERYTHING), *view.notices]
    return replace(view, warnings=warnings, notices=notices)


def render_above(notes: Notes, room: _Room = _EVERYTHING) -> str:
    """Return the Markdown that precedes the report: which base it is, what the change edits."""
    return render_blocks(_above(notes, room))


def _above(notes: Notes, room: _Room) -> list[Block]:
    blocks: list[Block] = []
    if notes.branches:
        base, default = notes.branches
        line: Inline = [
            strong("Not against the default branch"), " ", code(default), ": compared with policy ",
            "and baseline of ", code(base), ".",
        ]  # fmt: skip
        blocks.append(Text(lines=[line]))
    if notes.edits is not None and notes.edits.files:
        blocks.append(Text(lines=[_edited(notes.edits, room)]))
    return blocks


def _edited(edits: Edits, room: _Room) -> list[Span | str]:
    line: list[Span | str] = [strong("This change edits")]
    for role, files in edits.files.items():
        listed_files = files[: _NAMED if room.remarks is None else min(_NAMED, room.remarks)]
        more = len(files) - len(listed_files)
        line.append(f"{' ' if len(line) == 1 else '; '}{role} ")
        ends = _NAME // 2
        short = [f if len(f) <= _NAME else f"{f[:ends]}…{f[-ends:]}" for f in listed_files]
        line += joined([code(file) for file in short], ", ")
        line += [f" and {more:,} more"] if more else []
    return line


def _some(items: Sequence[str], most: int | None, room: _Room) -> list[str]:
    """Return the first entries, and how many more there are; all of them stand in `report.md`."""
    longest = room.characters
    excerpts = [item if longest is None else excerpt(item, longest) for item in items[:most]]
    more = len(items) - len(excerpts)
    remaining_note = f"and {more:,} more, in report.md of this run and in its summary"
    return [*excerpts, *([remaining_note] if more else [])]


def _listed(title: str, items: Sequence[str], most: int | None, room: _Room) -> list[Block]:
    if not items:
        return []
    return [Text(lines=[title]), Text(lines=_some(items, most, room), style=Style.LIST)]


def pull_request_comment(
    view: View, notes: Notes, *, report_url: str, most: int = COMMENT_LIMIT
) -> str:
    """Return the comment without its marker, in at most this many characters as GitHub counts."""
    with_warning = view
    if notes.edits and notes.edits.loosened:
        less = figures.count(len(notes.edits.loosened), "thing")
        listed = " (the worst is below, all are in the run's summary)."
        line: Inline = [strong(f"This change makes {less} less strict"), listed]
        warning = Text(lines=[line], style=Style.WARNING)
        with_warning = replace(view, warnings=[warning, *view.warnings])
    render = partial(render_comment, with_warning, report_url=report_url)
    return _within(view, notes, render, most, _IN_COMMENT)


def several_head(rows: Sequence[PolicyRow], outcome: Outcome) -> str:
    """Return the head of the reports of several policies: the outcome of each, and the worst."""
    bad = sum(bool(row.exit_code) for row in rows)
    new = sum(row.mark is Outcome.NOT_EVALUATED for row in rows)
    words = (
        f"{len(rows) - new} of {len(rows)} policies pass" if new else f"{len(rows)} policies pass"
    )
    words = f"{bad} of {len(rows)} policies did not pass" if bad else words
    words += f", {new} introduced and not judged yet" * bool(new)
    warned = [row.mark for row in rows if row.mark is Outcome.INCONCLUSIVE]
    if warned and outcome is Outcome.PASS:
        outcome, words = warned[0], f"{words}, {len(warned)} with a warning"
    title = render_blocks([Text(lines=[[Span(outcome.value, Kind.MARK), f" FairGate: {words}"]])])
    table = Table(
        label="Policies",
        columns=columns("policy", "outcome", ""),
        rows=[
            Row(cells=[
                code(row.name), [Span(row.mark.value, Kind.MARK), f" {row.word}"], row.lead
            ])
            for row in rows
        ],
    )  # fmt: skip
    return f"### {title.strip()}\n\n{render_blocks([table])}"


def no_verdict_comment(problem: str, exit_code: int) -> str:
    """Return the comment of a run that ended before it had a verdict."""
    block = markdown_block(short_sentence(problem))
    return (
        f"### FairGate: no verdict (exit code {exit_code})\n\n{block}\n\n"
        "The gate could not judge this change.\n"
    )


def job_summary(view: View, notes: Notes, *, limit: int) -> str:
    """Return the job summary in at most `limit` bytes of UTF-8."""
    return _within(view, notes, partial(render_report, view), limit, _IN_SUMMARY)


def _within(
    view: View, notes: Notes, render: Callable[..., str], limit: int, rooms: Sequence[_Room]
) -> str:
    """Return report and notes with as much as fits; what is less strict is left out last."""
    for room in rooms:
        above, extra = render_above(notes, room), render_notes(notes, room)
        report_limit = limit - length(above) - length(extra) - _BETWEEN
        for report in (partial(render, limit=report_limit), partial(_head, view)):
            text = _joined(above, report(), extra)
            if length(text) <= limit:
                return text
    return _head(view)


def _head(view: View) -> str:
    """Return the text instead of a report that does not fit."""
    line: Inline = [
        Span(view.outcome.value, Kind.MARK),
        f" FairGate: {view.word} in ",
        code(view.policy),
        f" (exit code {view.exit_code})",
    ]
    sentence = "The report does not fit here; it is in the report files of this run.\n"
    return f"### {render_blocks([Text(lines=[line])])}\n\n{sentence}"


def _joined(head: str, report: str, extra: str) -> str:
    above = f"{head.rstrip()}\n\n" if head else ""
    return f"{above}{report.rstrip()}\n\n{extra}\n" if extra else f"{above}{report}"
