"""Folders of the onnxruntime-genai builder, with the original's `config.json` beside the graph."""

import json
import shutil

import onnx
import pytest
from fakes.decoders import BUILDER_WINDOW, DEMO, TokenDecoder, builder_expected, builder_folder

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx.decoder import OnnxDecoder

STEPS = 12


@pytest.fixture
def folder(tmp_path):
    return builder_folder(tmp_path / "builder")


@pytest.mark.parametrize("batch_size", [1, 16])
def test_greedy_tokens_are_those_of_transformers_within_and_beyond_the_window(folder, batch_size):
    prompts, answers = builder_expected()
    assert any(len(prompt) > BUILDER_WINDOW for prompt in prompts)
    assert TokenDecoder(folder, STEPS, batch_size=batch_size).answers(prompts) == answers


def test_a_cache_whose_width_neither_graph_nor_settings_name_is_refused(folder):
    (folder / "config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"cache inputs that are not .* with known sizes"):
        TokenDecoder(folder, STEPS).answers([[3, 4]])
    (folder / "config.json").write_text(json.dumps({"head_dim": 16}))
    assert TokenDecoder(folder, STEPS).answers([[3, 4]])


def test_a_graph_that_ignores_its_models_window_answers_only_within_it(folder):
    """As graphs of Mistral and Phi-3 do that the builder makes for other execution providers."""
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "local_window_size":
                attribute.i = -1
    onnx.save(model, str(folder / "model.onnx"))
    prompts, answers = builder_expected()
    inside = [n for n, prompt in enumerate(prompts) if len(prompt) + STEPS <= BUILDER_WINDOW]
    assert len(inside) == 2
    found = TokenDecoder(folder, STEPS).answers([prompts[n] for n in inside])
    assert found == [answers[n] for n in inside]
    with pytest.raises(ModelError) as refused:
        TokenDecoder(folder, STEPS).answers(prompts)
    said = str(refused.value)
    assert "5 of 7 prompts" in said
    assert "the limit is 24: the model attends to the last 24 tokens, its graph to more" in said
    assert "fairgate export" in said


def test_a_folder_that_says_nothing_of_its_model_is_refused(tmp_path):
    folder = shutil.copytree(DEMO, tmp_path / "demo")
    (folder / "config.json").unlink()
    engine = OnnxDecoder(folder, decoding=Decoding(max_new_tokens=4))
    with pytest.raises(ModelError, match=r"no config\.json \(states how far back"):
        list(engine.generate([GenerationRequest(prompt="Is it good?")]))
