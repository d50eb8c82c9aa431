"""The exact interval agrees with scipy's, and no trials have none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from fairgate.features.mutation.mutation_test import clopper_pearson
from fairgate.stats.interval import NOTHING_DECIDED, NoInterval


@given(st.integers(1, 60), st.data(), st.sampled_from([0.9, 0.95, 0.99]))
def test_the_interval_is_scipys_exact_one(trials, data, confidence):
    count = data.draw(st.integers(0, trials))
    found = clopper_pearson(count, trials, confidence=confidence)
    exact = binomtest(count, trials).proportion_ci(confidence, method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert 0 <= found.low <= count / trials <= found.high <= 1


def test_no_trials_have_no_interval():
    assert clopper_pearson(0, 0, confidence=0.95) == NoInterval(reason=NOTHING_DECIDED)
