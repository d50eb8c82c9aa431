"""What a step leaves that ends without a verdict: outputs, annotations, a summary, a comment."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from fairgate.domain.errors import ExitCode, FairGateError, PolicyError, Problem
from fairgate.github.runner import Annotation, annotation_lines, append_summary, write_outputs


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
