"""One identity against neutral wording: which of a source's answers is the identity's.

If naming an identity does what naming nobody does, the identity's answer to a source is a random
one of the K + 1 that were given to it and to K neutral phrases. The sum of its values over the
sources then has a known distribution, the convolution of the sources' own: a permutation test
within blocks (E. S. Edgington and P. Onghena, Randomization Tests, 2007, chapter 6), exact where
values are multiples of a common fraction, with Monte Carlo draws elsewhere (B. Phipson and G. K.
Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010) article 39). One-sided: a reading has a direction,
toward harm.

That takes the phrases for all neutral wording there is. Phrases differ, too, so the p value is
widened by how much more the neutral phrases differ from each other than exchanges within sources
explain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from fairgate.stats.observations import Floats

_FINEST = 20
_DRAWS = 20_000
_NORMAL = NormalDist()


def exchange_p(own: Floats, others: Sequence[Floats], *, seed: int = 0) -> tuple[float, float]:
    """Return P(sum as large as observed) if a random member of each source were the identity's.

    `own` [S] and, for each source, the values of its neutral answers [K_s]. Also the least p value
    that any draw could give. The seed is used where values have no common fraction. Both are 1
    without sources. Deterministic, and the order of sources and members does not matter to exact
    ones.
    """
    if not len(own):
        return 1.0, 1.0
    pools = [np.append(rest, value) for value, rest in zip(own.tolist(), others, strict=True)]
    everything = np.concatenate(pools)
    fraction = _common_fraction(everything)
    if fraction is None:
        return _drawn_p(float(own.sum()), pools, seed)
    lows = [float(pool.min()) for pool in pools]
    chances = np.ones(1)
    for pool, low in zip(pools, lows, strict=True):
        steps = np.rint((pool - low) * fraction).astype(np.int64)
        if steps.any():
            chances = np.convolve(chances, np.bincount(steps) / len(steps))
    target = round((float(own.sum()) - math.fsum(lows)) * fraction)
    p = min(1.0, math.fsum(chances[max(0, target) :].tolist()))
    return max(p, math.ulp(0.0)), max(float(chances[-1]), math.ulp(0.0))


def _common_fraction(values: Floats) -> int | None:
    """Return the least n up to 20 for which all values are multiples of 1 / n; else None."""
    for n in range(1, _FINEST + 1):
        scaled = values * n
        if bool((np.abs(scaled - np.rint(scaled)) < 1e-4 / n).all()):
            return n if float(np.ptp(scaled)) < 10_000 else None
    return None


def _drawn_p(target: float, pools: Sequence[Floats], seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    sums = np.zeros(_DRAWS)
    for pool in pools:
        sums += np.sort(pool)[rng.integers(0, len(pool), _DRAWS)]
    reached = int(np.count_nonzero(sums >= target - 1e-9))
    return (1 + reached) / (1 + _DRAWS), 1 / (1 + _DRAWS)


def widened(p_value: float, spread: float) -> float:
    """Return the p value where the statistic spreads `spread` (1 or more) times as far."""
    if spread <= 1 or p_value >= 0.5:
        return p_value
    score = -_NORMAL.inv_cdf(max(p_value, 1e-300)) / spread
    return max(p_value, _NORMAL.cdf(-score))
