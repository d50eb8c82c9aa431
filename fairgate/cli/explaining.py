"""What went wrong, in words and an exit code: a crash is never a verdict.

Full disks, closed pipes, too little memory and libraries that cannot be loaded are the machine's
state; only what is left is an internal error.
"""

from __future__ import annotations

import errno
import io

import click

from fairgate.cli.saying import give_up_output, say
from fairgate.domain.errors import ExitCode, FairGateError
from fairgate.domain.wording import harmless

_MOST = 500


def explain(error: BaseException) -> ExitCode:
    """Print on stderr what went wrong and what to do, and return the exit code."""
    match error:
        case click.Abort() | KeyboardInterrupt():
            say("fairgate: interrupted; what is stored is kept: run again to go on")
            return ExitCode.INTERRUPTED
        case click.ClickException():
            shown = io.StringIO()
            error.show(file=shown)
            say(shown.getvalue().rstrip("\n"))
            return ExitCode.USAGE
        case FairGateError():
            say(f"fairgate: error: {error}")
            return error.exit_code
        case SystemExit():
            # No command of ours leaves so: click does where a pipe is closed, and so may a library,
            # with a status that would be taken for a verdict.
            give_up_output()
            say(
                f"fairgate: error: stopped before the end (status {str(error.code)[:80]}): the "
                "output was closed, or a library gave up; there is no verdict"
            )
            return ExitCode.EXECUTION
    say(_of_the_machine(error) or _internal(error))
    if isinstance(error, OSError):
        give_up_output()
    return ExitCode.EXECUTION


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
