"""How numbers are written, and on which scale charts draw them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgate.reports import charts, figures
from fairgate.reports.blocks import Range, RangeChart
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
    ],
)  # fmt: skip
def test_how_a_number_is_written(write, given, expected):
    assert write(*given) == expected


FRACTIONS = st.floats(-3, 3).map(lambda number: round(number, 6))


@given(st.lists(FRACTIONS, min_size=1))
def test_every_value_stands_on_the_scale_and_in_order(values):
    shared = scale(values)
    positions = [shared.position(value) for value in sorted(values)]
    assert positions == sorted(positions)
    assert all(0 <= position <= 100 for position in positions)


@given(st.floats(0.001, 3))
def test_there_are_a_few_round_ticks_where_their_values_stand(most):
    shared = scale([most])
    ticks = shared.ticks
    assert 3 <= len(ticks) <= 6
    values = [float(label.replace("\N{MINUS SIGN}", "-")) for _, label in ticks]
    for (at, _), value in zip(ticks, values, strict=True):
        assert at == pytest.approx(shared.position(value / 100), abs=0.02)
    assert f"{values[1] - values[0]:.3e}".startswith(("1.000", "2.000", "5.000"))
    assert any(label == "0" for _, label in ticks)


@pytest.mark.parametrize(
    ("value", "position"),
    # What lies beyond stands at the edge.
    [
        (0.0, 50),
        (0.5, 100),
        (-0.5, 0),
        *((nothing, None) for nothing in (None, math.nan, math.inf)),
    ],
)
def test_places_on_a_scale(value, position):
    assert scale([0.2]).position(value) == position


def test_ticks_of_a_known_scale_and_of_nothing():
    assert [label for _, label in scale([-0.4]).ticks] == ["−40", "−20", "0", "20", "40"]
    assert [label for _, label in scale([3.47], times=1).ticks] == ["−2", "0", "2"]
    assert (50.0, "0") in scale([]).ticks


def test_values_stand_left_and_right_of_zero():
    now, base = Figure(value=0.2, bounds=(0.1, 0.3)), Figure(value=-0.1)
    chart = RangeChart(label="x", head="x", rows=[Range(name="x", now=now, base=base)])
    ((_, track),), shared = charts.ranges(chart)
    assert shared.position(0.0) == 50
    assert track["base"] < 50 < track["low"] < track["value"] < track["high"]
