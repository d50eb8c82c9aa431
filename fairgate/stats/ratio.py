"""Interval of a ratio of two clustered contrasts (a part of a rate over the whole rate).

E. C. Fieller, "Some problems in interval estimation", J. R. Statist. Soc. B 16 (1954) 175-185: the
ratios q for which `numerator - q * denominator` is not distinguishable from 0. It assumes no
normal ratio and shows when there is none: where the denominator is not distinguishable from 0, no q
is excluded.
Variances are cluster-robust as in `t_interval`.
"""

from __future__ import annotations

import math

import numpy as np

from fairgate.stats.interval import NOTHING_DECIDED, TOO_FEW_CLUSTERS, Interval, NoInterval
from fairgate.stats.observations import ClusterTotals
from fairgate.stats.student_t import t_quantile
from fairgate.stats.t_interval import contrast, influence, n_filled

NOT_FROM_ZERO = "the whole cannot be distinguished from 0"


def ratio_interval(
    part: ClusterTotals, whole: ClusterTotals, *, confidence: float
) -> Interval | NoInterval:
    """Return Fieller's interval of part / whole; both over the same clusters and arms.

    A ratio without variation gives an interval of width 0. Deterministic, O(G).
    """
    if not whole.counts.any(axis=0).all():
        return NoInterval(reason=NOTHING_DECIDED)
    clusters = n_filled(whole)
    if clusters < 2:
        return NoInterval(reason=TOO_FEW_CLUSTERS)
    numerator, denominator = contrast(part), contrast(whole)
    changes = np.stack([influence(part), influence(whole)])
    covariance = changes @ changes.T * clusters / (clusters - 1)
    square = t_quantile(0.5 + confidence / 2, clusters - 1) ** 2
    # a q^2 - 2 b q + c <= 0
    a = denominator**2 - square * float(covariance[1, 1])
    b = numerator * denominator - square * float(covariance[0, 1])
    c = numerator**2 - square * float(covariance[0, 0])
    if a <= 1e-12 * denominator**2 or not denominator:
        return NoInterval(reason=NOT_FROM_ZERO)
    root = math.sqrt(max(0.0, b * b - a * c))
    return Interval(low=(b - root) / a, high=(b + root) / a, method="Fieller")
