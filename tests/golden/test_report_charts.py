"""What the charts of a report draw is what was measured, in this run and in the baseline."""

from __future__ import annotations

from dataclasses import replace

import pytest
from canonical_bias import bias_baseline, social_bias
from canonical_results import baseline, regression
from canonical_rules import beside, said

from fairgate.domain.outcomes import Measurement, Overlap
from fairgate.reports import charts
from fairgate.reports.blocks import (
    Bars,
    Histogram,
    Range,
    RangeChart,
    ReportOptions,
    RowKind,
)
from fairgate.reports.figures import Figure
from fairgate.reports.material import Material
from fairgate.reports.sections.measured import social_bias as bias_section
from fairgate.reports.sections.verdict import trend


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


def trends(now, before, **overlap):
    shared = Overlap(**{"compared": 1, "new": (), "removed": (), "incompatible": (), **overlap})
    result = replace(regression().result, rules=[], measurements=now, overlap=shared)
    run = replace(regression(), result=result)
    known = replace(baseline(), measurements=before)
    sections = list(trend(Material(run=beside(run, known), options=ReportOptions())))
    return [b for s in sections for b in s.blocks if isinstance(b, RangeChart)]


def test_a_trend_has_both_runs_with_their_own_intervals():
    rates, scores, bias = trends(NOW, BEFORE)
    (row,) = rates.rows
    assert "asr/generation/controlled" in said(row.name)
    assert (row.base.bounds, row.now.bounds) == ((0.02, 0.06), (0.05, 0.2))
    assert (scores.factor, scores.is_signed) == (1.0, False)
    assert bias.is_signed
    assert ["setting stereo" in said(row.name) for row in bias.rows] == [True]


def test_the_lanes_of_a_trend_stand_left_and_right_of_zero():
    *_, bias = trends(NOW, BEFORE)
    ((_, track),), shared = charts.ranges(bias)
    assert shared.position(0.0) == 50
    assert track["base"] < 50 < track["value"]
    assert track["base_low"] < track["base"] < track["base_high"] == 50
    assert track["low"] < track["value"] < track["high"]


def test_no_trend_without_a_comparable_baseline():
    assert trends(NOW, []) == []
    assert trends(NOW, BEFORE, incompatible=["top_k: 4, now 6"]) == []
    run = replace(regression(), result=replace(regression().result, measurements=NOW, overlap=None))
    assert list(trend(Material(run=run, options=ReportOptions()))) == []


def test_what_one_run_could_not_measure_has_no_trend():
    unknown = [replace(one, value=None, interval=None) for one in NOW]
    assert trends(unknown, BEFORE) == []


def bias_charts(run, base):
    (section,) = bias_section(Material(run=beside(run, base), options=ReportOptions()))
    return [block for block in section.blocks if isinstance(block, RangeChart)]


def test_diff_bias_stands_by_category_and_setting_beside_the_baseline():
    ambiguous, _ = bias_charts(social_bias(), bias_baseline())
    groups = [said(row.name) for row in ambiguous.rows if row.kind is RowKind.GROUP]
    assert groups == ["all categories", "Age", "Religion"]
    stereo = [row for row in ambiguous.rows if said(row.name) == "stereo"]
    assert [row.now.shown for row in stereo] == ["66.7", "100.0", "33.3"]
    assert [row.base.shown for row in stereo] == ["0.0"] * 3
    assert not bias_charts(social_bias(), None)[0].has_base


@pytest.mark.parametrize(("value", "start", "width"), [(0.5, 50, 25), (-1.0, 0, 50), (None, 50, 0)])
def test_signed_bars_reach_to_either_side_of_the_middle(value, start, width):
    chart = Bars(
        label="x", rows=[Range(name="x", now=Figure(value=value))], head="x", is_signed=True
    )
    ((_, left, wide, _),) = charts.bars(chart)
    assert (left, wide) == (start, width)


def test_bars_of_shares_begin_at_the_left():
    chart = Bars(label="x", rows=[Range(name="x", now=Figure(value=0.25))], head="x")
    assert charts.bars(chart)[0][1:] == (0.0, 25.0, None)


def test_a_histogram_keeps_zeros_apart_and_holds_every_score():
    chart = Histogram(label="x", caption="x", scores=[0.0, 0.0, 0.1, 1.4], limits=(0.63, 1.31))
    counts, top = charts.bins(chart)
    assert (counts[0], sum(counts)) == (2, 4)
    assert top > 1.4
    shape = charts.histogram(chart)
    assert [band for *_, band in shape["bars"]] == [0, 1, 3]


def test_a_short_chart_shows_the_largest_values_and_the_reference_last():
    rows = [Range(name=f"r{n}", now=Figure(shown=str(n), value=n / 10)) for n in range(5)]
    rows.append(Range(name="all", now=Figure(value=1.0), kind=RowKind.GROUP))
    rows.append(Range(name="neutral", now=Figure(value=0.1), kind=RowKind.REFERENCE))
    chart = RangeChart(label="x", rows=rows, head="x", most=2)
    assert [line.split()[0] for line in charts.ranges_as_text(chart).splitlines()] == [
        "r4", "r3", "neutral",
    ]  # fmt: skip


def test_a_small_share_still_has_a_bar():
    assert charts.bar(0.0001, 1.0, 24) == "█"
    assert charts.bar(0.0, 1.0, 24) == ""
    assert charts.bar(2.0, 1.0, 24) == "█" * 24
