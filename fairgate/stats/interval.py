"""An interval around an estimate, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

TOO_FEW_CLUSTERS = "too few clusters"
NOTHING_DECIDED = "nothing decided"
NO_VARIATION = "no variation between sources"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A two-sided interval `low <= high`; `method` is `bca`, `bca and t`, `t` or `wilson`."""

    low: float
    high: float
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoInterval:
    """No interval is honest here; `reason` is one of this module's constants."""

    reason: str


IntervalOrReason = Interval | NoInterval
