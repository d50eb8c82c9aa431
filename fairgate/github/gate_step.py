"""The gate as a step of a workflow: each policy's change is judged, and reported to the runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairgate.domain.errors import BaselineError, ExitCode, UsageError
from fairgate.domain.registry import FEATURES, at
from fairgate.domain.wording import harmless
from fairgate.github.runner import (
    Annotation,
    Inputs,
    annotation_lines,
    append_summary,
    write_outputs,
    written_folder,
)
from fairgate.terminal.output import VERDICTS

if TYPE_CHECKING:
    from fairgate.gate.composition import FinishedRun
    from fairgate.github.api import GitHubApi
    from fairgate.github.change import GatedChange, Introduction
    from fairgate.github.event import Event, Roots
    from fairgate.github.introduction import IntroductionReport
    from fairgate.github.no_verdict import Account
    from fairgate.github.proof import Standing
    from fairgate.github.report import ChangeReport, Report, SeveralReports
    from fairgate.github.sides import Side
    from fairgate.reports.blocks import View
    from fairgate.reports.formats import Format

E = TypeVar("E")
_RUNNER = "GITHUB_ACTIONS"
"""Set by a runner, which reads annotations in what is printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """What a step's event is about, and where it may be reported."""

    event: Event
    roots: Roots
    api: GitHubApi | None
    environment: Mapping[str, str]


def step(name: str) -> Any:
    """Return the function for an input of the action. Raises UsageError.

    `shard` is called with inputs, the part's name and the environment, and returns the exit code.
    """
    location = next((feature.steps[name] for feature in FEATURES if name in feature.steps), None)
    if location is None:
        raise UsageError(
            f"the input {name} asks for a feature that is not installed here; leave it out of the "
            "step's `with:`"
        )
    return at(location)


def subject_of(inputs: Inputs, environment: Mapping[str, str]) -> Posting:
    """Return the subject of the event, once it may meet this token."""
    from fairgate.github.event import refuse_untrusted

    posting = _posting(environment, inputs.token, inputs.number)
    refuse_untrusted(posting.event)
    return posting


def _posting(environment: Mapping[str, str], token: str, number: int | None) -> Posting:
    from fairgate.github.event import github_api, read_event, read_roots, resolved

    roots = read_roots(environment)
    api = github_api(roots, token)
    event = resolved(read_event(environment, number), api)
    return Posting(event=event, roots=roots, api=api, environment=environment)


def empty_report_dir(inputs: Inputs, account: Account) -> None:
    """Let nothing stand where reports are expected that this step does not write.

    What ends without a verdict is reported there, too.
    """
    from fairgate.gate.run_folder import emptied
    from fairgate.reports.formats import known_files

    if inputs.report_dir is None:
        return
    account.report_dir = inputs.report_dir
    is_there = len(inputs.policies) > 1 and inputs.report_dir.is_dir()
    inside = [path for path in inputs.report_dir.iterdir() if path.is_dir()] if is_there else []
    emptied(inputs.report_dir, known_files(), "report-dir", inside)


def prefix_of(inputs: Inputs) -> str:
    """Return where the gate's root lies in its repository: nothing, or `services/shop/`."""
    from fairgate.github.base_commit import Clone

    try:
        return Clone(inputs.root, inputs.workspace).prefix
    except BaselineError:  # no checkout; a verdict that needs one says so itself
        inner = inputs.root.relative_to(inputs.workspace).as_posix()
        return "" if inner == "." else f"{inner}/"


def gate_change(
    inputs: Inputs,
    subject: Posting,
    evaluate: Callable[[Side], FinishedRun],
    finish: Callable[[], None] = lambda: None,
) -> int:
    """Judge every policy by `evaluate` and report; `finish` may still refuse before that."""
    from fairgate.github.change import Introduction
    from fairgate.github.event import other_base
    from fairgate.github.no_verdict import leave_unjudged
    from fairgate.github.report import SeveralReports
    from fairgate.reports.formats import formats

    prefix = prefix_of(inputs)
    answers = _answers(inputs, subject)
    several, branches = len(inputs.policies) > 1, other_base(subject.event)
    reports: list[Report] = []
    history = _standing(inputs, subject)
    inputs = replace(inputs, report_only=inputs.report_only or not history.blocks)
    for policy in inputs.policies:
        judged, remarks = gate_policy(inputs, policy, subject, evaluate)
        remarks += [history.remark] if history.remark and not reports else []
        if isinstance(judged, Introduction):
            report = introduced(judged, prefix, remarks)
            reports.append(report)
            if inputs.report_dir is not None:
                name = judged.side.loaded.policy.name
                folder = inputs.report_dir / name if several else inputs.report_dir
                leave_unjudged(folder, report.unjudged, report.comment(""), list(formats()))
            continue
        name = judged.decides.run.gate_input.policy.name
        folder = inputs.report_dir or inputs.scratch / "reports"
        if several or not inputs.report_dir:
            folder /= name
        written_folder(folder, inputs)
        judged = replace(judged, remarks=[*judged.remarks, *remarks])
        about: dict[str, Any] = {"prefix": prefix, "report_only": inputs.report_only}
        about["branches"] = None if several else branches
        reports.append(reported(judged, folder, list(formats()), about))
    whole = SeveralReports(reports, branches) if several else reports[0]
    finish()
    write_outputs(subject.environment.get("GITHUB_OUTPUT", ""), answers())
    _publish(whole, inputs, subject, is_due=history.is_due)
    code = whole.exit_code
    return ExitCode.PASS if inputs.report_only and code in VERDICTS else code


