"""What a step leaves that ends without a verdict: outputs, annotations, a summary, a comment."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairgate.domain.errors import ExitCode, FairGateError, PolicyError, Problem
from fairgate.github.runner import Annotation, annotation_lines, append_summary, write_outputs
from fairgate.io.durable import write_parts
from fairgate.io.git import link_on_the_way

if TYPE_CHECKING:
    from fairgate.reports.formats import Format, Unjudged

NO_VERDICT = "no-verdict"
"""Folder, in the runner's own, of the comment of what was not judged."""
_LONGEST = 20_000


@dataclass(slots=True)
class Account:
    """Facts about a run, for the case that it ends without a verdict."""

    environment: Mapping[str, str]

    prefix: str = ""
    """Where paths start at, in the repository: `services/shop/`."""
    is_gate: bool = False
    """Whether a gate was to run, and so a verdict was due."""
    report_dir: Path | None = None
    """Where the workflow expects reports, if it says so and nothing else stands there."""


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
        with contextlib.suppress(FairGateError):
            _report_error(error, code_of(error), account)
        raise


def _report_error(error: BaseException, code: ExitCode, account: Account) -> None:
    from fairgate.reports.escaping import markdown_block
    from fairgate.reports.formats import formats

    environment, prefix = account.environment, account.prefix

    text = _words(error)
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
    block = markdown_block(text[:_LONGEST])
    summary = f"### FairGate: no verdict (exit code {int(code)})\n\n{block}\n"
    append_summary(environment.get("GITHUB_STEP_SUMMARY", ""), summary)
    scratch = environment.get("RUNNER_TEMP")
    if account.is_gate and code is not ExitCode.INTERRUPTED and scratch:
        folder = Path(scratch) / "fairgate" / NO_VERDICT
        written = leave_no_verdict(error, code, folder)
        if account.report_dir is not None:
            with contextlib.suppress(FairGateError):
                leave_no_verdict(error, code, account.report_dir, list(formats()))
        write_outputs(
            environment.get("GITHUB_OUTPUT", ""),
            {"run-folder": str(folder), "comment-digest": written},
        )


def _problems(error: BaseException) -> Sequence[Problem]:
    """Return the problems, each with its file and line if it has them."""
    if isinstance(error, PolicyError) and error.problems:
        return error.problems
    return [Problem("", 0, 0, _words(error))]


def _words(error: BaseException) -> str:
    is_ours = isinstance(error, FairGateError | click.ClickException)
    return str(error) if is_ours else f"{type(error).__name__}: {str(error)[:500]}"


def no_verdict(error: BaseException, code: ExitCode) -> str:
    """Return the comment of a run that ended without a verdict.

    No earlier verdict may stand on the pull request as if it were this run's.
    """
    from fairgate.github.report import no_verdict_comment

    first = _problems(error)[0]
    return no_verdict_comment(str(first) if first.path else first.message, int(code))


def leave_no_verdict(
    error: BaseException, code: ExitCode, folder: Path, written: Sequence[Format] = ()
) -> str:
    """Leave that comment in a folder for the job that posts it, and the error as reports.

    Returns the comment's SHA-256.
    """
    from fairgate.reports.formats import Unjudged

    title = f"FairGate: no verdict (exit code {int(code)})"
    unjudged = Unjudged(title=title, text=_words(error)[:_LONGEST], is_error=True)
    return leave_unjudged(folder, unjudged, no_verdict(error, code), written)


def leave_unjudged(
    folder: Path, unjudged: Unjudged, comment: str, written: Sequence[Format]
) -> str:
    """Write the reports and the comment of what was not judged, but through no link.

    Returns the comment's SHA-256; nothing where nothing is written.
    """
    from fairgate.github.comments import write_comment

    if link_on_the_way(folder):
        return ""
    texts = {form.file: form.unjudged(unjudged) for form in written if form.unjudged}
    write_parts(folder, {name: [text] for name, text in texts.items()}, option="report-dir")
    return write_comment(folder, comment, create=True)


def code_of(error: BaseException) -> ExitCode:
    """Return the exit code that an error ends with."""
    if isinstance(error, FairGateError):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return ExitCode.INTERRUPTED
    return ExitCode.USAGE if isinstance(error, click.ClickException) else ExitCode.EXECUTION
