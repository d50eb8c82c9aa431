"""How strongly values go together: within groups, over repeats, and with a score."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations
from typing import Literal

import numpy as np

from fairgate.stats.observations import Floats, Mask

MOST_COMPARED = 400
"""Different values that are compared with one another: it takes the square of their number."""


def commonest(values: Iterable[str]) -> tuple[str, int, int]:
    """Return the most common value, how often it occurs, and the number of values.

    Of several equally common ones it is the first in alphabetical order; of none, an empty one.
    """
    counts = Counter(values)
    value, count = min(counts.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
    return value, count, counts.total()


def within_groups(answers: Iterable[tuple[str, str]]) -> float | Literal["constant"] | None:
    """Return kappa of `(group, value)` pairs.

    `constant` where all values are equal, so that nothing can agree beyond chance; None where no
    group has two answers, or there is only one group.

    Fleiss' kappa for groups of different sizes: (p - e) / (1 - e), where p is the share of pairs of
    answers of one group that agree, and e the share of all pairs that do. 1 where the group decides
    the answer, about 0 where it is unrelated to it. Source: Fleiss 1971, with pairs drawn without
    replacement, so that chance alone gives 0 in small samples too.
    """
    groups: dict[str, Counter[str]] = {}
    for group, value in answers:
        groups.setdefault(group, Counter())[value] += 1
    overall: Counter[str] = sum(groups.values(), Counter())
    if len(overall) == 1:
        return "constant"
    agreeing = sum(_pairs(count) for group in groups.values() for count in group.values())
    possible = sum(_pairs(group.total()) for group in groups.values())
    if len(groups) < 2 or not possible:
        return None
    chance = sum(_pairs(count) for count in overall.values()) / _pairs(overall.total())
    return (agreeing / possible - chance) / (1 - chance)


def alike_within_groups(
    answers: Iterable[tuple[str, str]], same: Callable[[str, str], bool]
) -> float | None:
    """Return kappa as `within_groups` does, where values may agree without being equal.

    None where it is not defined, all pairs of values agreeing included. Of many different values
    every n-th counts, so that at most `MOST_COMPARED` are compared.
    """
    groups: dict[str, Counter[str]] = {}
    overall: Counter[str] = Counter()
    for group, value in answers:
        groups.setdefault(group, Counter())[value] += 1
        overall[value] += 1
    possible = sum(_pairs(group.total()) for group in groups.values())
    if len(groups) < 2 or not possible:
        return None
    agreeing = sum(_agreeing(group, same) for group in groups.values())
    values_compared = sorted(overall)[:: -(-len(overall) // MOST_COMPARED)]
    drawn = Counter({value: overall[value] for value in values_compared})
    total = _pairs(drawn.total())
    chance = _agreeing(drawn, same) / total if total else 1.0
    return None if chance == 1 else (agreeing / possible - chance) / (1 - chance)


def entropy(labels: Iterable[Hashable]) -> float:
    """Return the entropy in bits of the observed labels; NaN for none. Order does not matter.

    `H = -sum p log2 p`: 0 where every label is the same, 1 for two labels half and half. Source: C.
    E. Shannon, Bell System Technical Journal 27 (1948) 379-423.
    """
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
    agreements = [len(set(repeats)) == 1 for repeats in repeats_of_cases if repeats]
    return sum(agreements) / len(agreements) if agreements else math.nan


def auc(scores: Floats, positive: Mask) -> float:
    """Return P(score of a positive > score of a negative) + P(equal) / 2, in [0, 1].

    NaN without a positive or a negative case. `scores` [n] without NaN. O(n log n).

    The area under the ROC curve is the Mann-Whitney statistic; a tie counts one half. Source: D.
    Bamber, J. Math. Psychology 12 (1975) 387-415.
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


def _agreeing(counts: Counter[str], same: Callable[[str, str], bool]) -> int:
    """Return how many pairs of counted values agree."""
    equal = sum(_pairs(count) for count in counts.values())
    return equal + sum(counts[a] * counts[b] for a, b in combinations(counts, 2) if same(a, b))


def _pairs(number: int) -> int:
    return number * (number - 1) // 2
