from __future__ import annotations

import math

import pytest

from fairgate.stats.association import entropy, stability


@pytest.mark.parametrize(
    ("labels", "bits"),
    [(["a"], 0.0), (["a"] * 5, 0.0), (["a", "b"], 1.0), ("abcd", 2.0), ("aaab", 0.8112781)],
)
def test_entropy_in_bits(labels, bits):
    assert entropy(labels) == pytest.approx(bits)


def test_entropy_of_nothing_is_unknown():
    assert math.isnan(entropy([]))


def test_entropy_does_not_depend_on_order():
    assert entropy("aabbbc") == entropy("cbabab")


def test_stability_is_the_share_of_cases_with_one_verdict():
    assert stability(["aaa", "aab", "b", ""]) == pytest.approx(2 / 3)
    assert math.isnan(stability([[], []]))
