"""A measured value as tables write it and as charts draw it."""

from __future__ import annotations

from dataclasses import dataclass

from fairgate.domain.measurements import Measurement
from fairgate.reports import figures

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A value with its interval; both None, and dashes, where nothing is known."""

    shown: str = figures.NONE
    interval: str = figures.NONE
    value: float | None = None
    bounds: Bounds | None = None


def figure(measured: Measurement | None, *, signless: bool = False) -> Figure:
    """Return a measurement as a figure; `signless` leaves the per cent sign to the heading."""
    if measured is None or measured.value is None:
        return Figure()
    write = figures.unsigned if signless else figures.value
    return Figure(
        shown=write(measured.value, measured.metric),
        interval=figures.interval(measured.interval, measured.metric),
        value=measured.value,
        bounds=measured.interval,
    )
