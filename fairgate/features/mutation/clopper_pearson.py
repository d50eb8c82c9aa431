"""Exact interval for a share of independent trials.

C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case
of the binomial", Biometrika 26 (1934) 404-413. For shares of simulated runs, which are few: it
covers at least its confidence for every number of trials.
"""

from __future__ import annotations

from fairgate.stats.interval import NOTHING_DECIDED, Interval, IntervalOrReason, NoInterval


def clopper_pearson(count: int, trials: int, *, confidence: float) -> IntervalOrReason:
    """Return the two-sided interval of `count` of `trials`, in [0, 1]; none for no trials."""
    from scipy.special import betaincinv

    if not trials:
        return NoInterval(reason=NOTHING_DECIDED)
    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, trials - count + 1, tail))
    high = 1.0 if count == trials else float(betaincinv(count + 1, trials - count, 1 - tail))
    return Interval(low=low, high=high, method="clopper-pearson")
