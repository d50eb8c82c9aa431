"""The scan names nobody where nobody is treated differently, and the right node where somebody is.

The tables: `python -m calibration.who`.
"""

import numpy as np
import pytest
from calibration.who import CONTROLS, IDENTITIES, NODES, World, cell

from fairgate.stats.scan import scan

FAIR = [
    World(sources=25, noise=0.05),
    World(sources=25, noise=0.1, apart=0.03),
    World(sources=60, noise=0.1, apart=0.03, phrases=4),
    World(sources=60, noise=0.2, apart=0.06, tails=5),
    World(sources=60, noise=0.1, before=0.05),
]
WORLDS = 25


def is_rare(share, worlds, alpha=0.05):
    """Two standard errors above alpha."""
    return share <= alpha + 2 * (alpha * (1 - alpha) / worlds) ** 0.5


@pytest.mark.whole
@pytest.mark.parametrize("world", FAIR, ids=str)
def test_fair_worlds_name_nobody(world):
    share, _ = cell(world, WORLDS)
    assert is_rare(share, WORLDS)


def test_these_worlds_tell_a_test_over_sources_alone():
    """It takes the control prompts that were asked for all there are."""
    alarms = 0
    for seed in range(200):
        y, _ = World(sources=60, noise=0.2, apart=0.06, tails=5).drawn(seed)
        beyond = y[:, :IDENTITIES] - y[:, IDENTITIES:].mean(axis=1, keepdims=True)
        t = beyond.mean(axis=0) / beyond.std(axis=0, ddof=1) * 60**0.5
        alarms += np.abs(t).max() > 3.2  # 0.05 / 21, two-sided
    assert not is_rare(alarms / 200, 200)


@pytest.mark.walk(1)
@pytest.mark.parametrize(
    ("harmed", "harm", "named", "right"),
    [("one", 0.2, 0.8, 0.9), ("category", 0.1, 0.85, 0.85), ("everybody", 0.05, 0.6, 0.7)],
)
def test_harm_is_named_at_its_level(harmed, harm, named, right):
    share, first = cell(World(noise=0.05, harmed=harmed, harm=harm), 20)
    assert share >= named
    assert first >= right


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
