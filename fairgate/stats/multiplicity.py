"""The correction for several tests at once: Holm's, of the chance of any error.

S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979)
65-70: the chance of any false rejection stays at alpha, whatever the dependence. Weights are his
own (section 4): whatever they are, as long as no p value decides them, the guarantee is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairgate.domain.errors import DataError
from fairgate.stats.observations import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """One test of a family: adjusted p, the level its own p is compared with, and the verdict.

    `rejected`, `adjusted_p <= alpha` and `p <= level` are equivalent.
    """

    p_value: float
    adjusted_p: float
    level: float
    rejected: bool


def uncorrected(p_values: Sequence[float], *, alpha: float) -> list[Corrected]:
    """Return every test compared with `alpha` itself."""
    return [
        Corrected(p_value=p, adjusted_p=p, level=alpha, rejected=p <= alpha)
        for p in _checked(p_values).tolist()
    ]


def holm(
    p_values: Sequence[float], *, alpha: float, weights: Sequence[float] | None = None
) -> list[Corrected]:
    """Return the tests in the given order, corrected step by step from the smallest p by weight.

    A test that the steps do not reach is compared with its part of the level at which they stopped.
    `weights` (above 0; default: all 1) say how the level is shared out among the tests.
    """
    shares = np.ones(len(p_values)) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (len(p_values),) or not (shares > 0).all():
        raise DataError(f"{len(p_values)} p values need as many weights above 0, not {weights!r}")
    return _stepwise(_checked(p_values), alpha, shares)


def _checked(p_values: Sequence[float]) -> Floats:
    values = np.asarray(p_values, dtype=np.float64)
    wrong = ~((values >= 0) & (values <= 1))  # NaN too
    if wrong.any():
        position = int(np.argmax(wrong))
        raise DataError(
            f"p value number {position + 1} of the family is {float(values[position])!r}; "
            "expected a number from 0 to 1: leave rules that were not evaluated out of the family"
        )
    return values


def _stepwise(p_values: Floats, alpha: float, weights: Floats) -> list[Corrected]:
    size = len(p_values)
    order = np.argsort(p_values / weights, kind="stable")
    ordered, own = p_values[order], weights[order]
    left = np.cumsum(own[::-1])[::-1]
    adjusted = np.minimum(np.maximum.accumulate(ordered * left / own), 1.0)
    # The first p above its own level stops the steps, for itself and all larger ones.
    rejected = np.logical_and.accumulate(ordered <= alpha * own / left)
    steps = np.minimum(np.arange(size), int(rejected.sum()))
    levels = alpha * own / left[np.minimum(steps, size - 1)]
    # Rounding in a product may not contradict the comparison that was made.
    levels = np.where(rejected | (ordered > levels), levels, np.nextafter(ordered, 0.0))
    above = np.nextafter(alpha, np.inf)
    adjusted = np.where(rejected, np.minimum(adjusted, alpha), np.maximum(adjusted, above))
    results: list[Corrected | None] = [None] * size
    for place, position in enumerate(order.tolist()):
        results[position] = Corrected(
            p_value=float(ordered[place]),
            adjusted_p=float(adjusted[place]),
            level=float(levels[place]),
            rejected=bool(rejected[place]),
        )
    return [result for result in results if result is not None]
