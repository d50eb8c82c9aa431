"""Which document of the source's list each document of the follow-up's stands against (RRS)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairgate.domain.executions import Document
from fairgate.domain.units import Judged
from fairgate.gate.gate import GateRun
from fairgate.suites.metamorphic.documents import document_key
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE
from fairgate.suites.suite import Suite, VectorsOf


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedDocuments:
    """Two documents that the optimal matching pairs."""

    source_rank: int
    source: Document
    follow_up_rank: int
    follow_up: Document
    distance: float | None
    """Between their embeddings, as RRS measures it; None where there are none."""


def aligned(run: GateRun, item: Judged, suite: Suite, vectors: VectorsOf) -> list[AlignedDocuments]:
    """Return the documents of a pair, matched as RRS matches them; none where one list is empty."""
    lists = []
    for role in (SOURCE, FOLLOW_UP):
        execution = run.executions.get((suite.id, item.unit.asks[role]))
        if execution is None or not execution.documents:
            return []
        lists.append(execution.documents)
    left, right = lists
    costs = _costs(left, right, str(suite.must_match().get("distance", "")), vectors)
    matched = _matched(left, right, costs)
    return [
        AlignedDocuments(
            source_rank=i + 1,
            source=left[i],
            follow_up_rank=j + 1,
            follow_up=right[j],
            distance=None if costs is None else round(float(costs[i, j]), 6) + 0.0,
        )
        for i, j in matched
    ]


def _costs(
    left: Sequence[Document], right: Sequence[Document], distance: str, vectors: VectorsOf
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None:
    found = vectors([*left, *right])
    if found is None:
        return None
    unit = found.astype(np.float64)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-30)
    dots = unit[: len(left)] @ unit[len(left) :].T
    costs = 1.0 - dots if distance == "cosine" else np.sqrt(np.maximum(2.0 - 2.0 * dots, 0.0))
    same = [[document_key(a) == document_key(b) for b in right] for a in left]
    return np.where(np.asarray(same, dtype=bool), 0.0, costs)


def _matched(
    left: Sequence[Document],
    right: Sequence[Document],
    costs: np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None,
) -> list[tuple[int, int]]:
    if costs is None:
        return [(i, i) for i in range(min(len(left), len(right)))]
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(costs)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))
