"""`fairgate github run`: the gate as a step of a GitHub workflow."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.feature import FEATURES, at
from fairgate.domain.wording import harmless
from fairgate.github.errors import accounted
from fairgate.github.inputs import Inputs, input_options, read_inputs, written_folder
from fairgate.terminal.progress import progress_for

if TYPE_CHECKING:
    from fairgate.github.api import GitHubApi
    from fairgate.github.base_commit import BaseCommit
    from fairgate.github.change import Evaluation, JudgedChange
    from fairgate.github.change_report import ChangeReport, SeveralReports
    from fairgate.github.event import Event, Roots
    from fairgate.github.sides import Side

E = TypeVar("E")


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


@click.command()
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
    from fairgate.github import runner
    from fairgate.github.event import read_event, read_roots
    from fairgate.github.foreign_reports import comment_foreign_report
    from fairgate.github.pull_requests import github_api

    environment = dict(os.environ)
    os.environ.pop("FAIRGATE_GITHUB_TOKEN", None)
    with accounted(environment):
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


github.add_command(comment)


def step(name: str) -> Any:
    """Return what does the step that an input of the action asks for. Raises UsageError.

    `shard` is called with inputs, the part's name and the environment, and returns the exit code.
    `blame` is called for a policy with its path, how to run, the most questions and the progress;
    `remarks(judged, base, commit)` returns what the comment says, `write(folder)` keeps it.
    """
    place = next((one.steps[name] for one in FEATURES if name in one.steps), None)
    if place is None:
        raise UsageError(
            f"the input {name} asks for a feature that is not installed here; leave it out of the "
            "step's `with:`"
        )
    return at(place)


@github.command()
@input_options
@click.option(
    "--shard", default="", envvar="FAIRGATE_SHARD", help="Ask the I-th of N parts: `I/N`."
)
def run(shard: str, **options: str) -> int:
    """Gate the pull request, push or merge group of this workflow run.

    Policy and baseline are read from the base commit. Writes the report files, step outputs, job
    summary and annotations, and keeps one comment on the pull request up to date. With --shard it
    asks a part of the questions and decides nothing.
    """
    environment = dict(os.environ)
    os.environ.pop("FAIRGATE_GITHUB_TOKEN", None)  # no process that we start needs it
    with accounted(environment) as account:
        if not shard:  # a part that fails is missing for the step that decides, which comments
            account.options = options
        inputs = read_inputs(options, environment)
        account.place = place_of(inputs, environment)
        os.chdir(inputs.root)
        if shard and inputs.answers:
            raise UsageError(
                "answers-artifact and shard are given together; a part takes no stored answers: "
                "leave one of them out of the step's `with:`"
            )
        if shard:
            return int(step("shard")(inputs, shard, environment))
        return gate_change(inputs, subject_of(inputs, environment), environment, _evaluate())


def _evaluate() -> Callable[[Side], Evaluation]:
    from fairgate.github.change import evaluated

    progress = progress_for(quiet=False)
    return lambda side: evaluated(side, progress)


def subject_of(inputs: Inputs, environment: Mapping[str, str]) -> Posting:
    """Return what the event is about, once it may meet this token."""
    from fairgate.github.event import read_event, read_roots
    from fairgate.github.pull_requests import github_api, refuse_untrusted, resolved

    roots = read_roots(environment)
    api = github_api(roots, inputs.token)
    event = resolved(read_event(environment, inputs.number), api)
    refuse_untrusted(event)
    return Posting(event=event, roots=roots, api=api)


def place_of(inputs: Inputs, environment: Mapping[str, str]) -> str:
    """Return where the gate's root lies in the repository: `services/shop/`."""
    from fairgate.github.pull_requests import place_in_repository

    return place_in_repository(inputs.root, Path(environment.get("GITHUB_WORKSPACE") or "."))


