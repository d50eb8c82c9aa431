"""The builder's folder that the other tests use is what the builder writes today."""

import json
import shutil

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")

from builder_graphs import build  # noqa: E402
from fakes.decoders import (  # noqa: E402
    BUILDER,
    BUILDER_WINDOW,
    TokenDecoder,
    add_tokenizer,
    builder_expected,
    builder_folder,
)
from model_families import FAMILIES  # noqa: E402
from originals import original  # noqa: E402

from fairgate.onnx.model_folder import ModelFolder  # noqa: E402
from fairgate.onnx.prompts import PromptTokenizer  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("table 0")]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return the model of the folder in transformers' format: random weights from a fixed seed."""
    from transformers import AutoModelForCausalLM, Qwen2Config

    folder = tmp_path_factory.mktemp("qwen") / "original"
    torch.manual_seed(11)
    config = Qwen2Config(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        vocab_size=2048,
        max_position_embeddings=256,
        use_sliding_window=True,
        sliding_window=BUILDER_WINDOW,
        max_window_layers=1,
        initializer_range=0.3,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    add_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def rebuilt(source):
    target = source.parent / "builder"
    assert build([(source, target, "fp32")]) == [None]
    shutil.copy(source / "config.json", target / "config.json")
    return target


def outline(folder):
    graph = onnx.load(str(folder / "model.onnx"), load_external_data=False).graph
    return [(node.op_type, sorted(str(one) for one in node.attribute)) for node in graph.node]


def test_the_folder_is_what_the_builder_writes(rebuilt):
    assert outline(rebuilt) == outline(BUILDER)
    assert json.loads((rebuilt / "genai_config.json").read_text()) == json.loads(
        (BUILDER / "genai_config.json").read_text()
    )
    weights = [
        {one.name: onnx.numpy_helper.to_array(one) for one in onnx.load(str(folder / "model.onnx")).graph.initializer}
        for folder in (rebuilt, BUILDER)
    ]  # fmt: skip
    assert weights[0].keys() == weights[1].keys()
    assert all(np.array_equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_a_folder_as_the_builder_writes_it_is_opened_with_its_own_tokenizer(rebuilt):
    prompts, answers = builder_expected()
    assert TokenDecoder(rebuilt, len(answers[0])).answers(prompts) == answers
    own, demo = (
        PromptTokenizer(ModelFolder.find(one))
        for one in (rebuilt, builder_folder(rebuilt.parent / "demo"))
    )
    texts = ["Is it good?\nAnswer:", "naïve — ½"]
    assert own.encode(texts) == demo.encode(texts)


def test_the_expected_answers_are_those_of_transformers(source):
    from transformers import AutoModelForCausalLM, GenerationConfig

    model = AutoModelForCausalLM.from_pretrained(source, attn_implementation="eager").eval()
    model.generation_config = GenerationConfig(pad_token_id=2)
    prompts, answers = builder_expected()
    for prompt, answer in zip(prompts, answers, strict=True):
        row = torch.tensor([prompt])
        with torch.inference_mode():
            out = model.generate(
                row,
                attention_mask=torch.ones_like(row),
                max_new_tokens=len(answer),
                do_sample=False,
            )
        assert out[0, len(prompt) :].tolist() == answer


def test_the_builder_says_which_models_it_does_not_know(request, tmp_path):
    cache = request.config.cache.mkdir("original-models")
    unknown = [family for family in FAMILIES if not family.built][:2]
    wishes = [(original(one, cache).folder, tmp_path / one.kind, "fp32") for one in unknown]
    assert all(isinstance(refusal, str) for refusal in build(wishes))
