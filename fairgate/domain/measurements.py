"""A metric's value in a slice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Slice = tuple[str, str, frozenset[tuple[str, str]]]
"""Metric, suite, and the levels of the dimensions that are named."""


class Better(StrEnum):
    """Which way a metric should go."""

    LOWER = "lower"
    HIGHER = "higher"
    TOWARD_ZERO = "toward-zero"
    """Signed: the smaller in size, the better."""


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


class Measurements:
    """Measurements by metric, suite and slice, in their order; the last of equal slices counts."""

    def __init__(self, measurements: Iterable[Measurement] = ()) -> None:
        """Index the measurements once; O(n)."""
        self._found = {slice_of(m.metric, m.suite, m.where): m for m in measurements}

    def __iter__(self) -> Iterator[Measurement]:
        """Yield the measurements in their order."""
        return iter(self._found.values())

    def get(
        self, metric: str, suite: str, where: Mapping[str, str] | None = None
    ) -> Measurement | None:
        """Return what was measured in exactly this slice; None where nothing was."""
        return self._found.get(slice_of(metric, suite, where or {}))

    def value(
        self, metric: str, suite: str, where: Mapping[str, str] | None = None
    ) -> float | None:
        """Return the value in exactly this slice; None where there is none."""
        found = self.get(metric, suite, where)
        return None if found is None else found.value

    def by(self, metric: str, suite: str, *dimensions: str) -> list[Measurement]:
        """Return the slices of a suite that name exactly these dimensions."""
        return [
            m
            for m in self
            if (m.metric, m.suite) == (metric, suite) and set(m.where) == set(dimensions)
        ]


def slice_of(metric: str, suite: str, where: Mapping[str, str]) -> Slice:
    """Return a slice's identity, whatever the order of its dimensions."""
    return metric, suite, frozenset(where.items())
