"""Where the answers of a run come from: asked for in it, or stored by an earlier one."""

from __future__ import annotations

from fairgate.domain.outcomes import Origin
from fairgate.domain.ports import PassedOn, Progress

_MOST = 10**9
_ANSWERING = ("ask", "generate")
"""Stages that get answers."""
_OTHERS = frozenset({"judge", "reference"})
"""Parts in which others than the system under test answer."""


class Counted(PassedOn):
    """Progress of a run that counts where the system's answers come from."""

    def __init__(self, inner: Progress) -> None:
        """Begin with none."""
        super().__init__(inner)
        self.answers = self.stored = 0

    def start(self, stage: str, total: int, cached: int) -> None:
        """Count the answers of a stage, but those of a judge."""
        *parts, name = stage.split(": ")
        if name in _ANSWERING and _OTHERS.isdisjoint(parts):
            self.answers += total
            self.stored += cached
        super().start(stage, total, cached)


def read_origin(record: object) -> Origin | None:
    """Read the answers' origin in a run record; None where it has another form."""
    fields = record if isinstance(record, dict) else {}
    asked, stored = fields.get("asked"), fields.get("stored")
    if not isinstance(asked, int) or not isinstance(stored, int):
        return None
    return Origin(asked=asked, stored=stored) if 0 <= min(asked, stored) <= _MOST else None
