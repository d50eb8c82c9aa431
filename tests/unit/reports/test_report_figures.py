from __future__ import annotations

import math

import pytest

from fairgate.reports import figures


@pytest.mark.parametrize(
    ("number", "metric", "expected"),
    [
        (0.094, "asr/generation", "9.4 %"),
        (0.0, "asr/generation", "0.0 %"),
        (-0.00001, "unreadable/net", "0.0 %"),
        (-0.02, "unreadable/net", "−2.0 %"),
        (0.7123, "rrs/mean", "0.712"),
        (None, "rrs/mean", "–"),
        (math.nan, "rrs/mean", "–"),
        (math.inf, "rrs/mean", "–"),
    ],
)
def test_value(number, metric, expected):
    assert figures.value(number, metric) == expected


@pytest.mark.parametrize(
    ("number", "metric", "expected"),
    [
        (0.053, "asr/generation", "+5.3"),
        (-0.053, "asr/generation", "−5.3"),
        (0.0, "asr/generation", "0.0"),
        (-0.0001, "asr/generation", "0.0"),
        (0.0504, "rrs/mean", "+0.050"),
    ],
)
def test_signed(number, metric, expected):
    assert figures.signed(number, metric) == expected


@pytest.mark.parametrize(
    ("p_value", "expected"),
    [(0.0004, "p < 0.001"), (0.001, "p = 0.001"), (1.0, "p = 1.000"), (math.nan, "–")],
)
def test_probability(p_value, expected):
    assert figures.probability(p_value) == expected
