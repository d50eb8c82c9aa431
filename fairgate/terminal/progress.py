"""Progress on stderr: bars on a terminal, a heartbeat line elsewhere.

Stages nest: an index may be built inside the retrieval that needs it.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

from fairgate.domain.ports import SILENT, Progress
from fairgate.domain.wording import harmless
from fairgate.terminal.output import say

_HEARTBEAT_SECONDS = 15.0
_MINUTE = 60.0


@dataclass(slots=True)
class _Stage:
    name: str
    total: int
    done: int
    began: float
    """When, on a clock of no date, and how many were done then."""
    before: int

    def left(self, now: float) -> str:
        """Return `, about 3 min left` at the pace so far; empty before anything is done."""
        fresh = self.done - self.before
        if fresh <= 0:
            return ""
        seconds = (self.total - self.done) * (now - self.began) / fresh
        if seconds < _MINUTE:
            return f", about {max(1, round(seconds))} s left"
        return f", about {round(seconds / _MINUTE):,} min left"


class Heartbeat:
    """Prints what is done every few seconds, in plain lines that a CI log keeps."""

    def __init__(self) -> None:
        """Start silent: a stage without work prints nothing."""
        self._stages: list[_Stage] = []
        self._last = 0.0

    def start(self, stage: str, total: int, cached: int) -> None:
        """Announce a stage that has something to do."""
        now = self._last = time.monotonic()
        self._stages.append(_Stage(stage, total, cached, now, cached))
        if cached < total:
            say(f"fairgate: {stage}: {total - cached} to do, {cached} in store")

    def advance(self, steps: int) -> None:
        """Count, and print if the last line is long ago."""
        stage = self._stages[-1]
        stage.done += steps
        now = time.monotonic()
        if now - self._last >= _HEARTBEAT_SECONDS:
            self._last = now
            say(f"fairgate: {stage.name}: {stage.done} of {stage.total}{stage.left(now)}")

    def generated(self, tokens: int) -> None:
        """Print no tokens: `--profile` does."""

    def finish(self) -> None:
        """Go back to the stage around this one."""
        self._stages.pop()

    def note(self, text: str) -> None:
        """Print what follows and what it costs."""
        say(f"fairgate: {text}")


class Bars:
    """A bar for each stage that has something to do."""

    def __init__(self) -> None:
        """Show nothing yet."""
        self._live: Any = None
        self._tasks: list[Any] = []

    def start(self, stage: str, total: int, cached: int) -> None:
        """Show a bar for a stage that has something to do."""
        if cached >= total:
            self._tasks.append(None)
            return
        if self._live is None:
            self._live = _rich_progress()
            self._live.start()
        self._tasks.append(self._live.add_task(stage, total=total, completed=cached))

    def advance(self, steps: int) -> None:
        """Move the innermost bar."""
        if self._tasks[-1] is not None:
            self._live.advance(self._tasks[-1], steps)

    def generated(self, tokens: int) -> None:
        """Show no tokens: `--profile` does."""

    def finish(self) -> None:
        """Leave the bar as it is, and the terminal free when no stage is left."""
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


def _rich_progress() -> Any:
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        "{task.description:<21}",
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def progress_for(*, quiet: bool) -> Progress:
    """Return bars on a terminal, else a heartbeat; nothing at all where `quiet`."""
    if quiet:
        return SILENT
    return Bars() if sys.stderr.isatty() else Heartbeat()
