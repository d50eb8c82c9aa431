from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairgate.domain.executions import Decoding
from fairgate.onnx.answer_row import choose_token, token_probabilities

logits = arrays(
    np.float32, st.integers(1, 40), elements=st.floats(-30, 30, width=32, allow_nan=False)
)
knobs = st.builds(
    Decoding,
    temperature=st.sampled_from([0.0, 0.1, 1.0, 2.5]),
    top_p=st.sampled_from([0.05, 0.5, 0.9, 1.0]),
    top_k=st.sampled_from([0, 1, 3, 50]),
)


@example(np.array([0.0, 3e-27], np.float32), Decoding(temperature=0.1, top_p=0.05))
@given(logits, knobs)
def test_probabilities_sum_to_one_and_keep_the_most_probable_token(scores, decoding):
    probabilities = token_probabilities(scores, decoding)
    assert probabilities.sum() == pytest.approx(1.0)
    assert probabilities[scores.argmax()] > 0.0
    assert (probabilities >= 0.0).all()


@given(logits, knobs, st.integers(0, 1000))
def test_equal_seeds_choose_equal_tokens_and_only_kept_ones(scores, decoding, seed):
    token = choose_token(scores, decoding, np.random.default_rng(seed))
    assert token == choose_token(scores, decoding, np.random.default_rng(seed))
    assert token_probabilities(scores, decoding)[token] > 0.0


def test_greedy_takes_the_first_maximum_and_draws_nothing():
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert choose_token(np.array([0.0, 2.0, 2.0]), Decoding(), rng) == 1
    assert rng.bit_generator.state == before


def test_sampling_draws_exactly_one_number_per_token():
    first, second = np.random.default_rng(5), np.random.default_rng(5)
    choose_token(np.zeros(9), Decoding(temperature=1.0, top_p=0.9), first)
    second.random()
    assert first.bit_generator.state == second.bit_generator.state


def test_top_p_keeps_the_smallest_set_that_reaches_the_mass():
    scores = np.log([0.5, 0.3, 0.15, 0.05])
    kept = token_probabilities(scores, Decoding(temperature=1.0, top_p=0.75))
    assert kept == pytest.approx([0.625, 0.375, 0.0, 0.0])
    # The set must reach the mass: where one token alone does, no second one is kept.
    kept = token_probabilities(scores, Decoding(temperature=1.0, top_p=0.45))
    assert kept == pytest.approx([1.0, 0.0, 0.0, 0.0])


def test_top_k_comes_before_top_p():
    # Among the two most probable tokens the first has 5/8 of the mass: enough for top_p 0.6.
    scores = np.log([0.5, 0.3, 0.15, 0.05])
    kept = token_probabilities(scores, Decoding(temperature=1.0, top_p=0.6, top_k=2))
    assert kept == pytest.approx([1.0, 0.0, 0.0, 0.0])


def test_top_k_keeps_ties_with_the_last_kept_token():
    kept = token_probabilities(np.array([1.0, 1.0, 1.0, 0.0]), Decoding(temperature=1.0, top_k=2))
    assert np.flatnonzero(kept).tolist() == [0, 1, 2]


def test_temperature_sharpens_before_anything_is_cut_off():
    scores = np.log([0.6, 0.4])
    kept = token_probabilities(scores, Decoding(temperature=0.5))
    assert kept == pytest.approx([0.36 / 0.52, 0.16 / 0.52])


def test_sampling_frequencies_follow_the_probabilities():
    scipy_stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(11)
    scores = rng.normal(0.0, 2.0, 60)
    decoding = Decoding(temperature=0.8, top_p=0.9, top_k=20)
    expected = token_probabilities(scores, decoding)
    drawn = [choose_token(scores, decoding, rng) for _ in range(12_000)]
    counts = np.bincount(drawn, minlength=60)
    kept = expected > 0.0
    assert counts[~kept].sum() == 0
    assert scipy_stats.chisquare(counts[kept], expected[kept] * 12_000).pvalue > 0.001
