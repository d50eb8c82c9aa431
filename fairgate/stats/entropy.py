"""Instability of repeated answers: Shannon entropy of the labels, and stability of verdicts.

C. E. Shannon, Bell System Technical Journal 27 (1948) 379-423: `H = -sum p log2 p`, in bits: 0
where every repeat gave the same label, 1 for two labels half and half.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence


def entropy(labels: Iterable[Hashable]) -> float:
    """Return the entropy in bits of the observed labels; NaN for none. Order does not matter."""
    counts = sorted(Counter(labels).values())
    total = sum(counts)
    if not total:
        return math.nan
    if len(counts) == 1:
        return 0.0
    return -math.fsum(count / total * math.log2(count / total) for count in counts)


def stability(repeats_of_cases: Iterable[Sequence[Hashable]]) -> float:
    """Return the share of cases whose repeats all agree; NaN for no case.

    A case without any repeat is left out.
    """
    known = [len(set(repeats)) == 1 for repeats in repeats_of_cases if repeats]
    return sum(known) / len(known) if known else math.nan
