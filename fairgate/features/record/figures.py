"""Figures as every part of a record prints them."""

from __future__ import annotations

from collections.abc import Mapping

from fairgate.domain.wording import MINUS, in_own_unit
from fairgate.features.record.model import Unit

_LEAST_TENTH = 0.05
"""Points that a tenth still shows; smaller ones have one digit."""


def size_text(value: float | None, unit: Unit, digits: int = 3) -> str:
    """Return a figure as every part of a record prints it: points to a tenth, else 3 digits.

    Means of scores have one digit more, so that their difference has 3 of its own.
    """
    if value is None:
        return "not known"
    if unit != "points":
        text = in_own_unit(value, digits)
    else:
        is_tenth = abs(100 * value) >= _LEAST_TENTH or not value
        text = f"{100 * value:.1f}" if is_tenth else f"{100 * value:.1g}"
    return text.removeprefix("-") if not text.strip("-0.") else text.replace("-", MINUS)


def sizes_text(sizes: Mapping[str, float], unit: Unit) -> str:
    """Return named figures on one line."""
    return ", ".join(f"{name} {size_text(size, unit)}" for name, size in sizes.items()) or "none"


def span_text(ends: tuple[float, float] | None, unit: Unit, why: str = "not known") -> str:
    """Return a range, and in words why it has no width."""
    if ends is None:
        return why
    low, high = (size_text(end, unit) for end in ends)
    if low != high:
        return f"{low} to {high}"
    same = "narrower than it is rounded"
    if ends[0] == ends[1]:
        same = "no width: nothing differed in any of these sources" if not ends[0] else (
            "no width: all of these sources differ alike"
        )  # fmt: skip
    return f"{low} to {high}, {same}"
