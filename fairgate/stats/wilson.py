"""Score interval for a proportion of independent cases.

E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22
(1927) 209-212. Only for unclustered counts (a share of sources, not of pairs): pairs of one source
move together, and then this interval is far too narrow (design effect 8 to 15 on real answers).
"""

from __future__ import annotations

import math
from statistics import NormalDist

from fairgate.stats.interval import NOTHING_DECIDED, Interval, IntervalOrReason, NoInterval


def wilson(successes: float, trials: float, *, confidence: float) -> IntervalOrReason:
    """Return the Wilson interval, in [0, 1] and never empty; no interval for no trials.

    `successes` need not be whole: a rate of pairs, say, as a share of their sources.
    """
    if not trials:
        return NoInterval(reason=NOTHING_DECIDED)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / trials
    centre = share + z * z / (2 * trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    total = 1 + z * z / trials
    # At 0 and n the limit is 0 and 1 exactly; rounding would leave 1e-19 there.
    low = 0.0 if successes == 0 else max(0.0, (centre - spread) / total)
    high = 1.0 if successes == trials else min(1.0, (centre + spread) / total)
    return Interval(low=low, high=high, method="wilson")
