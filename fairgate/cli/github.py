"""`fairgate github run`: the gate as a step of a GitHub workflow."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from fairgate.cli.github_inputs import (
    Inputs,
    input_options,
    policies_in,
    read_inputs,
)
from fairgate.cli.progress import progress_for
from fairgate.domain.errors import ExitCode, FairGateError, PolicyError, Problem, UsageError
from fairgate.domain.wording import harmless

if TYPE_CHECKING:
    from fairgate.adapters.github.api import GitHubApi
    from fairgate.adapters.github.event import Event, Roots
    from fairgate.adapters.github.runner import Annotation
    from fairgate.composition.blamed_changes import BlamedChange
    from fairgate.composition.change import JudgedChange
    from fairgate.composition.ci_files import ChangeReport
    from fairgate.composition.pull_requests import CommentMode
    from fairgate.composition.several_policies import SeveralReports


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """Where a comment would go."""

    event: Event
    roots: Roots
    api: GitHubApi | None


_VERDICTS = {ExitCode.PASS, ExitCode.GATE_FAILED, ExitCode.BASELINE, ExitCode.NO_VERDICT}


@click.group(short_help="The gate inside GitHub Actions.")
def github() -> None:
    """Do what the GitHub Action does; outside of GitHub Actions use `fairgate run`."""


@github.command()
@input_options
def run(**options: str) -> int:
    """Gate the pull request, push or merge group of this workflow run.

    Policy and baseline are read from the base commit. Writes the report files, step outputs, job
    summary and annotations, and keeps one comment on the pull request up to date.
    """
    environment = dict(os.environ)
    os.environ.pop("FAIRGATE_GITHUB_TOKEN", None)  # no process that we start needs it
    with _accounted(environment) as account:
        account.options = options
        inputs = read_inputs(options, environment)
        account.place = _place(inputs, environment)
        os.chdir(inputs.root)
        return _gate(inputs, account.place, environment)


@github.command()
@click.option("--artifact", default="fairgate-report", envvar="FAIRGATE_ARTIFACT", help="Its name.")
@click.option(
    "--comment-key", default="", envvar="FAIRGATE_COMMENT_KEY", help="Distinguishes gates."
)
@click.option("--github-token", default="", envvar="FAIRGATE_GITHUB_TOKEN", help="May write.")
def comment(artifact: str, comment_key: str, github_token: str) -> int:
    """Comment on a fork's pull request what its own run has reported (event `workflow_run`).

    Reads run.json from the run's artifact as untrusted data: nothing of it is executed or
    copied, and the pull request is the one whose head commit ran.
    """
    from fairgate.adapters.github import runner
    from fairgate.adapters.github.event import read_event, read_roots
    from fairgate.composition.foreign_reports import comment_foreign_report
    from fairgate.composition.pull_requests import github_api

    environment = dict(os.environ)
    os.environ.pop("FAIRGATE_GITHUB_TOKEN", None)
    with _accounted(environment):
        roots = read_roots(environment)
        api = github_api(roots, github_token)
        if api is None:
            raise UsageError("there is no `github-token` to comment with; give the step one")
        event = read_event(environment)
        done = comment_foreign_report(event, api, roots, artifact, comment_key)
    url = done.posted.url if done.posted else ""
    click.echo(f"fairgate: {url or 'no comment'}: {done.reason or 'up to date'}")
    runner.write_outputs(environment.get("GITHUB_OUTPUT", ""), {"comment-url": url})
    return ExitCode.PASS


def _place(inputs: Inputs, environment: Mapping[str, str]) -> str:
    from fairgate.composition.pull_requests import place_in_repository

    return place_in_repository(inputs.root, Path(environment.get("GITHUB_WORKSPACE") or "."))


def _gate(inputs: Inputs, place: str, environment: Mapping[str, str]) -> int:
    from fairgate.adapters.github.event import read_event, read_roots
    from fairgate.composition.blamed_changes import BlamedChange
    from fairgate.composition.ci_files import report_change
    from fairgate.composition.pull_requests import github_api, refuse_untrusted, resolved
    from fairgate.composition.several_policies import SeveralReports

    roots = read_roots(environment)
    api = github_api(roots, inputs.token)
    event = resolved(read_event(environment, inputs.number), api)
    refuse_untrusted(event)
    several = len(inputs.policies) > 1
    reports = []
    for policy in inputs.policies:
        blamed = BlamedChange(policy, inputs.runtime, inputs.blame, progress_for(quiet=False))
        judged, remarks = _judged(inputs, policy, event, environment, api, blamed)
        name = judged.decides.given.policy.name
        folder = inputs.report_dir or inputs.scratch / "reports" / name
        if several and inputs.report_dir:
            folder = inputs.report_dir / name
        reports.append(
            report_change(judged, folder, remarks, place=place, report_only=inputs.report_only)
        )
        blamed.write(folder)
        _say(judged, folder, report_only=inputs.report_only)
    report = SeveralReports(reports=reports, place=place) if several else reports[0]
    _publish(report, inputs, Posting(event=event, roots=roots, api=api), environment)
    code = report.exit_code
    return ExitCode.PASS if inputs.report_only and code in _VERDICTS else code


def _say(judged: JudgedChange, folder: Path, *, report_only: bool) -> None:
    from fairgate.composition.presenting import view_of
    from fairgate.reports.console import render_console
    from fairgate.reports.formats import FORMATS

    decides = judged.decides
    for notice in decides.notices:
        click.echo(f"fairgate: note: {harmless(notice)}", err=True)
    view = view_of(decides.run, decides.given, folder, tuple(FORMATS), report_only=report_only)
    click.echo(render_console(view))


def _judged(
    inputs: Inputs,
    policy: str,
    event: Event,
    environment: Mapping[str, str],
    api: GitHubApi | None,
    blamed: BlamedChange,
) -> tuple[JudgedChange, list[str]]:
    from fairgate.composition.change import Judge
    from fairgate.composition.pull_requests import base_commit, objection_to_introduce
    from fairgate.composition.self_approval import objection_to_allow

    judge = Judge(policy, inputs.runtime, progress_for(quiet=False))
    base = base_commit(event, inputs.root, inputs.workspace, api)
    if base is None:
        return judge.checkout(), []
    remarks = []
    allow = inputs.allows_change
    if allow:
        objection = objection_to_allow(event, base, environment)
        allow = not objection
        remarks = [f"`baseline-change: allow` does not count: {objection}"] if objection else []
    judged = judge.change(
        base, base.commit, allow=allow, no_introduction=objection_to_introduce(event)
    )
    return judged, [*remarks, *blamed.remarks(judged, base, base.commit)]


def _publish(
    report: ChangeReport | SeveralReports,
    inputs: Inputs,
    posting: Posting,
    environment: Mapping[str, str],
) -> None:
    """Report to runner and pull request; failures in here are warnings."""
    from fairgate.adapters.github import runner
    from fairgate.composition.pull_requests import CommentPlan, comment

    event, roots = posting.event, posting.roots
    plan = CommentPlan(
        mode=inputs.comment,
        key=inputs.comment_key or report.key,
        report_url=f"{roots.server}/{event.repository}/actions/runs/{event.run_id}",
    )
    posted, warning = comment(report, event, plan, posting.api, roots)
    annotations = list(report.annotations)
    if inputs.report_only and report.exit_code != 0:
        text = f"the gate's outcome is {report.outcome.value}; report-only keeps the build green"
        annotations.append(
            runner.Annotation(level="warning", title="FairGate: report-only", message=text)
        )
    if warning:
        annotations.append(
            runner.Annotation(level="warning", title="FairGate: no comment", message=warning)
        )
    for line in runner.annotation_lines(annotations):
        click.echo(line)
    outputs = {**report.outputs, "comment-url": posted.url if posted else ""}
    runner.write_outputs(environment.get("GITHUB_OUTPUT", ""), outputs)
    summary = report.summary([warning] if warning else [])
    runner.append_summary(environment.get("GITHUB_STEP_SUMMARY", ""), summary)


@dataclass(slots=True)
class Account:
    """What is known of a run when it ends without a verdict."""

    place: str = ""
    """Where paths start at, in the repository: `services/shop/`."""
    options: Mapping[str, str] | None = None
    """What the gate's step was given; None where no gate was to run."""


