"""How to run, as opposed to what: none of it changes a result."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairgate.domain.ports import Team


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """How many workers ask the models of a run, and where."""

    count: int
    ray_address: str | None = None
    """Of a Ray cluster, `local` for one on this machine; None: processes of this machine."""
    team: Callable[[Any, Runtime], Team | None] | None = field(default=None, compare=False)
    """Makes them for a loaded policy and how it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Where a run reads and stores, and how much of the machine it uses."""

    root: Path = field(default_factory=Path)
    """Where relative paths start. On a pull request, for the base's policy: the folder into which
    the base's version of all that decides is brought."""
    tested: Path | None = None
    """Where what is under test is read then; None: at `root`."""
    cache: Path = Path(".fairgate")
    batch_size: int | None = None
    """Rows that models run together; None: as many as memory holds."""
    sharing: int = 1
    """In a worker: how many workers the run has, which may share one machine's memory."""
    threads: int = 0
    device: str = "cpu"
    allow_python: bool = False
    """Import the code that a policy names (`--allow-python`); a policy cannot set it."""
    confined: bool = False
    """Untrusted authors: refuse paths that lead out of `root`, and ignore the revision that an
    application names (the action; `--root`)."""
    today: dt.date | None = None
    """The day that quarantine entries are compared with; None compares them with none."""
    meters: dict[str, Any] | None = field(default=None, compare=False)
    """What counts the questions of several runs together, by the policy's key of the limits; None:
    each run counts its own."""
    workers: Workers | None = None
    """None: models are asked in this process."""

    @property
    def under_test(self) -> Runtime:
        """Return the same for reading what is under test (SPEC 9): model, corpus, index, answers.

        Whatever is not read by this is the base's on a pull request.
        """
        return self if self.tested is None else replace(self, root=self.tested, tested=None)