def gate_change(
    inputs: Inputs,
    subject: Posting,
    environment: Mapping[str, str],
    evaluate: Callable[[Side], Evaluation],
    finish: Callable[[], None] = lambda: None,
) -> int:
    """Judge every policy by `evaluate` and report; `finish` may still refuse before that."""
    from fairgate.github import runner
    from fairgate.github.change_report import SeveralReports, report_change

    explains = step("blame") if inputs.blame else None
    place = place_of(inputs, environment)
    answers = _answers(inputs, subject, environment)
    several = len(inputs.policies) > 1
    reports = []
    for policy in inputs.policies:
        progress = progress_for(quiet=False)
        explained = explains and explains(policy, inputs.runtime, inputs.blame, progress)
        judged, remarks, base = judge_policy(inputs, policy, subject, environment, evaluate)
        if explained is not None and base is not None:
            remarks += explained.remarks(judged, base, base.commit)
        name = judged.decides.given.policy.name
        folder = inputs.report_dir or inputs.scratch / "reports" / name
        if several and inputs.report_dir:
            folder = inputs.report_dir / name
        written_folder(folder, inputs)
        reports.append(
            report_change(judged, folder, remarks, place=place, report_only=inputs.report_only)
        )
        if explained is not None:
            explained.write(folder)
        _say(judged, folder, report_only=inputs.report_only)
    report = SeveralReports(reports=reports, place=place) if several else reports[0]
    finish()
    runner.write_outputs(environment.get("GITHUB_OUTPUT", ""), answers())
    _publish(report, inputs, subject, environment)
    code = report.exit_code
    return ExitCode.PASS if inputs.report_only and code in _VERDICTS else code


def _answers(
    inputs: Inputs, subject: Posting, environment: Mapping[str, str]
) -> Callable[[], dict[str, str]]:
    """Fetch the base branch's stored answers; return what says, at the end, what came of it."""
    if not inputs.answers:
        return dict
    from fairgate.github.base_answers import fetch_answers, keep_answers

    cache, ref = inputs.runtime.cache, environment.get("GITHUB_REF", "")
    found = fetch_answers(subject.event, subject.api, inputs.answers, cache, ref)
    if found.notice:
        click.echo(f"fairgate: note: {harmless(found.notice)}", err=True)
    return lambda: {
        "answers-hit": str(bool(found.commit)).lower(),
        "answers-commit": found.commit,
        "answers-file": keep_answers(subject.event, cache, inputs.scratch / "answers", ref),
    }


def _say(judged: JudgedChange[Evaluation], folder: Path, *, report_only: bool) -> None:
    from fairgate.reports.console import render_console
    from fairgate.reports.formats import formats
    from fairgate.reports.present import view_of

    decides = judged.decides
    for notice in decides.notices:
        click.echo(f"fairgate: note: {harmless(notice)}", err=True)
    view = view_of(decides.run, decides.given, folder, tuple(formats()), report_only=report_only)
    click.echo(render_console(view))


def judge_policy(
    inputs: Inputs,
    policy: str,
    subject: Posting,
    environment: Mapping[str, str],
    evaluate: Callable[[Side], E],
) -> tuple[JudgedChange[E], list[str], BaseCommit | None]:
    """Judge the change of one policy; return remarks for the comment, and the base commit, too."""
    from fairgate.github.change import Judge, objection_to_allow
    from fairgate.github.pull_requests import base_commit, objection_to_introduce

    event = subject.event
    judge = Judge(policy, inputs.runtime, evaluate, inputs.scratch)
    base = base_commit(event, inputs.root, inputs.workspace, subject.api)
    if base is None:
        return judge.checkout(), [], None
    remarks = []
    allow = inputs.allows_change
    if allow:
        objection = objection_to_allow(event, base, environment)
        allow = not objection
        remarks = [f"`baseline-change: allow` does not count: {objection}"] if objection else []
    judged = judge.change(
        base, base.commit, allow=allow, no_introduction=objection_to_introduce(event)
    )
    return judged, remarks, base


def _publish(
    report: ChangeReport | SeveralReports,
    inputs: Inputs,
    posting: Posting,
    environment: Mapping[str, str],
) -> None:
    """Report to runner and pull request; failures in here are warnings."""
    from fairgate.github import runner
    from fairgate.github.pull_requests import CommentPlan, comment

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
