"""A metric's value in a slice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a metric is in the slice `where` of a suite; `where` is empty for the whole suite."""

    metric: str
    suite: str
    where: Mapping[str, str] = field(default_factory=dict)
    value: float | None = None
    """Fraction or score; None where nothing was decided or the metric is not evaluated."""
    interval: tuple[float, float] | None = None
    """Cluster-bootstrap interval at the policy's confidence; None says why in `note`."""
    decided: int = 0
    inconclusive: int = 0
    violated: int | None = None
    """Decided pairs that violate the relation; None where the metric counts none."""
    note: str = ""
