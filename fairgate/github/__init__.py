"""`fairgate github`: the gate as a step of a GitHub workflow, and what a step leaves that fails."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairgate.domain.catalogue import FEATURES, at
from fairgate.domain.errors import (
    BaselineError,
    ExitCode,
    FairGateError,
    PolicyError,
    Problem,
    UsageError,
)
from fairgate.domain.wording import harmless, quoted
from fairgate.github.runner import (
    Annotation,
    Inputs,
    annotation_lines,
    append_summary,
    input_options,
    read_inputs,
    write_outputs,
    written_folder,
)
from fairgate.terminal.output import VERDICTS, progress_for

if TYPE_CHECKING:
    from fairgate.github.api import GitHubApi
    from fairgate.github.base_commit import BaseCommit
    from fairgate.github.change import Evaluation, GatedChange, Introduction
    from fairgate.github.event import Event, Roots
    from fairgate.github.introduction import IntroductionReport
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


@click.group(short_help="The gate inside GitHub Actions.")
def github() -> None:
    """Do what the GitHub Action does; outside of GitHub Actions use `fairgate run`."""


@click.command()
@click.option("--artifact", default="fairgate-report", envvar="FAIRGATE_ARTIFACT", help="Its name.")
@click.option(
    "--comment-key", default="", envvar="FAIRGATE_COMMENT_KEY",
    help="Distinguishes gates (default: the artifact's name).",
)  # fmt: skip
@click.option(
    "--pr-number", default="", envvar="FAIRGATE_PR_NUMBER",
    help="Pull request, where the event does not name one.",
)  # fmt: skip
@click.option("--github-token", default="", envvar="FAIRGATE_GITHUB_TOKEN", help="May write.")
def comment(artifact: str, comment_key: str, pr_number: str, github_token: str) -> int:
    """Comment on the pull request what the gate's job has left in an artifact.

    A job of its own does this, for the gate's runs files of the pull request and so has no token
    that may write. Under `workflow_run` it comments what a fork's run has reported of itself. The
    artifact is untrusted data: nothing of it is executed or copied, and which pull request, commit
    and run it is about only GitHub says.
    """
    from fairgate.github.comments import comment_foreign_report, comment_own_report
    from fairgate.github.event import github_api, read_event, read_roots, resolved

    with accounted() as account:
        environment = account.environment
        if pr_number and not re.fullmatch(r"[1-9][0-9]{0,9}", pr_number, re.ASCII):
            raise UsageError(f"pr-number is {quoted(pr_number)}, expected a number")
        roots = read_roots(environment)
        api = github_api(roots, github_token)
        if api is None:
            raise UsageError("there is no `github-token` to comment with; give the step one")
        event = read_event(environment, int(pr_number) if pr_number else None)
        report = comment_foreign_report
        if event.name != "workflow_run" or not event.is_fork:
            event, report = resolved(event, api), comment_own_report
        url, reason = report(event, api, roots, artifact, comment_key)
    click.echo(f"fairgate: {url or 'no comment'}: {reason or 'up to date'}")
    write_outputs(environment.get("GITHUB_OUTPUT", ""), {"comment-url": url})
    return ExitCode.PASS


github.add_command(comment)


def step(name: str) -> Any:
    """Return the function for an input of the action. Raises UsageError.

    `shard` is called with inputs, the part's name and the environment, and returns the exit code.
    `blame` is called for a policy with its path, how to run, the most questions and the progress;
    `remarks(judged, base, commit)` returns what the comment says, `write(folder)` keeps it.
    """
    location = next((feature.steps[name] for feature in FEATURES if name in feature.steps), None)
    if location is None:
        raise UsageError(
            f"the input {name} asks for a feature that is not installed here; leave it out of the "
            "step's `with:`"
        )
    return at(location)


@github.command()
@input_options
@click.option(
    "--shard", default="", envvar="FAIRGATE_SHARD", help="Ask the I-th of N parts: `I/N`."
)
def run(shard: str, **options: str) -> int:
    """Gate the pull request, push or merge group of this workflow run.

    Policy and baseline are read from the base commit. Writes the report files, step outputs, job
    summary and annotations, and into the run's folder the comment for the job that posts it. With
    --shard it asks a part of the questions and decides nothing.
    """
    with accounted() as account:
        account.is_gate = not shard  # a part that fails is missing for the step that decides
        inputs = read_inputs(options, account.environment)
        account.place = place_of(inputs)
        os.chdir(inputs.root)
        if shard and inputs.answers:
            raise UsageError(
                "answers-artifact and shard are given together; a part takes no stored answers: "
                "leave one of them out of the step's `with:`"
            )
        if shard:
            return int(step("shard")(inputs, shard, account.environment))
        from fairgate.github.change import evaluated

        evaluate = partial(evaluated, progress=progress_for(quiet=False))
        return gate_change(inputs, subject_of(inputs, account.environment), evaluate)


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


def place_of(inputs: Inputs) -> str:
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
    evaluate: Callable[[Side], Evaluation],
    finish: Callable[[], None] = lambda: None,
) -> int:
    """Judge every policy by `evaluate` and report; `finish` may still refuse before that."""
    from fairgate.github.change import Introduction
    from fairgate.github.event import other_base
    from fairgate.github.report import SeveralReports
    from fairgate.reports.formats import formats

    explains = step("blame") if inputs.blame else None
    prefix = place_of(inputs)
    answers = _answers(inputs, subject)
    several, branches = len(inputs.policies) > 1, other_base(subject.event)
    reports: list[Report] = []
    for policy in inputs.policies:
        progress = progress_for(quiet=False)
        explained = explains and explains(policy, inputs.runtime, inputs.blame, progress)
        judged, remarks, base = gate_policy(inputs, policy, subject, evaluate)
        if isinstance(judged, Introduction):
            reports.append(introduced(judged, prefix, remarks))
            continue
        if explained is not None and base is not None:
            remarks += explained.remarks(judged, base, base.commit)
        name = judged.decides.run.given.policy.name
        folder = inputs.report_dir or inputs.scratch / "reports"
        if several or not inputs.report_dir:
            folder /= name
        written_folder(folder, inputs)
        judged = replace(judged, remarks=[*judged.remarks, *remarks])
        about: dict[str, Any] = {"prefix": prefix, "report_only": inputs.report_only}
        about["branches"] = None if several else branches
        reports.append(reported(judged, folder, list(formats()), about))
        if explained is not None:
            explained.write(folder)
    report = SeveralReports(reports, branches) if several else reports[0]
    finish()
    write_outputs(subject.environment.get("GITHUB_OUTPUT", ""), answers())
    _publish(report, inputs, subject)
    code = report.exit_code
    return ExitCode.PASS if inputs.report_only and code in VERDICTS else code


def reported(
    judged: GatedChange[Evaluation],
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
    view = local_view(decides.run, decides.side.loaded, folder, written, **options)
    click.echo((draw or render_console)(with_notes(view, report.notes)))
    return report


def introduced(judged: Introduction, prefix: str, remarks: Sequence[str]) -> IntroductionReport:
    """Print what a change introduces that is not judged yet."""
    from fairgate.github.introduction import IntroductionReport
    from fairgate.reports.console import render_blocks

    report = IntroductionReport(introduction=judged, place=prefix, remarks=remarks)
    click.echo(f"FairGate: {report.shown.word}, in {harmless(report.shown.name)}\n")
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
) -> tuple[GatedChange[E] | Introduction, list[str], BaseCommit | None]:
    """Judge the change of one policy; return remarks for the comment, and the base commit, too."""
    from fairgate.github.change import ChangeGate, objection_to_allow
    from fairgate.github.event import base_commit, objection_to_introduce

    event = subject.event
    gate = ChangeGate(policy, inputs.runtime, evaluate, inputs.scratch)
    base = base_commit(event, inputs.root, inputs.workspace, subject.api)
    if base is None:
        return gate.checkout(), [], None
    allow, remarks = inputs.allows_change, []
    if event.number is None and event.name != "merge_group":
        remarks = ["No open pull request has this commit; it is judged against the default branch."]
    if allow and (objection := objection_to_allow(event, base, subject.environment)):
        allow = False
        remarks.append(f"`baseline-change: allow` does not count: {objection}")
    no_introduction = objection_to_introduce(event)
    judged = gate.change(base, base.commit, allow=allow, no_introduction=no_introduction)
    return judged, remarks, base


def _publish(report: Report | SeveralReports, inputs: Inputs, posting: Posting) -> None:
    """Report to the runner, and leave in the run's folder what the comment's job is to say."""
    from fairgate.github.comments import run_url, write_comment

    event, mode, outputs = posting.event, inputs.comment, dict(report.outputs)
    if event.number is not None:
        # What was not judged has no folder of a run.
        folder = Path(outputs["run-folder"] or inputs.scratch / "no-verdict")
        failed = report.exit_code != 0
        create = mode == "always" or (failed if mode == "on-failure" else report.needs_attention)
        text = report.comment(run_url(event, posting.roots))
        write_comment(folder, text, create=create)
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


@dataclass(slots=True)
class Account:
    """What is known of a run when it ends without a verdict."""

    environment: Mapping[str, str]

    place: str = ""
    """Where paths start at, in the repository: `services/shop/`."""
    is_gate: bool = False
    """Whether a gate was to run, and so a verdict was due."""


@contextlib.contextmanager
def accounted() -> Iterator[Account]:
    """Write outputs, annotations and a summary also for a run that ends without a verdict.

    The token leaves the environment: no process that we start needs it.
    """
    account = Account(dict(os.environ))
    os.environ.pop("FAIRGATE_GITHUB_TOKEN", None)
    try:
        yield account
    except BaseException as error:
        code = ExitCode.EXECUTION
        if isinstance(error, FairGateError):
            code = error.exit_code
        elif isinstance(error, KeyboardInterrupt | click.Abort):
            code = ExitCode.INTERRUPTED
        elif isinstance(error, click.ClickException):
            code = ExitCode.USAGE
        with contextlib.suppress(FairGateError):
            _report_error(error, code, account)
        raise


def _report_error(error: BaseException, code: ExitCode, account: Account) -> None:
    from fairgate.reports.escaping import markdown_block

    environment, prefix = account.environment, account.place

    is_expected = isinstance(error, FairGateError | click.ClickException)
    text = str(error) if is_expected else f"{type(error).__name__}: {str(error)[:500]}"
    problems = _problems(error)
    # The runner itself shortens an absolute path; a relative one is taken from the repository.
    annotations = [
        Annotation(
            level="error",
            title="FairGate: no verdict",
            message=problem.message,
            file=problem.path
            if problem.path.startswith("/") or not problem.path
            else f"{prefix}{problem.path}",
            line=problem.line,
        )
        for problem in problems
    ]
    for line in annotation_lines(annotations):
        click.echo(line)
    outputs = {"outcome": "error", "exit-code": str(int(code)), "violations": "", "regressions": ""}
    write_outputs(environment.get("GITHUB_OUTPUT", ""), outputs)
    block = markdown_block(text[:20_000])
    summary = f"### FairGate: no verdict (exit code {int(code)})\n\n{block}\n"
    append_summary(environment.get("GITHUB_STEP_SUMMARY", ""), summary)
    scratch = environment.get("RUNNER_TEMP")
    if account.is_gate and code is not ExitCode.INTERRUPTED and scratch:
        folder = leave_no_verdict(error, code, Path(scratch) / "fairgate")
        write_outputs(environment.get("GITHUB_OUTPUT", ""), {"run-folder": str(folder)})


def _problems(error: BaseException) -> Sequence[Problem]:
    """Return the problems, each with its place if it has one."""
    if isinstance(error, PolicyError) and error.problems:
        return error.problems
    is_ours = isinstance(error, FairGateError | click.ClickException)
    text = str(error) if is_ours else f"{type(error).__name__}: {str(error)[:500]}"
    return [Problem("", 0, 0, text)]


def no_verdict(error: BaseException, code: ExitCode) -> str:
    """Return the comment of a run that ended without a verdict.

    No earlier verdict may stand on the pull request as if it were this run's.
    """
    from fairgate.github.report import no_verdict_comment

    first = _problems(error)[0]
    return no_verdict_comment(str(first) if first.path else first.message, int(code))


def leave_no_verdict(error: BaseException, code: ExitCode, scratch: Path) -> Path:
    """Leave that comment for the job that posts it; return its folder."""
    from fairgate.github.comments import write_comment

    folder = scratch / "no-verdict"
    write_comment(folder, no_verdict(error, code), create=True)
    return folder
