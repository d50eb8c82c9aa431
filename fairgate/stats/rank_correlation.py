"""Spearman's rank correlation of two rankings that need not have all items in common.

C. Spearman, The American Journal of Psychology 15 (1904) 72-101.
"""

from __future__ import annotations

from collections.abc import Sequence

LEAST_COMMON = 3
"""With fewer items in common a rank correlation means little: of two it is 1 or -1."""


def rank_correlation(left: Sequence[str], right: Sequence[str]) -> float | None:
    """Return Spearman's rho over the items that both rank, re-ranked among themselves.

    In [-1, 1]; None with fewer than three items in common. Items within a ranking are distinct.
    """
    common = [item for item in left if item in set(right)]
    if len(common) < LEAST_COMMON:
        return None
    places = {item: place for place, item in enumerate(i for i in right if i in set(common))}
    # scipy.stats takes a second to import, and only this relation needs it.
    from scipy.stats import spearmanr

    found = spearmanr(range(len(common)), [places[item] for item in common])
    return float(found.statistic)
