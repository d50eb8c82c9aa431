"""The exact interval agrees with scipy's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from fairgate.features.mutation.mutation_test import clopper_pearson


@given(st.integers(1, 60), st.data(), st.sampled_from([0.9, 0.95, 0.99]))
def test_the_interval_is_scipys_exact_one(trials, data, confidence):
    count = data.draw(st.integers(0, trials))
    low, high = clopper_pearson(count, trials, confidence=confidence)
    exact = binomtest(count, trials).proportion_ci(confidence, method="exact")
    assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert 0 <= low <= count / trials <= high <= 1
