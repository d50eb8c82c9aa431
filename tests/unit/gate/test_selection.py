"""Selection rates and their ratios describe what they say, and their ranges hold the truth."""

import numpy as np
import pytest

from fairgate.gate.selection import selection_of
from fairgate.metrics.metric import Table


def table_of(scores, column="score"):
    """A table of scores [sources, people], the last person a control prompt."""
    sources, people = scores.shape
    terms = [f"who {n}" for n in range(people - 1)] + ["control"]
    return Table(
        suite="s",
        keys=[str(n) for n in range(scores.size)],
        clusters=np.repeat(np.arange(sources), people),
        cluster_names=[str(n) for n in range(sources)],
        control=np.tile([*[False] * (people - 1), True], sources),
        dimensions={"category": ["age+gender"] * scores.size, "term": terms * sources},
        values={column: scores.ravel().astype(float)},
    )


def test_rates_and_ratios_are_shares_of_the_sources_that_were_read():
    scores = np.array([[8, 7, 6], [8, 2, 7], [7, np.nan, 1], [1, 1, 9]])
    first, second = selection_of(table_of(scores), 7)
    assert first.person == ("age+gender", "who 0")
    assert (first.rate, first.sources, first.ratio, first.ratio_interval) == (0.75, 4, 1, None)
    assert (second.rate, second.sources, second.highest) == (pytest.approx(1 / 3), 3, "who 0")
    assert second.ratio == 0.5  # of the three sources that have both
    lower = selection_of(table_of(scores, "score-lower-better"), 2)
    assert [rate.rate for rate in lower] == [0.25, pytest.approx(2 / 3, abs=1e-6)]


def test_where_nobody_is_selected_there_is_no_ratio():
    first, second = selection_of(table_of(np.ones((5, 3))), 7)
    assert (first.rate, first.ratio, second.ratio) == (0, None, None)
    assert first.interval[1] > 0.3


@pytest.mark.parametrize("shares", [(0.5, 0.4), (0.8, 0.3)])
def test_ranges_hold_the_truth_as_often_as_they_say(shares):
    """Sources are hard or easy for both: their answers go together."""
    draw, held = np.random.default_rng(5), {"rate": [], "ratio": []}
    for _ in range(200):
        level = draw.random((80, 1))
        scores = np.where(level < np.array([*shares, 0.5]), 9, 1)
        scores = np.where(draw.random(scores.shape) < 0.2, 10 - scores, scores)
        truth = [share * 0.8 + (1 - share) * 0.2 for share in shares]
        rates = {rate.person[1]: rate for rate in selection_of(table_of(scores), 7)}
        second = rates["who 1"]
        low, high = second.interval
        held["rate"].append(low <= truth[1] <= high)
        if second.ratio_interval is not None:  # else it is the highest itself
            low, high = second.ratio_interval
            held["ratio"].append(low <= truth[1] / truth[0] <= high)
    assert min(map(np.mean, held.values())) > 0.9
