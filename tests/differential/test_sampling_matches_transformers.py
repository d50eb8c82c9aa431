"""The sampler against the warpers of transformers: the same probabilities, the same frequencies."""

import numpy as np
import pytest
from scipy import stats

from fairgate.domain.executions import Decoding
from fairgate.onnx.answer_row import choose_token, token_probabilities

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

DRAWS = 20_000
KNOBS = [
    Decoding(temperature=0.1, top_p=0.9, top_k=50),  # the preset `paper-text`
    Decoding(temperature=1.0, top_p=0.9, top_k=50),
    Decoding(temperature=0.7, top_p=0.5),
    Decoding(temperature=1.5, top_k=7),
    Decoding(temperature=2.0),
]


def reference(logits, decoding):
    """Return the probabilities that `transformers.generate` samples from."""
    from transformers import GenerationConfig
    from transformers.generation.logits_process import (
        LogitsProcessorList,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    config = GenerationConfig()
    assert config.do_sample is False
    warpers = LogitsProcessorList()
    if decoding.temperature != 1.0:
        warpers.append(TemperatureLogitsWarper(decoding.temperature))
    if decoding.top_k:
        warpers.append(TopKLogitsWarper(top_k=decoding.top_k))
    if decoding.top_p < 1.0:
        warpers.append(TopPLogitsWarper(top_p=decoding.top_p))
    scores = torch.tensor(logits, dtype=torch.float64)[None]
    return warpers(torch.zeros((1, 1), dtype=torch.long), scores).softmax(-1)[0].numpy()


@pytest.mark.parametrize("decoding", KNOBS, ids=str)
def test_probabilities_are_those_of_the_warpers(decoding):
    rng = np.random.default_rng(3)
    for spread in (0.1, 1.0, 5.0):
        for _ in range(40):
            logits = rng.normal(0.0, spread, 300).astype(np.float32)
            own = token_probabilities(logits, decoding)
            assert own == pytest.approx(reference(logits, decoding), abs=1e-12)


@pytest.mark.whole
@pytest.mark.parametrize("decoding", KNOBS, ids=str)
def test_frequencies_are_those_of_the_warpers(decoding):
    rng = np.random.default_rng(9)
    logits = rng.normal(0.0, 1.5, 200).astype(np.float32)
    expected = reference(logits, decoding) * DRAWS
    drawn = [choose_token(logits, decoding, rng) for _ in range(DRAWS)]
    counts = np.bincount(drawn, minlength=200)
    assert counts[expected == 0.0].sum() == 0
    order = np.argsort(-expected)
    usual = order[expected[order] >= 5.0]
    rare = order[(expected[order] > 0.0) & (expected[order] < 5.0)]
    observed = [*counts[usual], counts[rare].sum()]
    wanted = [*expected[usual], expected[rare].sum()]
    if wanted[-1] == 0.0:
        observed, wanted = observed[:-1], wanted[:-1]
    if len(wanted) > 1:
        assert stats.chisquare(observed, wanted).pvalue > 1e-3


def test_the_order_of_the_warpers_is_that_of_generate():
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(
        LlamaConfig(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)
    )
    config = GenerationConfig(do_sample=True, temperature=0.5, top_k=5, top_p=0.9)
    processors = model._get_logits_processor(config, 1, None, None, [])
    names = [type(one).__name__ for one in processors]
    assert names == ["TemperatureLogitsWarper", "TopKLogitsWarper", "TopPLogitsWarper"]
