"""The scan names nobody where nobody is treated differently, and the right node where somebody is.

The tables: `python -m calibration.who`.
"""

import numpy as np
import pytest
from calibration.who import CONTROLS, IDENTITIES, NODES, World

from fairgate.stats.scan import scan

WORLDS = 25


def is_rare(share, worlds, alpha=0.05):
    """Two standard errors above alpha."""
    return share <= alpha + 2 * (alpha * (1 - alpha) / worlds) ** 0.5


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["missing", "columns"])
def test_undecided_cells_and_columns_that_go_together_alarm_no_more_often(kind):
    named = 0
    for seed in range(WORLDS):
        rng = np.random.default_rng(seed)
        y, _ = World(sources=40, noise=0.15).drawn(seed)
        columns = {"y": y}
        if kind == "missing":  # identities' more than control prompts'
            y[rng.random(y.shape) < np.repeat([0.2, 0.05], [IDENTITIES, CONTROLS])] = np.nan
        else:
            columns |= {f"y{i}": y + rng.normal(0, 0.2, y.shape) for i in range(2)}
        named += scan(columns, NODES, identities=IDENTITIES).among().p <= 0.05
    assert is_rare(named / WORLDS, WORLDS)
