"""How well verdicts agree with labels: precision, recall, F1, AUC and Cohen's kappa.

F1 is the harmonic mean of precision and recall. J. Cohen, Educational and Psychological Measurement
20 (1960) 37-46: kappa = (p - e) / (1 - e), with p the share of equal pairs and e what equal margins
alone would give. Intervals are percentiles of a bootstrap over the cases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import SupportsInt

import numpy as np

from fairgate.stats.auc import auc
from fairgate.stats.observations import Flags, Floats

_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Figure:
    """An estimate with its interval; NaN where it is not defined."""

    value: float
    low: float
    high: float


def precision(predicted: Flags, true: Flags) -> float:
    """Return the share of positive verdicts that are right; NaN without a positive verdict."""
    return _share(np.count_nonzero(predicted & true), np.count_nonzero(predicted))


def recall(predicted: Flags, true: Flags) -> float:
    """Return the share of positive cases that are found; NaN without a positive case."""
    return _share(np.count_nonzero(predicted & true), np.count_nonzero(true))


def f1(predicted: Flags, true: Flags) -> float:
    """Return 2 TP / (2 TP + FP + FN); NaN where nothing is positive on either side."""
    return _share(
        2 * np.count_nonzero(predicted & true), np.count_nonzero(predicted) + np.count_nonzero(true)
    )


def kappa(predicted: Flags, true: Flags) -> float:
    """Return Cohen's kappa; NaN where both are constant and equal, so that nothing is by chance."""
    if not len(predicted):
        return float("nan")
    agree = float(np.mean(predicted == true))
    a, b = float(np.mean(predicted)), float(np.mean(true))
    chance = a * b + (1 - a) * (1 - b)
    return (agree - chance) / (1 - chance) if chance < 1 else float("nan")


def figures(
    predicted: Flags, true: Flags, scores: Floats, *, confidence: float, rng: np.random.Generator
) -> dict[str, Figure]:
    """Return the five figures of `n` cases with percentile-bootstrap intervals.

    `predicted`, `true` [n] are verdict and label, `scores` [n] how strongly it is
    positive. Resamples in which a figure is not defined are left out of its interval.
    """
    measures: dict[str, Callable[[Flags, Flags, Floats], float]] = {
        "precision": lambda s, t, _: precision(s, t),
        "recall": lambda s, t, _: recall(s, t),
        "f1": lambda s, t, _: f1(s, t),
        "auc": lambda _, t, x: auc(x, t),
        "kappa": lambda s, t, _: kappa(s, t),
    }
    n = len(predicted)
    drawn = rng.integers(0, n, size=(_RESAMPLES, n)) if n else np.empty((0, 0), dtype=np.int64)
    tail = (1 - confidence) / 2
    found = {}
    for name, measure in measures.items():
        values = np.asarray([measure(predicted[i], true[i], scores[i]) for i in drawn])
        known = values[~np.isnan(values)]
        low, high = (
            (float(np.quantile(known, q)) for q in (tail, 1 - tail))
            if len(known)
            else (float("nan"), float("nan"))
        )
        found[name] = Figure(measure(predicted, true, scores), low, high)
    return found


def _share(part: SupportsInt, whole: SupportsInt) -> float:
    return int(part) / int(whole) if int(whole) else float("nan")
