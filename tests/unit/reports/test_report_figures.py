"""How numbers are written, and on which scale charts draw them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgate.reports import charts, figures
from fairgate.reports.blocks import Range, RangeChart, RowKind
from fairgate.reports.charts import scale
from fairgate.reports.figures import Figure


@pytest.mark.parametrize(
    ("write", "given", "expected"),
    [
        (figures.value, (0.094, "asr/generation"), "9.4 %"),
        (figures.value, (0.0, "asr/generation"), "0.0 %"),
        (figures.value, (-0.00001, "shift/changes"), "0.0 points"),
        (figures.value, (-0.02, "shift/changes"), "−2.0 points"),
        (figures.value, (0.7123, "rrs/mean"), "0.712"),
        *((figures.value, (nothing, "rrs/mean"), "–") for nothing in (None, math.nan, math.inf)),
        (figures.signed, (0.053, "asr/generation"), "+5.3"),
        (figures.signed, (-0.053, "asr/generation"), "−5.3"),
        (figures.signed, (0.0, "asr/generation"), "0.0"),
        (figures.signed, (-0.0001, "asr/generation"), "0.0"),
        (figures.signed, (0.0504, "rrs/mean"), "+0.050"),
        (figures.probability, (0.0004,), "p < 0.001"), (figures.probability, (0.001,), "p = 0.001"),
        (figures.probability, (1.0,), "p = 1.000"), (figures.probability, (math.nan,), "–"),
    ],
)  # fmt: skip
def test_how_a_number_is_written(write, given, expected):
    assert write(*given) == expected


FRACTIONS = st.floats(-3, 3).map(lambda number: round(number, 6))


@given(st.lists(FRACTIONS, min_size=1), st.booleans())
def test_every_value_stands_on_the_scale_and_in_order(values, both_sides):
    kept = values if both_sides else [abs(value) for value in values]
    shared = scale(kept, both_sides=both_sides)
    positions = [shared.position(value) for value in sorted(kept)]
    assert positions == sorted(positions)
    assert all(0 <= position <= 100 for position in positions)


@given(st.floats(0.001, 3), st.booleans())
def test_there_are_a_few_round_ticks_where_their_values_stand(most, both_sides):
    shared = scale([most], both_sides=both_sides)
    ticks = shared.ticks
    assert 3 <= len(ticks) <= 6
    values = [float(label.replace("\N{MINUS SIGN}", "-")) for _, label in ticks]
    for (at, _), value in zip(ticks, values, strict=True):
        assert at == pytest.approx(shared.position(value / 100), abs=0.02)
    assert f"{values[1] - values[0]:.3e}".startswith(("1.000", "2.000", "5.000"))
    assert any(label == "0" for _, label in ticks)


@pytest.mark.parametrize(
    ("drawn", "both_sides", "value", "position"),
    [
        ([0.3], True, 0.0, 50), ([0.3], False, 0.0, 0),
        ([0.2], False, -0.1, 0), ([0.2], True, 0.5, 100),  # what lies beyond stands at the edge
        *(([value, 0.2], False, value, None) for value in (None, math.nan, math.inf)),
    ],
)  # fmt: skip
def test_places_on_a_scale(drawn, both_sides, value, position):
    assert scale(drawn, both_sides=both_sides).position(value) == position


def test_ticks_of_a_known_scale_and_of_nothing():
    assert [label for _, label in scale([0.347], unit=" %").ticks] == ["0", "10", "20", "30 %"]
    assert [label for _, label in scale([3.47], times=1).ticks] == ["0", "1", "2", "3"]
    labels = [label for _, label in scale([-0.4], both_sides=True).ticks]
    assert labels == ["−40", "−20", "0", "20", "40"]
    assert scale([]).ticks[0] == (0.0, "0")


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
