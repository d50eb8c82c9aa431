"""Where the answers of a run come from: asked for in it, or stored by an earlier one."""

from __future__ import annotations

from contextlib import AbstractContextManager

from fairgate.domain.outcomes import Origin
from fairgate.domain.ports import Progress

_MOST = 10**9
_ANSWERING = ("ask", "generate")
"""Stages that get answers."""
_OTHERS = frozenset({"judge", "reference"})
"""Parts in which others than the system under test answer."""


class Counted(Progress):
    """Progress of a run that counts where the system's answers come from."""

    def __init__(self, inner: Progress) -> None:
        """Pass everything on."""
        self._inner = inner
        self.answers = self.stored = 0

    def start(self, stage: str, total: int, cached: int) -> None:
        """Count the answers of a stage, but those of a judge."""
        *parts, name = stage.split(": ")
        if name in _ANSWERING and _OTHERS.isdisjoint(parts):
            self.answers += total
            self.stored += cached
        self._inner.start(stage, total, cached)

    def advance(self, steps: int) -> None:
        """Pass on."""
        self._inner.advance(steps)

    def generated(self, tokens: int) -> None:
        """Pass on."""
        self._inner.generated(tokens)

    def finish(self) -> None:
        """Pass on."""
        self._inner.finish()

    def note(self, text: str) -> None:
        """Pass on."""
        self._inner.note(text)

    def part(self, name: str) -> AbstractContextManager[None]:
        """Pass on."""
        return self._inner.part(name)


def read_origin(record: object) -> Origin | None:
    """Read the answers' origin in a run record; None where it has another form."""
    fields = record if isinstance(record, dict) else {}
    asked, stored = fields.get("asked"), fields.get("stored")
    if not isinstance(asked, int) or not isinstance(stored, int):
        return None
    return Origin(asked=asked, stored=stored) if 0 <= min(asked, stored) <= _MOST else None
