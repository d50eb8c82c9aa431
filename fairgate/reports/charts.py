"""Where the marks of the charts stand, in per cent of a track; templates draw them.

Every chart is a picture beside figures that say the same in a table, so that nobody needs the
picture. Tracks stretch to whatever room there is, on a phone too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.reports.bias_view import BiasGroup, BiasPoint, BiasView
from fairgate.reports.cause_view import CauseView, PartRow
from fairgate.reports.measured import Bounds, Figure
from fairgate.reports.scales import Scale, scale
from fairgate.reports.trend_view import TrendGroup, TrendRow
from fairgate.reports.view import SliceRow, SuiteView

_BINS = 30
_HEADROOM = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One line of a chart: positions from 0 (left) to 100 (right); None is not drawn."""

    value: float | None
    low: float | None = None
    high: float | None = None
    base: float | None = None
    base_low: float | None = None
    base_high: float | None = None
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


def slice_groups(suite: SuiteView) -> tuple[list[Group], Track, Scale]:
    """Return the rows of a suite by category, neutral wording's track, and their common scale."""
    rows = [*suite.terms, *suite.categories]
    shared = scale(
        (
            *(row.value for row in rows),
            *_ends([*(row.bounds for row in rows), suite.neutral_bounds]),
            *(row.base_value for row in rows),
            suite.neutral_value,
        ),
        unit=" %",
    )
    groups = [
        Group(
            category=category,
            track=_slice(category, suite, shared),
            terms=[
                (row, _slice(row, suite, shared))
                for row in suite.terms
                if row.category == category.category
            ],
        )
        for category in suite.categories
    ]
    if not groups and suite.terms:
        terms = [(row, _slice(row, suite, shared)) for row in suite.terms]
        groups = [Group(category=None, track=None, terms=terms)]
    neutral = _track(shared, suite.neutral_value, suite.neutral_bounds)
    return groups, neutral, shared


def trend_rows(group: TrendGroup) -> tuple[list[tuple[TrendRow, Track]], Scale]:
    """Return the rows of a trend with their tracks, and their common scale."""
    shared = scale(
        _of_figures([row.base for row in group.rows] + [row.now for row in group.rows]),
        both_sides=group.both_sides,
        factor=group.factor,
        unit=" %" if group.factor != 1 and not group.both_sides else "",
    )
    return [(row, _two(shared, row.now, row.base)) for row in group.rows], shared


def bias_rows(
    bias: BiasView,
) -> tuple[list[tuple[BiasGroup, list[tuple[BiasPoint, list[Track]]]]], Scale]:
    """Return Diff-Bias by category and setting with a track for each condition, and their scale."""
    points = [point for group in bias.groups for point in group.points]
    shared = scale(
        _of_figures([one for point in points for one in (*point.now, *point.base)]),
        both_sides=True,
    )
    return [
        (
            group,
            [
                (
                    point,
                    [
                        _two(shared, now, base)
                        for now, base in zip(point.now, point.base, strict=True)
                    ],
                )
                for point in group.points
            ],
        )
        for group in bias.groups
    ], shared


def part_rows(cause: CauseView) -> tuple[list[tuple[PartRow, Track]], Scale]:
    """Return the paths with their tracks, to both sides of 0."""
    shared = scale(_of_figures([part.measured for part in cause.parts]), both_sides=True)
    nothing = Figure()
    return [(part, _two(shared, part.measured, nothing)) for part in cause.parts], shared


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


def _slice(row: SliceRow, suite: SuiteView, shared: Scale) -> Track:
    return _track(shared, row.value, row.bounds, base=row.base_value, neutral=suite.neutral_value)


def _two(shared: Scale, now: Figure, base: Figure) -> Track:
    return _track(shared, now.value, now.bounds, base=base.value, base_bounds=base.bounds)


def _track(
    shared: Scale,
    value: float | None,
    bounds: Bounds | None,
    *,
    base: float | None = None,
    base_bounds: Bounds | None = None,
    neutral: float | None = None,
) -> Track:
    low, high = bounds or (None, None)
    base_low, base_high = base_bounds or (None, None)
    return Track(
        value=shared.position(value),
        low=shared.position(low),
        high=shared.position(high),
        base=shared.position(base),
        base_low=shared.position(base_low),
        base_high=shared.position(base_high),
        neutral=shared.position(neutral),
    )


def _of_figures(shown: Sequence[Figure]) -> list[float | None]:
    return [*(one.value for one in shown), *_ends([one.bounds for one in shown])]


def _ends(intervals: Sequence[Bounds | None]) -> list[float | None]:
    return [end for interval in intervals if interval is not None for end in interval]
