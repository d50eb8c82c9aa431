"""What the charts of the HTML report draw is what was measured, in this run and in the baseline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairgate.domain.measurements import Measurement
from fairgate.domain.outcomes import Overlap
from fairgate.reports.bias_groups import bias_groups
from fairgate.reports.charts import trend_rows
from fairgate.reports.trends import trend_groups


class Result:
    """The part of a result that trends are made from."""

    def __init__(self, measurements, rules=(), incompatible=()):
        self.measurements = measurements
        self.rules = rules
        self.overlap = Overlap(compared=1, new=(), removed=(), incompatible=incompatible)


def measured(metric, value, bounds=None, **where):
    return Measurement(metric=metric, suite="s", where=where, value=value, interval=bounds)


NOW = [
    measured("asr/generation/controlled", 0.1, (0.05, 0.2)),
    measured("asr/generation/controlled", 0.3, category="age"),
    measured("rrs/mean", 0.8, (0.7, 0.9)),
    measured("diff-bias/ambiguous", 0.2, (0.1, 0.3), setting="stereo"),
    measured("diff-bias/ambiguous", 0.5, setting="stereo", category="age"),
]
BEFORE = [
    measured("asr/generation/controlled", 0.04, (0.02, 0.06)),
    measured("rrs/mean", 0.7),
    measured("diff-bias/ambiguous", -0.1, (-0.2, 0.0), setting="stereo"),
]


def test_a_trend_has_both_runs_with_their_own_intervals():
    rates, scores, bias = trend_groups(Result(NOW), BEFORE)
    assert [row.metric for row in rates.rows] == ["asr/generation/controlled"]
    assert (rates.rows[0].base.bounds, rates.rows[0].now.bounds) == ((0.02, 0.06), (0.05, 0.2))
    assert (scores.factor, scores.both_sides) == (1.0, False)
    assert bias.both_sides
    assert [row.slice for row in bias.rows] == ["setting stereo"]


def test_the_lanes_of_a_trend_stand_left_and_right_of_zero():
    *_, bias = trend_groups(Result(NOW), BEFORE)
    ((_, track),), shared = trend_rows(bias)
    assert shared.position(0.0) == 50
    assert track.base < 50 < track.value
    assert track.base_low < track.base < track.base_high == 50
    assert track.low < track.value < track.high


def test_no_trend_without_a_comparable_baseline():
    assert trend_groups(Result(NOW), []) == []
    assert trend_groups(Result(NOW, incompatible=["top_k: 4, now 6"]), BEFORE) == []
    first = Result(NOW)
    first.overlap = None
    assert trend_groups(first, BEFORE) == []


@pytest.mark.parametrize("value", [None])
def test_what_one_run_could_not_measure_has_no_trend(value):
    unknown = [replace(one, value=value, interval=None) for one in NOW]
    assert trend_groups(Result(unknown), BEFORE) == []


def test_diff_bias_stands_by_category_and_setting_beside_the_baseline():
    def known(found):
        return {(m.metric, tuple(sorted(m.where.items()))): m for m in found}

    together, age, religion = bias_groups(
        known(NOW), known(BEFORE), ["stereo"], ["age", "religion"]
    )
    assert together.category == ""
    assert together.points[0].now[0].bounds == (0.1, 0.3)
    assert together.points[0].base[0].shown == "−10.0"
    assert age.points[0].now[0].shown == "50.0"
    assert age.points[0].base[0].value is None
    assert religion.points[0].now == religion.points[0].base


def test_one_category_is_not_told_twice():
    assert len(bias_groups({}, {}, ["none"], ["age"])) == 1