@contextlib.contextmanager
def _accounted(environment: Mapping[str, str]) -> Iterator[Account]:
    """Give a run that ends without a verdict outputs, annotations and a summary all the same."""
    account = Account()
    try:
        yield account
    except BaseException as error:
        code = _code_of(error)
        with contextlib.suppress(FairGateError):
            _report_error(error, code, account, environment)
        raise


def _code_of(error: BaseException) -> ExitCode:
    if isinstance(error, FairGateError):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return ExitCode.INTERRUPTED
    return ExitCode.USAGE if isinstance(error, click.ClickException) else ExitCode.EXECUTION


def _report_error(
    error: BaseException, code: ExitCode, account: Account, environment: Mapping[str, str]
) -> None:
    from fairgate.adapters.github import runner
    from fairgate.reports.escaping import markdown_block

    known = isinstance(error, FairGateError | click.ClickException)
    text = str(error) if known else f"{type(error).__name__}: {str(error)[:500]}"
    problems = error.problems if isinstance(error, PolicyError) else [Problem("", 0, 0, text)]
    for line in runner.annotation_lines([_annotation(each, account.place) for each in problems]):
        click.echo(line)
    outputs = {"outcome": "error", "exit-code": str(int(code)), "violations": "", "regressions": ""}
    runner.write_outputs(environment.get("GITHUB_OUTPUT", ""), outputs)
    shown = markdown_block(text[:20_000])
    summary = f"### FairGate: no verdict (exit code {int(code)})\n\n{shown}\n"
    runner.append_summary(environment.get("GITHUB_STEP_SUMMARY", ""), summary)
    if account.options is not None and code is not ExitCode.INTERRUPTED:
        # Last, for it may take long: everything else is reported by then.
        first = problems[0]
        _comment_error(str(first) if first.path else first.message, code, account, environment)


