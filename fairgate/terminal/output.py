"""What is printed: nothing of it is interpreted, and none of it can stop a command.

Full disks, closed pipes and streams, and encodings that lack a character are the reader's state: no
verdict depends on them.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from fairgate.domain.errors import ExitCode
from fairgate.domain.wording import harmless

if TYPE_CHECKING:
    from fairgate.gate.gate import GateRun
    from fairgate.reports.view import View

PAGE = "report.html"
_VERDICTS = {ExitCode.PASS, ExitCode.GATE_FAILED, ExitCode.BASELINE, ExitCode.NO_VERDICT}
_ESCAPES = "fairgate.escapes"


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Return what an encoding lacks as JSON escapes it, so that JSON lines stay JSON lines."""
    assert isinstance(error, UnicodeEncodeError)  # noqa: S101 - streams that are written
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    codes = (units[place : place + 2].hex() for place in range(0, len(units), 2))
    return "".join(f"\\u{code}" for code in codes), error.end


codecs.register_error(_ESCAPES, _escaped)


class Output:
    """A text stream that takes everything: what it lacks is escaped, what it refuses is lost."""

    def __init__(self, stream: TextIO | None) -> None:
        """Take sys.stdout or sys.stderr, None where the process was started with it closed."""
        self._stream = stream
        self.lost = ""
        """Why some of it could not be written; empty where all was."""
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors=_ESCAPES)  # type: ignore[union-attr]

    def write(self, text: str | bytes) -> int:
        """Write what can be written, and count all of it (bytes: click, for a shell).

        Raises TypeError for no bytes at all, by which click asks whether a stream takes bytes only.
        """
        if text == b"":
            raise TypeError("a text stream")
        self._try("write", text.decode() if isinstance(text, bytes) else text)
        return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        self._try("flush")

    def _try(self, method: str, *text: str) -> None:
        if self._stream is None:
            self.lost = "it is closed" if any(text) else self.lost
            return
        try:
            getattr(self._stream, method)(*text)
        except (OSError, ValueError) as error:
            self.lost = getattr(error, "strerror", None) or str(error)
            # The interpreter would try again when it ends, fail again, and change the exit code.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self.fileno())
                os.close(nowhere)

    def isatty(self) -> bool:
        """Return whether a person reads along."""
        return self._stream is not None and self._stream.isatty()

    def __getattr__(self, name: str) -> Any:
        """Return what the stream has, but no way to write bytes past what is promised here."""
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self._stream, name)


def say(text: str) -> None:
    """Print a message on stderr, keeping its own line ends, harmlessly.

    A message quotes file names, keys and libraries' messages about untrusted files: a line of it
    could begin with a workflow command or steer a terminal.
    """
    click.echo("\n".join(harmless(line) for line in text.split("\n")), err=True)


def has_colour() -> bool:
    """Return whether the result may be coloured: on a terminal, unless NO_COLOR forbids it."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and sys.stdout.isatty()


def say_result(view: View, done: GateRun, notices: Sequence[str], *, report_only: bool) -> int:
    """Print a finished run, and return the exit code."""
    from fairgate.reports.console import render_console

    for notice in notices:
        say(f"fairgate: note: {harmless(notice)}")
    click.echo(render_console(view, colour=has_colour()))
    code = done.result.exit_code
    return ExitCode.PASS if report_only and code in _VERDICTS else code


def open_page(page: Path) -> None:
    """Open the page in the user's browser; where there is none, say where it is."""
    import webbrowser

    if not page.is_file():
        say(f"fairgate: note: no page was written; add `html` to --format: {harmless(str(page))}")
    elif not webbrowser.open(page.absolute().as_uri()):
        say(f"fairgate: note: no browser could be started; open {harmless(str(page))}")
