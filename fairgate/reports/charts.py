"""Where the marks of the charts stand, in per cent of a track; templates draw them.

Every chart is a picture beside figures that say the same in a table, so that nobody needs the
picture. Tracks stretch to whatever room there is, on a phone too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.reports.view import RuleRow, SliceRow, SuiteView

_TICKS = 4
_BINS = 30
_HEADROOM = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One line of a chart: positions from 0 (left) to 100 (right); None is not drawn."""

    value: float | None
    low: float | None = None
    high: float | None = None
    base: float | None = None
    neutral: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A category's row and the rows of its terms, worst first."""

    category: SliceRow | None
    track: Track | None
    terms: Sequence[tuple[SliceRow, Track]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """RRS of the demographic pairs: bars of (left, width, height, band) in per cent.

    The first bar stands for scores of exactly 0 alone, the others for equal steps above 0.
    """

    bars: Sequence[tuple[float, float, float, int]]
    limits: Sequence[tuple[float, str]]
    """Where the bands end, and at which score."""
    top: str
    """The score at the right edge."""
    highest: int
    """Pairs in the highest bar."""


def slice_groups(suite: SuiteView) -> tuple[list[Group], list[tuple[float, str]]]:
    """Return the rows of a suite by category, and the ticks of their common scale."""
    rows = [*suite.terms, *suite.categories]
    full = _full(
        [row.value for row in rows]
        + [row.bounds[1] for row in rows if row.bounds]
        + [row.base_value for row in rows]
        + [suite.neutral_value]
    )
    groups = [
        Group(
            category=category,
            track=_track(category, suite, full),
            terms=[
                (row, _track(row, suite, full))
                for row in suite.terms
                if row.category == category.category
            ],
        )
        for category in suite.categories
    ]
    if not groups and suite.terms:
        terms = [(row, _track(row, suite, full)) for row in suite.terms]
        groups = [Group(category=None, track=None, terms=terms)]
    return groups, ticks(full)


def _track(row: SliceRow, suite: SuiteView, full: float) -> Track:
    low, high = row.bounds or (None, None)
    return Track(
        value=_position(row.value, full),
        low=_position(low, full),
        high=_position(high, full),
        base=_position(row.base_value, full),
        neutral=_position(suite.neutral_value, full),
    )


def rule_track(row: RuleRow) -> Track | None:
    """Return how a rule moved from the baseline to now, on a scale of its own from 0."""
    if row.now_value is None or row.base_value is None or min(row.now_value, row.base_value) < 0:
        return None
    full = _full([row.now_value, row.base_value])
    return Track(value=_position(row.now_value, full), base=_position(row.base_value, full))


def histogram(suite: SuiteView) -> Histogram | None:
    """Return the distribution of RRS; None where no pair has a score."""
    if not suite.scores:
        return None
    top = max(suite.limits[1] * 1.25, suite.scores[-1] * _HEADROOM)
    width = 100 / (_BINS + 1)
    counts = [0] * (_BINS + 1)
    for score in suite.scores:
        counts[0 if score == 0 else 1 + min(_BINS - 1, int(score / top * _BINS))] += 1
    highest = max(counts)
    edges = (0.0, *suite.limits)
    return Histogram(
        bars=[
            (
                round(number * width, 2),
                round(0.9 * width, 2),
                round(100 * count / highest, 2),
                sum((number - 0.5) * top / _BINS > edge for edge in edges),
            )
            for number, count in enumerate(counts)
            if count
        ],
        limits=[
            (round(width + (100 - width) * limit / top, 2), f"{limit:g}") for limit in suite.limits
        ],
        top=f"{top:.2f}",
        highest=highest,
    )


def ticks(full: float) -> list[tuple[float, str]]:
    """Return (position, label) of round values from 0 to `full`, a fraction."""
    step = _round_step(100 * full / _TICKS)
    marks, value = [], 0.0
    while value <= 100 * full + 1e-9:
        marks.append((round(value / full, 2), f"{value:g}"))
        value = round(value + step, 6)
    return marks


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step)


def _full(values: Sequence[float | None]) -> float:
    known = [abs(value) for value in values if value is not None and math.isfinite(value)]
    return max([*known, 0.01]) * _HEADROOM


def _position(value: float | None, full: float) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return round(100 * min(1.0, max(0.0, value / full)), 2)
