"""What a report shows of where violations come from; not escaped yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.reports.measured import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow:
    """One path's part of the violations."""

    path: str
    points: str
    measured: Figure
    """The same points with their interval, for the chart."""
    share: str
    interval: str
    """Of the share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseView:
    """Where a suite's violations come from, as far as it is known."""

    suite: str
    sentences: Sequence[str]
    parts: Sequence[PartRow]
