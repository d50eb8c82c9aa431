"""What is printed, results and progress: none of it is interpreted, and none can stop a command.

Full disks, closed pipes and streams, and encodings that lack a character are the reader's state: no
verdict depends on them.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from fairgate.domain.errors import ExitCode
from fairgate.domain.ports import SILENT, Progress
from fairgate.domain.wording import harmless
from fairgate.terminal.options import called

if TYPE_CHECKING:
    from fairgate.gate.composition import FinishedRun
    from fairgate.reports.formats import Format


VERDICTS = {ExitCode.PASS, ExitCode.GATE_FAILED, ExitCode.BASELINE, ExitCode.NO_VERDICT}
_ESCAPES = "fairgate.escapes"
_HEARTBEAT_SECONDS = 15.0
_SILENT_SECONDS = 10.0
_MINUTE = 60.0


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Return characters that an encoding lacks as JSON escapes: JSON lines stay JSON lines."""
    assert isinstance(error, UnicodeEncodeError)  # noqa: S101 - streams that are written
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    codes = (units[offset : offset + 2].hex() for offset in range(0, len(units), 2))
    return "".join(f"\\u{code}" for code in codes), error.end


codecs.register_error(_ESCAPES, _escaped)


class Output:
    """A text stream that takes everything: what it lacks is escaped, what it refuses is lost."""

    def __init__(self, stream: TextIO | None) -> None:
        """Take sys.stdout or sys.stderr, None where the process was started with it closed."""
        self._stream = stream
        self.lost = ""
        """Why some of it could not be written; empty where all was."""
        self.is_unread = False
        """Whether the reader has closed its end, as `head` does when it has enough."""
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors=_ESCAPES)  # type: ignore[union-attr]

    def write(self, text: str | bytes) -> int:
        """Write as much as the stream takes; return the whole length (bytes: click, for a shell).

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
            self.is_unread = isinstance(error, BrokenPipeError)
            # The interpreter would try again when it ends, fail again, and change the exit code.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self.fileno())
                os.close(nowhere)

    def isatty(self) -> bool:
        """Return whether a person reads along."""
        return self._stream is not None and self._stream.isatty()

    def __getattr__(self, name: str) -> Any:
        """Return the stream's attribute, but no way to write bytes past what is promised here."""
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


def report_run(
    done: FinishedRun,
    folder: Path,
    formats: Sequence[Format],
    options: Mapping[str, Any],
) -> int:
    """Write and print a finished run as the options of its command say; return the exit code."""
    from fairgate.gate.run_folder import write_run
    from fairgate.reports.console import render_console
    from fairgate.reports.findings import findings_of
    from fairgate.reports.formats import known_files
    from fairgate.reports.present import local_view, texts_of
    from fairgate.terminal.document import echo_json
    from fairgate.terminal.options import prints_json

    run, loaded, report_only = done.run, done.loaded, options["report_only"]
    limit = options.get("limit")
    as_called = functools.partial(called, policy=loaded.parsed.path, run=folder)
    view_options = {"report_only": report_only, "limit": limit, "called": as_called}
    view_options["of_table"] = options.get("of_table", False)
    view = local_view(run, loaded, folder, formats, **view_options)
    write_run(folder, loaded, run, texts_of(view, formats), known_files())
    for notice in done.notices:
        say(f"fairgate: note: {harmless(notice)}")
    code = run.result.exit_code
    ends = ExitCode.PASS if report_only and code in VERDICTS else code
    if prints_json(options["formats"]):
        result = {"outcome": str(run.result.outcome), "run": str(folder)}
        echo_json(
            result, exit_code=ends, findings=findings_of(run, loaded.policy.redact),
            problems=[{"message": text} for text in run.result.evidence.problems],
        )  # fmt: skip
    else:
        text = render_console(view, colour=has_colour(), whole=options.get("verbose", False))
        click.echo(text, nl=False)
    return ends


@dataclass(slots=True)
class _Stage:
    name: str
    total: int
    done: int
    began: float
    """When, on a clock of no date, and how many were done then; the first results set both anew."""
    before: int
    has_begun: bool = False

    def advance(self, steps: int, now: float) -> None:
        """Count results. Their pace is measured from the first: before it a model is opened."""
        self.done += steps
        if steps and not self.has_begun:
            self.began, self.before, self.has_begun = now, self.done, True

    def left(self, now: float) -> str:
        """Return `, about 3 min left` at the pace so far; empty before it is known."""
        fresh = self.done - self.before
        if fresh <= 0:
            return ""
        seconds = (self.total - self.done) * (now - self.began) / fresh
        if seconds < _MINUTE:
            return f", about {max(1, round(seconds))} s left"
        return f", about {round(seconds / _MINUTE):,} min left"


