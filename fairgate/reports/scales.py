"""A common scale of a chart: where values stand on it, in per cent of its width, and its ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from fairgate.domain.wording import MINUS

_HEADROOM = 1.05
_LEAST = 0.01
"""A scale never ends below this: noise in the last digit is no picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From 0 to `full`, or to both sides of a 0 in the middle."""

    full: float
    both_sides: bool = False
    factor: float = 100.0
    """By which values are multiplied in the labels of ticks."""
    unit: str = ""
    """Follows the last label."""

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return (position, label) of round values, from left to right."""
        span = self.factor * self.full
        step = _round_step(span if self.both_sides else span / 2)
        steps = int(span / step + 1e-9)
        marks = [
            (self._at(step * number / self.factor), _label(step * number))
            for number in range(-steps if self.both_sides else 0, steps + 1)
        ]
        last, label = marks[-1]
        return [*marks[:-1], (last, label + self.unit)]

    def position(self, value: float | None) -> float | None:
        """Return where a value stands; the edge where it lies beyond, None where it is unknown."""
        if value is None or not math.isfinite(value):
            return None
        return min(100.0, max(0.0, self._at(value)))

    def _at(self, value: float) -> float:
        share = value / self.full
        return round(50 + 50 * share if self.both_sides else 100 * share, 2)


def scale(
    values: Iterable[float | None],
    *,
    both_sides: bool = False,
    factor: float = 100.0,
    unit: str = "",
) -> Scale:
    """Return a scale on which all the values fit."""
    known = [abs(value) for value in values if value is not None and math.isfinite(value)]
    full = max([*known, _LEAST]) * _HEADROOM
    return Scale(full=full, both_sides=both_sides, factor=factor, unit=unit)


def _round_step(most: float) -> float:
    """Return the largest of …, 0.5, 1, 2, 5, 10, … that is not above `most`."""
    power = 10.0 ** math.floor(math.log10(most))
    return max(power * factor for factor in (1, 2, 5) if power * factor <= most)


def _label(value: float) -> str:
    return f"{value:.6g}".replace("-", MINUS)
