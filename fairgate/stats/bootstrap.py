"""Clustered bootstrap intervals (BCa, expanded for few clusters), many slices at once.

B. Efron, "Better bootstrap confidence intervals", JASA 82 (1987) 171-185; whole clusters are
resampled (A. C. Davison and D. V. Hinkley, Bootstrap Methods and their Application, 1997, section
3.8); levels expanded by t quantiles for few clusters (T. C. Hesterberg, The American Statistician
69 (2015) 371-386, section 5.2), because plain BCa is too short at 20 clusters. Intervals describe;
they never decide.

A resample is a row of counts, one for each cluster, so that all slices with the same number of
clusters share one matrix of counts and the whole batch is one matrix product.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from fairgate.stats.interval import (
    NO_VARIATION,
    NOTHING_DECIDED,
    TOO_FEW_CLUSTERS,
    Interval,
    IntervalOrReason,
    NoInterval,
    n_filled,
    t_interval,
    t_quantile,
)
from fairgate.stats.observations import ClusterTotals, Floats, Integers

_CELLS_AT_A_TIME = 300_000
_FEW = 16
"""Runs of equal clusters that are each counted as one; where there are more, none is."""
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapSettings:
    """How intervals are made; the defaults are those that the calibration tables were made with.

    Fewer than `min_clusters` clusters with a violation (or with anything but a violation) give
    "too few clusters"; below `cautious_below` the interval is joined with Student's, within what
    was resampled: a sample that only just has enough has more violations than is typical for its
    system. `expanded` widens the levels for few clusters.
    """

    confidence: float = 0.95
    n_resamples: int = 2000
    min_clusters: int = 10
    cautious_below: int = 15
    expanded: bool = True


def bootstrap_many(
    slices: Sequence[ClusterTotals], settings: BootstrapSettings, *, seed: int
) -> list[IntervalOrReason]:
    """Return an interval for each slice, the same whatever other slices are in the batch.

    Sums are put on a binary grid on which every product is exact, so that the result depends on
    neither threads nor the shape of the matrix product. Time O(resamples * clusters * slices).
    """
    results: list[IntervalOrReason] = [NoInterval(reason=NOTHING_DECIDED)] * len(slices)
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for position, totals in enumerate(slices):
        if totals.counts.any(axis=0).all():
            if totals.informative < max(2, settings.min_clusters):
                results[position] = NoInterval(reason=TOO_FEW_CLUSTERS)
            else:
                groups[n_filled(totals)].append(position)
    for n_clusters, members in groups.items():
        batch, sums, counts = _ordered([slices[position] for position in members], n_clusters)
        rng = np.random.default_rng([seed, n_clusters])
        replicates = _replicates(batch, sums, counts, settings, rng)
        for position, item, values in zip(members, batch, replicates, strict=True):
            interval = results[position] = _bca(item, values, settings)
            if slices[position].informative < settings.cautious_below:
                student = t_interval(slices[position], confidence=settings.confidence)
                if isinstance(interval, Interval) and isinstance(student, Interval):
                    results[position] = Interval(
                        low=min(interval.low, max(student.low, float(np.nanmin(values)))),
                        high=max(interval.high, min(student.high, float(np.nanmax(values)))),
                    )
    return results


def _ordered(
    slices: Sequence[ClusterTotals], n_clusters: int
) -> tuple[list[ClusterTotals], Floats, Floats]:
    """Return each slice's clusters that have a case, their sums on a grid, and all in matrices.

    The slices are columns of the matrices of sums and counts [G, sum of A], not copies of them:
    thousands of clusters in hundreds of slices take memory.
    """
    edges = _edges(slices)
    sums, counts = np.empty((n_clusters, edges[-1])), np.empty((n_clusters, edges[-1]))
    batch = []
    for totals, low, high in zip(slices, edges[:-1], edges[1:], strict=True):
        item = replace(totals, sums=sums[:, low:high], counts=counts[:, low:high])
        item.sums[...], item.counts[...] = _on_grid(totals)
        batch.append(item)
    return batch, sums, counts


def _edges(slices: Sequence[ClusterTotals]) -> list[int]:
    """Return where each slice's columns begin in a matrix of all, and where the last one ends."""
    return [0, *accumulate(len(item.weights) for item in slices)]


def _on_grid(totals: ClusterTotals) -> tuple[Floats, Floats]:
    """Return sums and counts of the clusters that have a case; adding up the sums is exact."""
    filled = np.flatnonzero(totals.counts.any(axis=1))
    sums, counts = totals.sums[filled], totals.counts[filled]
    # In an order of their own, so that the order of the sources does not matter.
    order = np.lexsort((*counts.T, *sums.T))
    largest = float(np.abs(sums).max()) * len(sums)
    # Integers below 2**53 on this grid: every partial sum of a resample is exact.
    grid = 2.0 ** (51 - math.ceil(math.log2(largest))) if largest else 1.0
    return np.rint(sums[order] * grid) / grid, counts[order]


