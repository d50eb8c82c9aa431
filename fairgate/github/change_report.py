"""From judged changes, of one policy or several, to all that a pull request shows of them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.outcomes import GateResult, Outcome, RuleResult
from fairgate.domain.wording import quoted
from fairgate.gate.run_folder import RunFolder, write_run
from fairgate.github.change import Evaluation, JudgedChange
from fairgate.github.report import (
    Edits,
    Notes,
    job_summary,
    pull_request_comment,
    several_head,
    with_notes,
)
from fairgate.github.runner import SUMMARY_BYTES, Annotation
from fairgate.policy.schema import ANCHOR_SUFFIX
from fairgate.reports.affected import leading
from fairgate.reports.formats import formats
from fairgate.reports.markdown import COMMENT_LIMIT, length
from fairgate.reports.present import gate_lines, of_features, present, report_texts
from fairgate.reports.spans import Inline, Kind, Span
from fairgate.reports.view import ReportOptions, View

_RUN_FOLDER = "fairgate-run"
"""The folder of a reader's own run in suggested commands: the runner's folders exist only there."""
_REGRESSIONS = frozenset({"regression", "budget"})
_LEVELS = {
    Outcome.FAIL: ("error", "rule failed"),
    Outcome.INCONCLUSIVE: ("warning", "rule is inconclusive"),
    Outcome.NOT_EVALUATED: ("notice", "rule was not evaluated"),
}
_WORSE = (ExitCode.GATE_FAILED, ExitCode.BASELINE, ExitCode.NO_VERDICT, ExitCode.PASS)
"""The worst first (SPEC 2); what is not in here ends a run without any verdict."""
_SUMS = ("violations", "regressions")
_NAMED = ("outcome", "exit-code", "violations", "regressions", "value", "base", "run-folder")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReport:
    """What a finished gate leaves for the runner and the pull request."""

    view: View
    outcome: Outcome
    exit_code: int
    outputs: Mapping[str, str]
    annotations: Sequence[Annotation]
    notes: Notes
    edits_rules: bool
    """The change edits what it is judged by: policy, baseline, or what decides the questions."""

    @property
    def needs_attention(self) -> bool:
        """Return whether a reviewer should be informed even if there is no comment yet."""
        is_open = any(row.needs_attention and not row.is_advisory for row in self.view.rules)
        warns = bool(self.view.alerts)
        return self.exit_code != 0 or is_open or warns or self.edits_rules

    @property
    def key(self) -> str:
        """Return what distinguishes its comment from those of other gates."""
        return self.view.policy

    def comment(self, report_url: str, most: int | None = None) -> str:
        """Return the comment without its marker, in at most so many characters (GitHub's limit)."""
        room = COMMENT_LIMIT if most is None else most
        return pull_request_comment(self.view, self.notes, report_url=report_url, most=room)

    def summary(self, remarks: Sequence[str] = (), most: int | None = None) -> str:
        """Return the job summary, in so many bytes (the runner's limit); `remarks` came since."""
        room = SUMMARY_BYTES if most is None else most
        notes = Notes(remarks=[*self.notes.remarks, *remarks], edits=self.notes.edits)
        return job_summary(self.view, notes, limit=room)


def report_change(
    judged: JudgedChange[Evaluation],
    folder: Path,
    remarks: Sequence[str],
    *,
    place: str = "",
    report_only: bool = False,
) -> ChangeReport:
    """Write the run's files into `folder` and return the texts for other places.

    `place` is where the gate's root lies in the repository (`services/shop/`): GitHub anchors
    annotations and SARIF results at paths from the repository's own root.
    """
    decides = judged.decides
    path = f"{place}{decides.given.provenance.policy_path}"
    view = _view(decides, place, report_only=report_only)
    result = decides.run.result
    loaded = decides.side.loaded
    notes = Notes(remarks=[*judged.remarks, *remarks], edits=_edits(judged, place))
    written = tuple(formats())
    texts = dict(report_texts(view, decides.run, decides.given, loaded, written))
    report = texts["report.md"]
    texts["report.md"] = lambda: with_notes("".join(report()), notes)
    write_run(RunFolder(path=folder), loaded, decides.run, texts, [one.file for one in written])
    lines = gate_lines(loaded)
    failed = [rule for rule in result.rules if rule.outcome is Outcome.FAIL and not rule.advisory]
    regressions = sum(not _REGRESSIONS.isdisjoint(rule.failed) for rule in failed)
    outputs = {
        "outcome": result.outcome.value,
        "exit-code": str(int(result.exit_code)),
        "violations": str(sum(not _REGRESSIONS.issuperset(rule.failed) for rule in failed)),
        "regressions": str(regressions),
        **_headline(result),
        "run-folder": str(folder),
        **{one.output: str(folder / one.file) for one in written if one.output},
    }
    return ChangeReport(
        view=view,
        outcome=result.outcome,
        exit_code=int(result.exit_code),
        outputs=outputs,
        annotations=[
            *_stopped(result, path),
            *_alerts(view, path),
            *_annotations(result.rules, path, lines),
        ],
        notes=notes,
        edits_rules=_edits_rules(judged),
    )


def _headline(result: GateResult) -> dict[str, str]:
    """Return the value of the rule that leads the report, and the baseline's on the same cases.

    As fractions (SPEC 1); empty where there is none.
    """
    rule = leading(result)
    change = rule.change if rule else None
    value = change.now if change else rule.value if rule else None
    return {"value": _number(value), "base": _number(change.base if change else None)}


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _edits_rules(judged: JudgedChange[Evaluation]) -> bool:
    overlap = judged.decides.run.result.overlap
    removes_cases = overlap is not None and bool(overlap.removed)
    decides = any(not one.role.is_under_test for one in judged.data)
    return removes_cases or bool(judged.edited) or decides or judged.other is not None


def _view(evaluation: Evaluation, place: str = "", *, report_only: bool) -> View:
    policy = evaluation.given.policy
    path = shlex.quote(evaluation.given.provenance.policy_path)
    command = f"fairgate run {path} --out {_RUN_FOLDER}"
    options = ReportOptions(
        redact=policy.redact,
        confidence=policy.confidence,
        report_only=report_only,
        of_features=of_features(policy),
        run_path=_RUN_FOLDER,
        run_command=f"cd {shlex.quote(place)} && {command}" if place else command,
        place=place,
    )
    return present(evaluation.run, options, evaluation.given.baseline, evaluation.given.anchor)


def _stopped(result: GateResult, path: str) -> list[Annotation]:
    """Return why the build stops where no rule's own annotation gives the reason."""
    fails = (rule.outcome is Outcome.FAIL and not rule.advisory for rule in result.rules)
    if result.exit_code == 0 or any(fails):
        return []
    differences = result.incompatible
    open_rules = (rule for rule in result.rules if rule.outcome is not Outcome.PASS)
    undecided = (reason for rule in open_rules if not rule.advisory for reason in rule.reasons)
    message = next(
        iter((*result.evidence.problems, *differences, *undecided)),
        f"the gate's outcome is {result.outcome.value}",
    )
    title = "FairGate: no verdict"
    return [Annotation(level="error", title=title, message=message, file=path, line=1)]


def _alerts(view: View, path: str) -> list[Annotation]:
    """Return a warning for each difference between identities that no rule asks for."""
    title = "FairGate: an identity is treated differently"
    return [
        Annotation(level="warning", title=title, message=reason, file=path, line=1)
        for row in view.alerts
        for reason in row.reasons
    ]


def _annotations(
    rules: Sequence[RuleResult], path: str, lines: Mapping[int, int]
) -> list[Annotation]:
    """Return an annotation for each rule that did not pass, failures first."""
    found = []
    for outcome, (level, title) in _LEVELS.items():
        for rule in rules:
            waits = rule.is_first_run or rule.is_reported
            if rule.outcome is not outcome or (waits and outcome is not Outcome.FAIL):
                continue
            where = ", ".join(f"{name} {value}" for name, value in rule.where.items())
            shown_level = "notice" if rule.advisory else level
            found.append(
                Annotation(
                    level=shown_level,  # type: ignore[arg-type]
                    title=f"FairGate: {title}",
                    message=f"{rule.metric}{f' ({where})' if where else ''} in suite "
                    f"{rule.suite}: {'; '.join(rule.reasons)}",
                    file=path,
                    line=lines.get(rule.position, 1),
                )
            )
    return found


def _edits(judged: JudgedChange[Evaluation], place: str) -> Edits | None:
    if judged.other is None and not judged.edited and not judged.data:
        return None
    shown = _shown(judged.decides)
    other = _shown(judged.other) if judged.other is not None else _no_other(judged)
    by_base = judged.decided_by == "base"
    return Edits(
        files=_by_role(judged, place),
        edits_policy=judged.decides.given.provenance.policy_path in judged.edited,
        decided_by=judged.decided_by,
        base=shown if by_base else other,
        proposed=other if by_base else shown,
        loosened=judged.loosened,
        differences=judged.differences,
    )


def _by_role(judged: JudgedChange[Evaluation], place: str) -> dict[str, list[str]]:
    """Return what the change edits, by what it is: what decides first, then what is under test."""
    policy = judged.decides.given.provenance.policy_path
    found: dict[str, list[str]] = {}
    for file in judged.edited:
        kept = "anchor" if file.endswith(f"{ANCHOR_SUFFIX}.json") else "baseline"
        role = "policy" if file == policy else kept
        found.setdefault(role, []).append(f"{place}{file}")
    for one in sorted(judged.data, key=lambda one: one.role.is_under_test):
        role = f"{one.role} (under test)" if one.role.is_under_test else str(one.role)
        found.setdefault(role, []).append(f"{place}{one.file}")
    return found


def _no_other(judged: JudgedChange[Evaluation]) -> str:
    """Return the text in place of a second result."""
    if judged.is_refused:
        return "not run"
    return "the policy is removed" if judged.edited else "the same policy and baseline"


def _shown(evaluation: Evaluation) -> Inline:
    view = _view(evaluation, report_only=False)
    first = ", first run" if evaluation.given.baseline is None else ""
    return [Span(view.mark.value, Kind.MARK), f" {view.word}{first}"]


def several_key(place: str) -> str:
    """Return what distinguishes the comment of several policies: where they are, not which."""
    return f"policies/{place}".rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralReports:
    """The reports of at least two policies, in the order in which the workflow names them.

    Raises UsageError where two have one name: reports and comments would take each other's place.
    """

    reports: Sequence[ChangeReport]
    place: str

    def __post_init__(self) -> None:
        """Check the names."""
        names = [report.view.policy for report in self.reports]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"two policies are called {quoted(name)}; rename one of them")

    @property
    def worst(self) -> ChangeReport:
        """Return the report whose exit code is the step's."""
        return min(self.reports, key=lambda report: _WORSE.index(ExitCode(report.exit_code)))

    @property
    def key(self) -> str:
        """Return what distinguishes the comment from those of other gates."""
        return several_key(self.place)

    @property
    def outcome(self) -> Outcome:
        """Return the worst outcome."""
        return self.worst.outcome

    @property
    def exit_code(self) -> int:
        """Return the worst exit code."""
        return self.worst.exit_code

    @property
    def needs_attention(self) -> bool:
        """Return whether a reviewer should be informed of any of them."""
        return any(report.needs_attention for report in self.reports)

    @property
    def annotations(self) -> Sequence[Annotation]:
        """Return those of all policies."""
        return [one for report in self.reports for one in report.annotations]

    @property
    def outputs(self) -> Mapping[str, str]:
        """Return the sums, else what the worst policy gives, and `results` with each one's own."""
        results = {
            report.view.policy: {name: report.outputs[name] for name in _NAMED}
            for report in self.reports
        }
        sums = {name: sum(int(report.outputs[name]) for report in self.reports) for name in _SUMS}
        return {
            **self.worst.outputs,
            **{name: str(value) for name, value in sums.items()},
            "results": json.dumps(results),
        }

    def comment(self, report_url: str) -> str:
        """Return a line for each policy, and the reports of those that need attention."""
        head = several_head([report.view for report in self.reports], self.outcome)
        open_ones = [report for report in self.reports if report.needs_attention]
        room = (COMMENT_LIMIT - length(head)) // max(1, len(open_ones)) - 2
        parts = [report.comment(report_url, room).strip() for report in open_ones]
        while parts and length("\n\n".join([head, *parts])) >= COMMENT_LIMIT:
            parts.pop()
        return "\n\n".join([head.strip(), *parts]) + "\n"

    def summary(self, remarks: Sequence[str] = ()) -> str:
        """Return the job summaries, one after the other; `remarks` are what happened since."""
        head = several_head([report.view for report in self.reports], self.outcome)
        room = (SUMMARY_BYTES - len(head.encode())) // len(self.reports) - 2
        last = len(self.reports) - 1
        parts = [
            report.summary(remarks if place == last else (), room).strip()
            for place, report in enumerate(self.reports)
        ]
        return "\n\n".join([head.strip(), *parts]) + "\n"
