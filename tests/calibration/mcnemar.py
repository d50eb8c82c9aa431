"""Exact McNemar test for pairs that are independent of each other.

Q. McNemar, Psychometrika 12 (1947) 153-157; exact form: a sign test of the discordant pairs. Only
for unclustered data, one pair for each source: 21 pairs of one source flip together, and then it
rejects far too often. The gate uses the source-clustered sign-flip test instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemarTest:
    """p values of "nothing changed" from `worse` and `better` discordant pairs."""

    p_worse: float
    p_two_sided: float


def mcnemar(worse: int, better: int) -> McNemarTest:
    """Return exact p values for `worse` newly violated and `better` newly satisfied pairs."""
    n = worse + better
    return McNemarTest(
        p_worse=_upper_tail(worse, n),
        p_two_sided=min(1.0, 2 * _upper_tail(max(worse, better), n)),
    )


def _upper_tail(successes: int, trials: int) -> float:
    """Return P(Binomial(trials, 1/2) >= successes)."""
    if successes <= 0:
        return 1.0
    logs = [_log_chance(k, trials) for k in range(successes, trials + 1)]
    return min(1.0, math.fsum(math.exp(value) for value in logs))


def _log_chance(successes: int, trials: int) -> float:
    choose = (
        math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(trials - successes + 1)
    )
    return choose - trials * math.log(2)