def _contrast(item: ClusterTotals, sums: Floats, counts: Floats) -> Floats:
    """Return [...] the estimate from sums and counts [..., A]; NaN where an arm is empty."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where(counts > 0, sums / counts, np.nan)
    return np.asarray((ratios * item.weights).sum(axis=-1), dtype=np.float64)


def resamples(
    n_clusters: int, n_resamples: int, rng: np.random.Generator
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield blocks [b, G] of the clusters that are drawn."""
    block = max(1, _CELLS_AT_A_TIME // n_clusters)
    for start in range(0, n_resamples, block):
        rows = min(block, n_resamples - start)
        yield rng.integers(0, n_clusters, size=(rows, n_clusters))


def _times(draws: npt.NDArray[np.int64], starts: Integers) -> Floats:
    """Return [b, runs] how often a cluster of each run is drawn; runs begin at `starts`, from 0."""
    n_clusters = draws.shape[1]
    if len(starts) == n_clusters:
        draws += np.arange(len(draws))[:, None] * n_clusters
        times = np.bincount(draws.ravel(), minlength=draws.size)
        return times.reshape(draws.shape).astype(np.float64)
    beyond = [np.count_nonzero(draws >= start, axis=1) for start in starts[1:].tolist()]
    ends = np.stack([np.full(len(draws), n_clusters), *beyond, np.zeros(len(draws), int)])
    return np.asarray(-np.diff(ends, axis=0).T, dtype=np.float64)


def _replicates(
    batch: Sequence[ClusterTotals],
    sums: Floats,
    counts: Floats,
    settings: BootstrapSettings,
    rng: np.random.Generator,
) -> list[Floats]:
    edges, n_clusters = _edges(batch), len(sums)
    parts: list[list[Floats]] = [[] for _ in batch]
    # Each slice's clusters are in order, so that equal ones follow each other.
    changes = (np.diff(sums, axis=0) != 0).any(axis=1) | (np.diff(counts, axis=0) != 0).any(axis=1)
    starts = np.flatnonzero(np.append(True, changes))
    if len(starts) > _FEW:
        starts = np.arange(n_clusters)
    sums, counts = sums[starts], counts[starts]
    for draws in resamples(n_clusters, settings.n_resamples, rng):
        times = _times(draws, starts)
        drawn_sums, drawn_counts = times @ sums, times @ counts
        for item, part, low, high in zip(batch, parts, edges[:-1], edges[1:], strict=True):
            part.append(_contrast(item, drawn_sums[:, low:high], drawn_counts[:, low:high]))
    return [np.concatenate(part) for part in parts]


def _bca(item: ClusterTotals, replicates: Floats, settings: BootstrapSettings) -> IntervalOrReason:
    n_clusters = len(item.sums)
    sums, counts = item.sums.sum(axis=0), item.counts.sum(axis=0)
    estimate = float(_contrast(item, sums, counts))
    ordered = np.sort(replicates[~np.isnan(replicates)])
    if not len(ordered) or ordered[0] == ordered[-1]:
        return NoInterval(reason=NO_VARIATION)
    n = len(ordered)
    # Discrete replicates tie with the estimate often: half of the ties count as below.
    below = (ordered.searchsorted(estimate) + ordered.searchsorted(estimate, side="right")) / 2
    without_each = _contrast(item, sums - item.sums, counts - item.counts)
    without_each = without_each[~np.isnan(without_each)]
    gaps = without_each.mean() - without_each
    spread = float(np.square(gaps).sum())
    level = 0.5 + settings.confidence / 2
    z = _NORMAL.inv_cdf(level)
    if settings.expanded:
        z = math.sqrt(n_clusters / (n_clusters - 1)) * t_quantile(level, n_clusters - 1)
    levels = bca_levels(
        bias=_NORMAL.inv_cdf(min(max(float(below) / n, 0.5 / n), 1 - 0.5 / n)),
        acceleration=float((gaps**3).sum()) / (6 * spread**1.5) if spread else 0.0,
        z=z,
    )
    low, high = np.interp(np.array(levels) * (n - 1), np.arange(n), ordered).tolist()
    return Interval(low=low, high=high)


def bca_levels(*, bias: float, acceleration: float, z: float) -> tuple[float, float]:
    """Return the two quantile levels that BCa reads instead of Φ(-z) and Φ(z), in order."""

    def level(quantile: float) -> float:
        shifted = bias + quantile
        # Past the pole of the map the level has run to its end.
        room = 1 - acceleration * shifted
        if room <= 0:
            return 1.0 if quantile > 0 else 0.0
        return _NORMAL.cdf(bias + shifted / room)

    return level(-z), level(z)