class _Silence:
    """Tells that nothing comes: after ten seconds, and after twice as long each time from then.

    Work whose results come slowly is not silent: before the next line it may take twice as long as
    it took before.
    From a thread of its own, which ends with the last stage, or with what it tells.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = weakref.WeakMethod(tell)
        self.about: list[str] = []
        self.last = 0.0
        self.longest = 0.0
        """Seconds between two results so far."""
        self._over: threading.Event | None = None

    def begin(self, about: str, *, has_work: bool) -> None:
        """Listen for the results of a stage."""
        self.about.append(about)
        self.last = time.monotonic()
        if self._over is None and has_work:
            self._over = threading.Event()
            listen = threading.Thread(
                target=_listen, args=(weakref.ref(self), self._over), daemon=True
            )
            listen.start()

    def heard(self) -> None:
        """Begin anew: something came."""
        now = time.monotonic()
        self.last, self.longest = now, max(self.longest, now - self.last)

    def end(self) -> None:
        """Stop listening for the innermost stage."""
        self.about.pop()
        self.heard()
        if not self.about and self._over is not None:
            self._over.set()
            self._over = None


def _listen(silence: weakref.ref[_Silence], over: threading.Event) -> None:
    last, patience, left = 0.0, _SILENT_SECONDS, _SILENT_SECONDS
    while not over.wait(max(0.0, left)):
        listened = silence()
        tell = None if listened is None else listened.tell()
        if listened is None or tell is None:
            return
        if listened.last != last:
            last, patience = listened.last, max(_SILENT_SECONDS, 2 * listened.longest)
        left = last + patience - time.monotonic()
        if left <= 0:
            about = next(iter(listened.about[-1:]), "")
            tell(f"{about}: nothing has come for {time.monotonic() - last:.0f} s; waiting")
            patience *= 2
            left = last + patience - time.monotonic()
        del listened, tell  # what ends is not kept by whoever listens to it


class Heartbeat(Progress):
    """Prints what is done every few seconds, in plain lines that a CI log keeps."""

    def __init__(self) -> None:
        """Start silent: a stage without work and without stored results prints nothing."""
        self._stages: list[_Stage] = []
        self._last = 0.0
        self._silence = _Silence(self.note)

    def start(self, stage: str, total: int, cached: int) -> None:
        """Announce a stage: what it has to do, and what the store spares it."""
        now = self._last = time.monotonic()
        self._stages.append(_Stage(stage, total, cached, now, cached))
        self._silence.begin(stage, has_work=cached < total)
        if sentence := _beginning(stage, total, cached):
            self.note(sentence)

    def advance(self, steps: int) -> None:
        """Count, and print if the last line is long ago."""
        self._silence.heard()
        stage = self._stages[-1]
        now = time.monotonic()
        stage.advance(steps, now)
        if now - self._last >= _HEARTBEAT_SECONDS:
            self._last = now
            say(f"fairgate: {stage.name}: {stage.done} of {stage.total}{stage.left(now)}")

    def finish(self) -> None:
        """Go back to the stage around this one."""
        self._silence.end()
        self._stages.pop()

    def note(self, text: str) -> None:
        """Print what follows and what it costs."""
        say(f"fairgate: {text}")


def _beginning(stage: str, total: int, cached: int) -> str:
    """Return what a stage has to do; empty for nothing at all."""
    if cached < total:
        return f"{stage}: {total - cached} to do, {cached} in store"
    return f"{stage}: all {total:,} in store" if total else ""


class Bars(Progress):
    """A bar for each stage that has something to do."""

    def __init__(self) -> None:
        """Show nothing yet."""
        self._live: Any = None
        self._tasks: list[Any] = []
        self._silence = _Silence(self.note)

    def start(self, stage: str, total: int, cached: int) -> None:
        """Show a bar for a stage that has something to do."""
        self._silence.begin(stage, has_work=cached < total)
        if cached >= total:
            self._tasks.append(None)
            if sentence := _beginning(stage, total, cached):
                self.note(sentence)
            return
        if self._live is None:
            from rich import progress
            from rich.console import Console

            self._live = progress.Progress(
                "{task.description:<21}",
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._live.start()
        self._tasks.append(self._live.add_task(stage, total=total, completed=cached))

    def advance(self, steps: int) -> None:
        """Move the innermost bar."""
        self._silence.heard()
        if self._tasks[-1] is not None:
            self._live.advance(self._tasks[-1], steps)

    def finish(self) -> None:
        """Leave the bar as it is, and the terminal free when no stage is left."""
        self._silence.end()
        self._tasks.pop()
        if self._live is not None and not self._tasks:
            self._live.stop()
            self._live = None

    def note(self, text: str) -> None:
        """Print what follows and what it costs, above the bars."""
        if self._live is None:
            say(f"fairgate: {text}")
        else:
            self._live.console.print(f"fairgate: {harmless(text)}", markup=False, highlight=False)


def progress_for(*, quiet: bool) -> Progress:
    """Return bars on a terminal, else a heartbeat; nothing at all where `quiet`."""
    if quiet:
        return SILENT
    return Bars() if sys.stderr.isatty() else Heartbeat()