def reported(
    judged: GatedChange[FinishedRun],
    folder: Path,
    written: Sequence[Format],
    about: Mapping[str, Any],
    draw: Callable[[View], str] | None = None,
) -> ChangeReport:
    """Write a judged change's run folder, and print it as `draw` returns it.

    `about` is what else `report_change` is told.
    """
    from fairgate.github.report import report_change, with_notes
    from fairgate.reports.console import render_console
    from fairgate.reports.present import local_view

    report = report_change(judged, folder, written, **about)
    decides = judged.decides
    for notice in decides.notices:
        click.echo(f"fairgate: note: {harmless(notice)}", err=True)
    options = {"report_only": about.get("report_only", False)}
    view = local_view(decides.run, decides.loaded, folder, written, **options)
    click.echo((draw or render_console)(with_notes(view, report.notes)))
    return report


def introduced(judged: Introduction, prefix: str, remarks: Sequence[str]) -> IntroductionReport:
    """Print what a change introduces that is not judged yet."""
    from fairgate.github.introduction import IntroductionReport
    from fairgate.reports.console import render_blocks

    report = IntroductionReport(introduction=judged, prefix=prefix, remarks=remarks)
    click.echo(f"FairGate: {report.row.word}, in {harmless(report.row.name)}\n")
    click.echo(render_blocks(report.blocks))
    return report


def _answers(inputs: Inputs, subject: Posting) -> Callable[[], dict[str, str]]:
    """Fetch the base branch's stored answers; return what says, at the end, what came of it."""
    if not inputs.answers:
        return dict
    from fairgate.github.stored_answers import StoredAnswers

    stored = StoredAnswers(
        subject.event,
        artifact=inputs.answers,
        cache=inputs.runtime.cache,
        environment=subject.environment,
    )
    commit, notice = stored.fetch(subject.api, inputs.root, inputs.workspace)
    if notice:
        click.echo(f"fairgate: note: {harmless(notice)}", err=True)
    return lambda: {
        "answers-hit": str(bool(commit)).lower(),
        "answers-commit": commit,
        "answers-file": stored.keep(inputs.scratch / "answers"),
    }


def gate_policy(
    inputs: Inputs, policy: str, subject: Posting, evaluate: Callable[[Side], E]
) -> tuple[GatedChange[E] | Introduction, list[str]]:
    """Judge the change of one policy; return remarks for the comment, too."""
    from fairgate.github.allowed_change import objection_to_allow
    from fairgate.github.change import ChangeGate
    from fairgate.github.event import base_commit, objection_to_introduce

    event = subject.event
    gate = ChangeGate(policy, inputs.runtime, evaluate, inputs.scratch)
    base = base_commit(event, inputs.root, inputs.workspace, subject.api)
    if base is None:
        return gate.checkout(), []
    allow, remarks = inputs.allows_change, []
    if event.number is None and event.name != "merge_group":
        remarks = ["No open pull request has this commit; it is judged against the default branch."]
    if allow and (objection := objection_to_allow(event, base, subject.environment)):
        allow = False
        remarks.append(f"`baseline-change: allow` does not count: {objection}")
    no_introduction = objection_to_introduce(event)
    judged = gate.change(base, base.commit, allow=allow, no_introduction=no_introduction)
    return judged, remarks


def _standing(inputs: Inputs, subject: Posting) -> Standing:
    """Return whether the gate's red stops the build, which only `until-proven` leaves open."""
    from fairgate.github.event import base_commit
    from fairgate.github.proof import ALWAYS, standing

    if not inputs.until_proven:
        return ALWAYS
    base = base_commit(subject.event, inputs.root, inputs.workspace, subject.api)
    event, api = subject.event, subject.api
    return standing(api, event, base, inputs.root, inputs.policies, subject.environment)


def _publish(
    report: Report | SeveralReports, inputs: Inputs, posting: Posting, *, is_due: bool
) -> None:
    """Report to the runner, and leave in the run's folder what the comment's job is to say."""
    from fairgate.github.comments import run_url, write_comment
    from fairgate.github.no_verdict import NO_VERDICT

    event, mode, outputs = posting.event, inputs.comment, dict(report.outputs)
    if event.number is not None:
        # What was not judged has no folder of a run.
        folder = Path(outputs["run-folder"] or inputs.scratch / NO_VERDICT)
        failed = report.exit_code != 0
        attention = failed if mode == "on-failure" else report.needs_attention
        create = mode == "always" or attention or is_due
        text = report.comment(run_url(event, posting.roots))
        outputs["comment-digest"] = write_comment(folder, text, create=create)
        outputs["run-folder"] = str(folder)
    annotations = list(report.annotations)
    if inputs.report_only and report.exit_code != 0:
        text = f"the gate's outcome is {report.outcome.value}; report-only keeps the build green"
        annotations.append(Annotation(level="warning", title="FairGate: report-only", message=text))
    for line in annotation_lines(annotations) if posting.environment.get(_RUNNER) else ():
        click.echo(line)
    environment = posting.environment
    write_outputs(environment.get("GITHUB_OUTPUT", ""), outputs)
    append_summary(environment.get("GITHUB_STEP_SUMMARY", ""), report.summary())
