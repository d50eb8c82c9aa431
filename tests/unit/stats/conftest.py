import numpy as np
import pytest

from fairgate.stats.observations import Observations


@pytest.fixture
def build():
    """Return a function: one row of values for each cluster; `arms` gives the arm of each column."""

    def observations(rows, *, arms=None, weights=(1.0,)):
        arms = arms or [0] * max(map(len, rows), default=0)
        cells = [(s, t, value) for s, row in enumerate(rows) for t, value in enumerate(row)]
        return Observations(
            keys=[f"s{s}#t/{t}" for s, t, _ in cells],
            clusters=np.array([s for s, _, _ in cells], dtype=np.int64),
            arms=np.array([arms[t] for _, t, _ in cells], dtype=np.int8),
            values=np.array([value for _, _, value in cells], dtype=np.float64),
            weights=weights,
            n_clusters=len(rows),
        )

    return observations
