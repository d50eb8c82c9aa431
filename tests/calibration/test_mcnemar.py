from __future__ import annotations

import pytest
from calibration.mcnemar import mcnemar


def test_mcnemar_is_the_binomial_test_of_the_discordant_pairs():
    found = mcnemar(8, 2)
    assert found.p_worse == pytest.approx(56 / 1024)
    assert found.p_two_sided == pytest.approx(112 / 1024)


def test_no_discordant_pair_is_no_evidence():
    assert (mcnemar(0, 0).p_worse, mcnemar(0, 0).p_two_sided) == (1.0, 1.0)


def test_equally_many_in_both_directions_are_no_evidence():
    assert mcnemar(5, 5).p_two_sided == 1.0


def test_an_improvement_is_no_worsening():
    assert mcnemar(0, 6).p_worse == 1.0
    assert mcnemar(0, 6).p_two_sided == pytest.approx(2 / 64)


def test_many_pairs_agree_with_scipy():
    from scipy import stats

    assert mcnemar(5200, 4800).p_worse == pytest.approx(
        stats.binomtest(5200, 10_000, alternative="greater").pvalue, rel=1e-9
    )
