"""What a step of a workflow leaves where it ends without a verdict."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from fairgate.domain.errors import ExitCode, FairGateError, PolicyError, Problem
from fairgate.github.inputs import policies_in

if TYPE_CHECKING:
    from fairgate.github.pull_requests import CommentMode
    from fairgate.github.runner import Annotation


@dataclass(slots=True)
class Account:
    """What is known of a run when it ends without a verdict."""

    place: str = ""
    """Where paths start at, in the repository: `services/shop/`."""
    options: Mapping[str, str] | None = None
    """What the gate's step was given; None where no gate was to run."""


@contextlib.contextmanager
def accounted(environment: Mapping[str, str]) -> Iterator[Account]:
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
    from fairgate.github import runner
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
    from fairgate.github import runner
    from fairgate.github.change_report import several_key
    from fairgate.github.event import read_event, read_roots
    from fairgate.github.pull_requests import CommentPlan, github_api, resolved
    from fairgate.github.stopped_runs import StoppedRun, comment_stopped_run, policy_name

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
    from fairgate.github.runner import Annotation

    # The runner itself shortens an absolute path; a relative one is taken from the repository.
    is_relative = problem.path and not problem.path.startswith("/")
    return Annotation(
        level="error",
        title="FairGate: no verdict",
        message=problem.message,
        file=f"{place}{problem.path}" if is_relative else problem.path,
        line=problem.line,
    )
