"""The table of a comparison: every engine's seconds as multiples of this engine's."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

OWN = "fairgate"


@dataclass(kw_only=True)
class Measured:
    """What one engine took in every round, and what it answered."""

    start: float = 0.0
    """Seconds from the start of the process until a short prompt was answered."""
    peak_mib: float = 0.0
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    failure: str = ""
    """Why it was not measured; empty where it was."""

    def add(self, reply: Mapping[str, Any]) -> None:
        """Take one more round."""
        self.wall.append(reply["wall"])
        self.processor.append(reply["processor"])
        self.peak_mib = reply["peak_mib"]
        self.answers = reply["answers"]


def table(engines: Mapping[str, Measured]) -> str:
    """Return a Markdown table beside this engine; what was not measured says why."""
    own = engines[OWN]
    lines = [
        f"| engine | s | times {OWN}'s | by processor time | same answers | start, s | MiB |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, found in engines.items():
        if found.failure:
            lines.append(f"| {name} | not measured: {found.failure} | | | | | |")
            continue
        same = sum(a == b for a, b in zip(found.answers, own.answers, strict=True))
        lines.append(
            f"| {name} | {statistics.median(found.wall):.2f} | {ratio(found.wall, own.wall)} | "
            f"{ratio(found.processor, own.processor)} | {same} of {len(own.answers)} | "
            f"{found.start:.1f} | {found.peak_mib:.0f} |"
        )
    return "\n".join(lines)


def ratio(other: Sequence[float], own: Sequence[float]) -> str:
    """Return the median of the rounds' ratios with the least and the greatest."""
    ratios = [a / b for a, b in zip(other, own, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