def _comment_error(
    problem: str, code: ExitCode, account: Account, environment: Mapping[str, str]
) -> None:
    """Keep an earlier verdict from standing on the pull request as if it were this run's."""
    from fairgate.adapters.github import runner
    from fairgate.adapters.github.event import read_event, read_roots
    from fairgate.composition.pull_requests import CommentPlan, github_api, resolved
    from fairgate.composition.several_policies import several_key
    from fairgate.composition.stopped_runs import StoppedRun, comment_stopped_run, policy_name

    options, place = account.options or {}, account.place
    roots = read_roots(environment)
    api = github_api(roots, options["github_token"])
    if api is None:
        return
    number = options["pr_number"]
    is_number = re.fullmatch(r"[1-9][0-9]{0,9}", number, re.ASCII)
    event = resolved(read_event(environment, int(number) if is_number else None), api)
    workspace = Path(environment.get("GITHUB_WORKSPACE") or ".").resolve()
    plan = CommentPlan(
        mode=cast("CommentMode", options["comment"]),
        key=options["comment_key"]
        or (
            several_key(place)
            if len(policies_in(options["policy"])) > 1
            else policy_name(event, workspace, options["root"], options["policy"].strip(), api)
        ),
        report_url=f"{roots.server}/{event.repository}/actions/runs/{event.run_id}",
    )
    stopped = StoppedRun(exit_code=int(code), problem=problem, head=event.head_sha)
    url, warning = comment_stopped_run(stopped, event, plan, api, roots)
    if warning:
        shown = runner.Annotation(level="warning", title="FairGate: no comment", message=warning)
        click.echo(str(shown))
    runner.write_outputs(environment.get("GITHUB_OUTPUT", ""), {"comment-url": url})


def _annotation(problem: Problem, place: str) -> Annotation:
    from fairgate.adapters.github.runner import Annotation

    # The runner itself shortens an absolute path; a relative one is taken from the repository.
    is_relative = problem.path and not problem.path.startswith("/")
    return Annotation(
        level="error",
        title="FairGate: no verdict",
        message=problem.message,
        file=f"{place}{problem.path}" if is_relative else problem.path,
        line=problem.line,
    )
