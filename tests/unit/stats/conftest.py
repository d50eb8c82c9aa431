from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from fairgate.stats.observations import Observations

Build = Callable[..., Observations]


def build_observations(
    rows: Sequence[Sequence[float]],
    *,
    arms: Sequence[int] | None = None,
    weights: tuple[float, ...] = (1.0,),
) -> Observations:
    """One row of values for each cluster; `arms` gives the arm of each column."""
    width = max((len(row) for row in rows), default=0)
    arms = arms or [0] * width
    cells = [(s, t, value) for s, row in enumerate(rows) for t, value in enumerate(row)]
    return Observations(
        keys=[f"s{s}#t/{t}" for s, t, _ in cells],
        clusters=np.array([s for s, _, _ in cells], dtype=np.int64),
        arms=np.array([arms[t] for _, t, _ in cells], dtype=np.int8),
        values=np.array([value for _, _, value in cells], dtype=np.float64),
        weights=weights,
        n_clusters=len(rows),
    )


@pytest.fixture
def build() -> Build:
    return build_observations
