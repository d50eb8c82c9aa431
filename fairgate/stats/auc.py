"""Area under the ROC curve from ranks, with ties, and quartiles.

D. Bamber, J. Math. Psychology 12 (1975) 387-415 (the area is the Mann-Whitney statistic; a tie
counts one half). Quartiles interpolate linearly: R. J. Hyndman and Y. Fan, The American
Statistician 50 (1996) 361-365, type 7, which is numpy's default.
"""

from __future__ import annotations

import numpy as np

from fairgate.stats.observations import Flags, Floats


def auc(scores: Floats, positive: Flags) -> float:
    """Return P(score of a positive > score of a negative) + P(equal) / 2, in [0, 1].

    NaN without a positive or a negative case. `scores` [n] without NaN. O(n log n).
    """
    n_positive = int(np.count_nonzero(positive))
    n_negative = len(positive) - n_positive
    if not n_positive or not n_negative:
        return float("nan")
    _, rank_group, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    # Twice the mid-rank of each group is an integer, so the sum is exact.
    last = np.cumsum(sizes)
    twice_mid_rank = 2 * last - sizes + 1
    twice_rank_sum = int(twice_mid_rank[rank_group][positive].sum())
    twice_wins = twice_rank_sum - n_positive * (n_positive + 1)
    return twice_wins / (2 * n_positive * n_negative)


def quartiles(values: Floats) -> tuple[float, float, float]:
    """Return the first quartile, the median and the third quartile; NaN for no values."""
    if not len(values):
        return float("nan"), float("nan"), float("nan")
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return low, middle, high
