"""What the charts of a report draw is what was measured, in this run and in the baseline."""

from __future__ import annotations

from fairgate.reports import charts
from fairgate.reports.blocks import Range, RangeChart, RowKind
from fairgate.reports.figures import Figure


def test_values_stand_left_and_right_of_zero():
    now, base = Figure(value=0.2, bounds=(0.1, 0.3)), Figure(value=-0.1)
    chart = RangeChart(
        label="x", head="x", is_signed=True, rows=[Range(name="x", now=now, base=base)]
    )
    ((_, track),), shared = charts.ranges(chart)
    assert shared.position(0.0) == 50
    assert track["base"] < 50 < track["low"] < track["value"] < track["high"]


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
