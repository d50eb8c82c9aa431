"""Diff-Bias by category and setting, with intervals and beside the baseline's, for the chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairgate.domain.measurements import Measurement
from fairgate.reports.bias_view import BiasGroup, BiasPoint
from fairgate.reports.escaping import name
from fairgate.reports.measured import Figure, figure

Measured = Mapping[tuple[str, tuple[tuple[str, str], ...]], Measurement]
CONDITIONS = (
    ("ambiguous", "diff-bias/ambiguous"),
    ("disambiguated", "diff-bias/disambiguated"),
)


def bias_groups(
    now: Measured, base: Measured, settings: Sequence[str], categories: Sequence[str]
) -> list[BiasGroup]:
    """Return everything together, then each category where there are several."""
    shown = categories if len(categories) > 1 else ()
    return [
        BiasGroup(
            category=name(category),
            points=[
                BiasPoint(
                    setting=name(setting),
                    now=_pair(now, setting, category),
                    base=_pair(base, setting, category),
                )
                for setting in settings
            ],
        )
        for category in ("", *shown)
    ]


def _pair(measured: Measured, setting: str, category: str) -> tuple[Figure, Figure]:
    where = {"setting": setting} | ({"category": category} if category else {})
    at = tuple(sorted(where.items()))
    ambiguous, disambiguated = (
        figure(measured.get((metric, at)), signless=True) for _, metric in CONDITIONS
    )
    return ambiguous, disambiguated
