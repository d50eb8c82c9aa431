"""`--format json`: one document on stdout, the same for every command, errors included."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from fairgate.domain.errors import FairGateError, PolicyError

if TYPE_CHECKING:
    from fairgate.reports.findings import Finding


def echo_json(
    result: object,
    *,
    exit_code: int = 0,
    problems: Iterable[Mapping[str, Any]] = (),
    findings: Iterable[Finding] = (),
) -> None:
    """Print a document: ASCII only, so that no text in it acts on a terminal or a runner."""
    from fairgate.reports.findings import Document, Wrong

    document = Document(
        command=click.get_current_context().command_path.partition(" ")[2],
        exit_code=int(exit_code),
        problems=[Wrong(**problem) for problem in problems],
        findings=list(findings),
        result=result,
    )
    text = json.dumps(document.model_dump(), indent=1, allow_nan=False)
    click.echo(text.replace("::", ":\\u003a").replace("##[", "##\\u005b"))


def failing_as_json(
    callback: Callable[..., Any], is_asked: Callable[[Mapping[str, Any]], bool]
) -> Any:
    """Return a command's function that prints an error as a document, too, where JSON is asked."""

    @functools.wraps(callback)
    def called(*arguments: Any, **options: Any) -> Any:
        try:
            return callback(*arguments, **options)
        except FairGateError as error:
            if is_asked(options):
                echo_json(None, exit_code=error.exit_code, problems=_problems(error))
            raise

    return called


def _problems(error: FairGateError) -> list[dict[str, Any]]:
    if not isinstance(error, PolicyError):
        return [{"message": str(error)}]
    names = ("path", "line", "column", "message")
    return [{name: getattr(problem, name) for name in names} for problem in error.problems]
