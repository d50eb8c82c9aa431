"""What went wrong, in words and an exit code: a crash is never a verdict.

Full disks, closed pipes, too little memory and libraries that cannot be loaded are the machine's
state; only what is left is an internal error.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator

import click

from fairgate.domain.errors import ExitCode, FairGateError
from fairgate.domain.wording import harmless
from fairgate.terminal.output import say

_MOST = 500
_NO_MORE_FILES = (errno.EMFILE, errno.ENFILE)


def explain(error: BaseException) -> ExitCode:
    """Print on stderr what went wrong and what to do, and return the exit code."""
    causes = [*_causes(error)]
    if any(isinstance(one, click.Abort | KeyboardInterrupt) for one in causes):
        # Also where a library that was being imported turned Ctrl-C into an error of its own.
        say("fairgate: interrupted; what is stored is kept: run again to go on")
        return ExitCode.INTERRUPTED
    if any(isinstance(one, OSError) and one.errno in _NO_MORE_FILES for one in causes):
        say(
            "fairgate: error: too many files and connections are open at once: allow more "
            "(`ulimit -n`), or lower --workers or `concurrency`"
        )
        return ExitCode.EXECUTION
    match error:
        case click.ClickException():
            shown = io.StringIO()
            error.show(file=shown)
            say(shown.getvalue().rstrip("\n"))
            return ExitCode.USAGE
        case FairGateError():
            say(f"fairgate: error: {error}")
            return error.exit_code
        case SystemExit():
            # No command of ours leaves so: a library may, with a status that would be taken for a
            # verdict.
            say(
                f"fairgate: error: stopped before the end (status {str(error.code)[:80]}): a "
                "library gave up; there is no verdict"
            )
            return ExitCode.EXECUTION
    say(_of_the_machine(error) or _internal(error))
    return ExitCode.EXECUTION


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        hidden = error.__suppress_context__
        error = error.__cause__ or (None if hidden else error.__context__)


def _of_the_machine(error: BaseException) -> str:
    """Return the sentence for what the machine refused; empty where it is something else."""
    detail = harmless(str(error)[:_MOST])
    match error:
        case MemoryError() | OSError(errno=errno.ENOMEM):
            return (
                f"fairgate: error: there is not enough memory, or address space ({detail}): lower "
                "--batch-size, allow more (`ulimit -v`), or take a smaller model or corpus"
            )
        case ImportError():
            return (
                f"fairgate: error: a library cannot be loaded ({detail}): install FairGate again, "
                "or allow more address space (`ulimit -v`)"
            )
        case OSError(filename=None, errno=errno.ENOSPC | errno.EDQUOT | errno.EIO | errno.EPIPE):
            return (
                f"fairgate: error: the output cannot be written ({error.strerror}); files that are "
                "complete stay: free some space, or write the output elsewhere"
            )
        case OSError():
            return f"fairgate: error: {detail}; check the path, its permissions and free space"
    return ""


def _internal(error: BaseException) -> str:
    return (
        f"fairgate: internal error: {type(error).__name__}: {harmless(str(error)[:_MOST])}\n"
        "This is a bug. Run again with `fairgate --debug …` and report the traceback."
    )
