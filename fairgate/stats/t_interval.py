"""Cluster-robust t interval with G - 1 degrees of freedom, for few clusters.

Linearised (sandwich) variance of a ratio with the small-sample factor G / (G - 1): K.-Y. Liang and
S. L. Zeger, Biometrika 73 (1986) 13-22; G - 1 degrees of freedom: C. Hansen, J. Econometrics 141
(2007) 597-620; A. C. Cameron and D. L. Miller, J. Human Resources 50 (2015) 317-372, section VI.
"""

from __future__ import annotations

import math

import numpy as np

from fairgate.stats.interval import (
    NO_VARIATION,
    NOTHING_DECIDED,
    TOO_FEW_CLUSTERS,
    Interval,
    IntervalOrReason,
    NoInterval,
)
from fairgate.stats.observations import ClusterTotals, Floats
from fairgate.stats.student_t import t_quantile


def influence(totals: ClusterTotals) -> Floats:
    """Return [G] what each cluster adds to the estimate beyond its expectation; sums to 0."""
    counts = totals.counts.sum(axis=0)
    means = totals.sums.sum(axis=0) / counts
    return np.asarray(
        ((totals.sums - totals.counts * means) * (totals.weights / counts)).sum(axis=1),
        dtype=np.float64,
    )


def n_filled(totals: ClusterTotals) -> int:
    """Count the clusters that have a decided case."""
    return int(np.count_nonzero(totals.counts.any(axis=1)))


def standard_error(totals: ClusterTotals) -> float:
    """Return the cluster-robust standard error of the contrast; NaN for fewer than 2 clusters."""
    clusters = n_filled(totals)
    if clusters < 2 or not totals.counts.any(axis=0).all():
        return float("nan")
    # fsum: the same to the last bit whatever the order of the clusters.
    square = math.fsum(np.square(influence(totals)).tolist())
    return math.sqrt(clusters / (clusters - 1) * square)


def contrast(totals: ClusterTotals) -> float:
    """Return the estimate from cluster totals; NaN if an arm has no decided case."""
    counts = totals.counts.sum(axis=0)
    if not counts.all():
        return float("nan")
    return float(np.dot(totals.weights, totals.sums.sum(axis=0) / counts))


def t_interval(totals: ClusterTotals, *, confidence: float) -> IntervalOrReason:
    """Return estimate ± t_{G-1} * cluster-robust standard error."""
    if not totals.counts.any(axis=0).all():
        return NoInterval(reason=NOTHING_DECIDED)
    clusters = n_filled(totals)
    if clusters < 2:
        return NoInterval(reason=TOO_FEW_CLUSTERS)
    error = standard_error(totals)
    if not error:
        return NoInterval(reason=NO_VARIATION)
    reach = t_quantile(0.5 + confidence / 2, clusters - 1) * error
    centre = contrast(totals)
    return Interval(low=centre - reach, high=centre + reach, method="t")
