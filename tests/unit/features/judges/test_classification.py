"""Precision, recall, F1, AUC and kappa: closed forms, and a slow truth by counting."""

import math

import numpy as np
import pytest

from fairgate.features.judges.evaluation import agreement, figures


def cases(tp, fp, fn, tn):
    said = np.array([True] * (tp + fp) + [False] * (fn + tn))
    return said, np.array([True] * tp + [False] * fp + [True] * fn + [False] * tn)


def measured(*counts):
    said, true = cases(*counts)
    return agreement(said, true, said * 1.0)


@pytest.mark.parametrize(("counts", "expected"), [
    # tp, fp, fn, tn: precision, recall, F1, kappa
    ((45, 25, 15, 15), (45 / 70, 45 / 60, 90 / 130, (0.6 - 0.54) / 0.46)),
    ((20, 5, 10, 15), (20 / 25, 20 / 30, 40 / 55, 0.4)),  # kappa .4: Wikipedia's example
    ((10, 0, 0, 10), (1.0, 1.0, 1.0, 1.0)),
    ((0, 10, 10, 0), (0.0, 0.0, 0.0, -1.0)),
    ((30, 10, 0, 0), (0.75, 1.0, 60 / 70, 0.0)),  # always BIASED: kappa 0
])  # fmt: skip
def test_closed_forms(counts, expected):
    found = measured(*counts)
    names = ("precision", "recall", "f1", "kappa")
    assert [found[name] for name in names] == pytest.approx(expected)


def test_what_is_not_defined_is_nan():
    assert math.isnan(measured(0, 0, 5, 5)["precision"])
    assert math.isnan(measured(0, 0, 0, 5)["f1"])
    assert math.isnan(measured(5, 0, 0, 0)["kappa"])


def test_intervals_hold_the_value_and_repeat_with_the_seed():
    said, true = cases(40, 10, 12, 38)
    given = (said, true, said * 2.0)
    one, again = (figures(*given, confidence=0.95, rng=np.random.default_rng(1)) for _ in "ab")
    assert one == again
    for figure in one.values():
        assert figure.low < figure.value < figure.high
    assert one["auc"].value == pytest.approx((40 / 52 + 38 / 48) / 2)
