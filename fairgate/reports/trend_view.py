"""What a report shows of the way from the baseline to now; not escaped yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.reports.measured import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """A metric in a slice: what the baseline's run measured and what this one did."""

    title: str
    metric: str
    slice: str
    """`setting stereo`; empty for the whole suite."""
    base: Figure
    now: Figure
    change: str
    """As the rule found it, on the cases decided in both runs; a dash where no rule compares."""
    interval: str
    """Of the change."""
    failed: bool
    """Whether that rule found a regression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendGroup:
    """Rows of a suite that share a scale."""

    suite: str
    unit: str
    """What the scale counts, in words."""
    factor: float
    """By which the values are multiplied to be read off the scale."""
    both_sides: bool
    """Whether 0 stands in the middle, good values around it."""
    rows: Sequence[TrendRow]
