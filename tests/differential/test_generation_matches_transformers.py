"""Greedy decoding, token by token, and option scores against torch on a tiny random Llama."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import fairgate
from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx.decoder import OnnxDecoder

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

DEMO = Path(fairgate.__file__).parent / "data" / "models" / "demo-slm"
STEPS = 24
PROMPTS = [
    "Is it good?\nAnswer:",
    "Never again.",
    "What is the sentiment of the text? " * 5 + "\nAnswer:",
    "A lamp with two switches arrived on Tuesday in a brown box.",
    "a",
    "One two three four five six seven eight nine ten eleven twelve thirteen fourteen.\nAnswer:",
]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Return the folder of a random Llama with grouped heads, in transformers' own format."""
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("llama") / "original"
    torch.manual_seed(7)
    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=2048,
        max_position_embeddings=512,
        rms_norm_eps=1e-6,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
        initializer_range=0.2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copy(DEMO / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def model(original):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(original).eval()


@pytest.fixture(scope="module")
def tokenizer(original):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(original, padding_side="left")


@pytest.fixture(scope="module")
def exported(original):
    """Return the folder that `fairgate export` makes; parity is checked on the way."""
    from fairgate.features.onnx_export.model_export import export_model

    output = original.parent / "exported"
    record = export_model(str(original), output)
    assert record["parity"]["equal_greedy_tokens"] == record["parity"]["compared_tokens"]
    assert json.loads((output / "provenance.json").read_text()) == record
    return output


def generated(model, tokenizer, prompts):
    """Return the new tokens of each prompt as `transformers.generate` gives them for the batch."""
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, return_token_type_ids=False)
    with torch.inference_mode():
        out = model.generate(**inputs, max_new_tokens=STEPS, do_sample=False)
    rows = out[:, inputs["input_ids"].shape[1] :].tolist()
    return [row[: row.index(1)] if 1 in row else row for row in rows]


class Recorder(OnnxDecoder):
    """The engine, with the tokens of its answers kept."""

    def _take(self, row, logits, likeliest):
        super()._take(row, logits, likeliest)
        self.__dict__.setdefault("tokens", {})[row.position] = list(row.tokens)


def own_tokens(folder, prompts, **options):
    engine = Recorder(folder, decoding=Decoding(max_new_tokens=STEPS), **options)
    list(engine.generate([GenerationRequest(prompt=prompt) for prompt in prompts]))
    return [engine.tokens[place] for place in range(len(prompts))]


def test_greedy_tokens_are_those_of_transformers(exported, model, tokenizer):
    one_by_one = [generated(model, tokenizer, [prompt])[0] for prompt in PROMPTS]
    assert any(len(set(tokens)) > 5 for tokens in one_by_one)
    for batch_size in (1, 16):
        assert own_tokens(exported, PROMPTS, batch_size=batch_size) == one_by_one


def test_greedy_tokens_are_those_of_left_padded_batches(exported, model, tokenizer):
    assert own_tokens(exported, PROMPTS) == generated(model, tokenizer, PROMPTS)


def test_option_scores_are_those_of_transformers(exported, model):
    options = ("It is good", "Never", "A brown box with two lamps")
    engine = OnnxDecoder(exported, decoding=Decoding())
    requests = [GenerationRequest(prompt=prompt, options=options) for prompt in PROMPTS]
    for request, scores in zip(requests, engine.score_options(requests), strict=True):
        prompt, *full = engine._prompts.encode_with_option(request.prompt, options)
        for tokens, score in zip(full, scores, strict=True):
            with torch.inference_mode():
                rows = model(torch.tensor([tokens])).logits[0].double().log_softmax(-1)
            start = len(prompt)
            expected = sum(
                float(rows[place - 1, tokens[place]]) for place in range(start, len(tokens))
            )
            assert score == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_an_export_in_fewer_bits_runs_and_stays_near(original, tmp_path, precision):
    pytest.importorskip("onnx_ir") if precision == "int8" else None
    from fairgate.features.onnx_export.model_export import ExportChoice, export_model

    record = export_model(str(original), tmp_path / "out", ExportChoice(precision=precision))
    assert record["parity"]["share_of_largest_logit"] < 0.2
    prompts = PROMPTS * 2
    alone = own_tokens(tmp_path / "out", prompts, batch_size=1)
    assert alone == own_tokens(tmp_path / "out", prompts, batch_size=16)


def test_a_margin_is_the_difference_of_the_models_own_log_probabilities(exported, model):
    # The model's own first token is called a label, so that it says one.
    engine = Recorder(exported, decoding=Decoding(max_new_tokens=4))
    prompt = "Is it good?\nAnswer:"
    list(engine.generate([GenerationRequest(prompt=prompt)]))
    said, rival = engine.tokens[0][0], 700
    texts = [engine._prompts.decode([token]).strip().lower() for token in (said, rival)]
    if not all(text.isalpha() for text in texts):
        pytest.skip("the random model's first token is no word")
    [(_, answer)] = engine.generate([GenerationRequest(prompt=prompt, labels=tuple(texts))])
    assert answer.margin is not None
    [ids] = engine._prompts.encode([prompt])
    with torch.inference_mode():
        row = model(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1).numpy()
    from fairgate.onnx.answer_row import LabelTokens

    variants = LabelTokens.of(texts, engine._prompts.splits).variants
    first = [{form[0] for form in variants[text]} for text in texts]
    ours, theirs = first[0] - first[1] | {said}, first[1] - first[0]
    expected = np.logaddexp.reduce(row[sorted(ours)]) - np.logaddexp.reduce(row[sorted(theirs)])
    assert answer.margin == pytest.approx(expected, abs=2e-3)
