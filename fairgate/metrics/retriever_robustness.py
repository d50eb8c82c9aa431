"""Retriever robustness score (RRS): how far the retrieved documents move under a perturbation.

    M_ij = distance(u_i, v_j)    u_i, v_j: unit embeddings of the i-th source and the j-th
                                 follow-up document; Euclidean sqrt(2 - 2 u.v) or cosine 1 - u.v
    MeanDist = mean of M over the optimal one-to-one assignment
    H        = share of ranks i whose labels differ
    RRS      = MeanDist + H, in [0, 3]                          (P1 section 4.3, equations 2-4)

`greedy` takes the smallest remaining distance again and again, as P1's code does; the optimal
assignment is never above it. Values are computed in float64 and rounded to 6 decimals, so that
they do not depend on the order in which pairs are handled.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

import numpy as np
import numpy.typing as npt

from fairgate.domain.outcomes import Better, Subject
from fairgate.metrics.metric import DEMOGRAPHIC, Metric, Table
from fairgate.stats.observations import Floats

BANDS = ("perfectly-stable", "high", "moderate", "low")
PAPER_BANDS = (0.63, 1.31)
_ENUMERATED = 6  # up to 720 assignments are cheaper to enumerate for all pairs at once
_GRAM_LIMIT = 6000
"""Up to this many documents, all inner products are computed once (288 MB)."""
_CHUNK_WITH_GRAM = 1 << 15
_CHUNK = 1 << 8  # the gathered vectors of a chunk stay in the processor's cache


def mean_distances(
    vectors: npt.NDArray[np.float32],
    sources: npt.NDArray[np.int64],
    follow_ups: npt.NDArray[np.int64],
    *,
    distance: str = "euclidean",
    matching: str = "hungarian",
) -> Floats:
    """Return MeanDist `[n]` for pairs of document lists.

    `vectors` `[documents, d]` holds an embedding per document; `sources` and `follow_ups`
    `[n, k]` index into it, in rank order. Embeddings are normalised again in float64, so a
    document is at distance exactly 0 from itself.
    """
    unit = vectors.astype(np.float64)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-30)
    gram = unit @ unit.T if len(unit) <= _GRAM_LIMIT else None
    result = np.empty(len(sources), dtype=np.float64)
    step = _CHUNK if gram is None else _CHUNK_WITH_GRAM
    for start in range(0, len(sources), step):
        rows = slice(start, start + step)
        source_rows, follow_up_rows = sources[rows], follow_ups[rows]
        if gram is None:
            dots = np.matmul(unit[source_rows], unit[follow_up_rows].transpose(0, 2, 1))
        else:
            dots = gram[source_rows[:, :, None], follow_up_rows[:, None, :]]
        costs = 1.0 - dots if distance == "cosine" else np.sqrt(np.maximum(2.0 - 2.0 * dots, 0.0))
        result[rows] = assignment_means(costs, matching=matching)
    return np.asarray(np.round(np.maximum(result, 0.0), 6) + 0.0, dtype=np.float64)


def assignment_means(costs: npt.NDArray[np.float64], *, matching: str = "hungarian") -> Floats:
    """Return the mean cost `[n]` of the chosen one-to-one assignment of each `[k, k]` matrix."""
    count, size, _ = costs.shape
    if matching == "greedy":
        return _greedy(costs)
    if size <= _ENUMERATED:
        best = np.full(count, np.inf)
        columns = [[np.ascontiguousarray(costs[:, i, j]) for j in range(size)] for i in range(size)]
        for order in permutations(range(size)):
            total = columns[0][order[0]].copy()
            for i in range(1, size):
                total += columns[i][order[i]]
            np.minimum(best, total, out=best)
        return np.asarray(best / size, dtype=np.float64)
    from scipy.optimize import linear_sum_assignment

    means = np.empty(count)
    for row, matrix in enumerate(costs):
        means[row] = matrix[linear_sum_assignment(matrix)].mean()
    return means


def _greedy(costs: npt.NDArray[np.float64]) -> Floats:
    count, size, _ = costs.shape
    open_costs = costs.copy()
    total = np.zeros(count)
    every = np.arange(count)
    for _ in range(size):
        row, column = np.divmod(open_costs.reshape(count, -1).argmin(axis=1), size)
        total += open_costs[every, row, column]
        open_costs[every, row, :] = np.inf
        open_costs[every, :, column] = np.inf
    return np.asarray(total / size, dtype=np.float64)


def band_indices(scores: Floats, bands: tuple[float, float]) -> npt.NDArray[np.int64]:
    """Return the position in `BANDS` of each score: 0 | (0, high] | (high, moderate] | above."""
    return np.searchsorted(np.asarray([0.0, *bands]), scores, side="left").astype(np.int64)


def _in_band(table: Table, where: Mapping[str, str]) -> Floats:
    scores = table.values["rrs"]
    inside = band_indices(scores, table.bands) == BANDS.index(where["band"])
    return np.where(np.isnan(scores), np.nan, inside.astype(np.float64))


_PAPER = "Oliveira et al. 2025, section 4.3, RRS"
_MEAN = Metric(
    id="rrs/mean", title="retriever robustness", column="rrs", arms=DEMOGRAPHIC, is_rate=False,
    row_limits=(0.0, 3.0), violations=False, defined_by=_PAPER, is_key_figure=True,
    about=Subject.DOCUMENTS, in_embedding_space=True,
)  # fmt: skip
OVERLAP = Metric(
    id="retrieval/overlap", title="share of documents in common", column="overlap",
    arms=DEMOGRAPHIC, better=Better.HIGHER, violations=False,
    defined_by="FairGate, corpora without labels", is_key_figure=True,
    about=Subject.DOCUMENTS,
)  # fmt: skip
METRICS = (
    _MEAN,
    Metric(
        id="rrs/band", title="share of pairs in the RRS band", column="rrs", arms=DEMOGRAPHIC,
        dimensions=("band", "category", "term"), values=_in_band, violations=False,
        defined_by=_PAPER, in_embedding_space=True, about=Subject.DOCUMENTS,
    ),
    OVERLAP,
    Metric(
        id="retrieval/mean-distance", title="distance between retrieved documents",
        column="mean-distance", arms=DEMOGRAPHIC, is_rate=False, violations=False,
        in_embedding_space=True, about=Subject.DOCUMENTS,
        row_limits=(0.0, 2.0),  # unit vectors are at most 2 apart, by either distance
        defined_by="Oliveira et al. 2025, section 4.3, MeanDist",
    ),
)  # fmt: skip
