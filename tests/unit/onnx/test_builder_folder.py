"""Folders of the onnxruntime-genai builder: right, or refused with the reason."""

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


def edit_graph(folder, change):
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    for node in model.graph.node:
        change(node)
    onnx.save(model, str(folder / "model.onnx"))


def edit_settings(folder, change):
    file = folder / "genai_config.json"
    settings = json.loads(file.read_text())
    change(settings["model"])
    file.write_text(json.dumps(settings))


@pytest.mark.parametrize("batch_size", [1, 16])
def test_greedy_tokens_are_those_of_transformers_within_and_beyond_the_window(folder, batch_size):
    prompts, answers = builder_expected()
    assert any(len(prompt) > BUILDER_WINDOW for prompt in prompts)
    assert TokenDecoder(folder, STEPS, batch_size=batch_size).answers(prompts) == answers


def test_a_cache_whose_width_neither_graph_nor_folder_names_is_refused(folder):
    edit_settings(folder, lambda model: model["decoder"].pop("head_size"))
    with pytest.raises(ModelError, match=r"cache inputs that are not .* with known sizes"):
        TokenDecoder(folder, STEPS).answers([[3, 4]])
    (folder / "config.json").write_text(json.dumps({"hidden_size": 32, "num_attention_heads": 2}))
    assert TokenDecoder(folder, STEPS).answers([[3, 4]])


def ignore_window(folder):
    """Let the graph attend to everything, as builder graphs of Mistral and Phi-3 do."""

    def widen(node):
        for attribute in node.attribute:
            if attribute.name == "local_window_size":
                attribute.i = -1

    edit_graph(folder, widen)
    edit_settings(folder, lambda model: model["decoder"]["sliding_window"].update(layers=[]))


def test_a_graph_that_ignores_its_models_window_answers_only_within_it(folder):
    ignore_window(folder)
    prompts, answers = builder_expected()
    inside = [n for n, prompt in enumerate(prompts) if len(prompt) + STEPS <= BUILDER_WINDOW]
    assert len(inside) == 2
    found = TokenDecoder(folder, STEPS).answers([prompts[n] for n in inside])
    assert found == [answers[n] for n in inside]
    with pytest.raises(ModelError) as refused:
        TokenDecoder(folder, STEPS).answers(prompts)
    said = str(refused.value)
    assert "5 of 7 prompts" in said
    assert "the limit is 24: the model attends to the last 24 tokens, its graph to all" in said
    assert "fairgate export" in said


def test_an_olmo_of_the_builder_is_refused(folder):
    edit_settings(folder, lambda model: model.update(type="olmo"))
    with pytest.raises(ModelError, match="root mean square"):
        TokenDecoder(folder, STEPS).answers([[3, 4]])


def test_attention_without_a_window_needs_the_original_config(folder):
    def rename(node):
        if node.op_type == "GroupQueryAttention":
            node.op_type = "MultiHeadAttention"

    edit_graph(folder, rename)
    from fairgate.onnx.attention_settings import refuse_wrong_builds
    from fairgate.onnx.decoder_graph import read_decoder_graph
    from fairgate.onnx.model_folder import ModelFolder

    found = ModelFolder.find(folder)
    facts = read_decoder_graph(found.graph, attends_to_all=True).facts
    edit_settings(folder, lambda model: model["decoder"].pop("sliding_window"))
    with pytest.raises(ModelError, match=r"config\.json into the folder"):
        refuse_wrong_builds(found, facts)
    (folder / "config.json").write_text("{}")
    refuse_wrong_builds(found, facts)


def test_a_folder_that_says_nothing_of_its_model_is_refused(tmp_path):
    folder = tmp_path / "demo"
    shutil.copytree(DEMO, folder)
    (folder / "config.json").unlink()
    engine = OnnxDecoder(folder, decoding=Decoding(max_new_tokens=4))
    with pytest.raises(ModelError, match=r"no config\.json \(states how far back"):
        list(engine.generate([GenerationRequest(prompt="Is it good?")]))


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    ("kind", "provider", "refused"),
    [("mistral", "dml", True), ("phi3", "webgpu", True), ("mistral", "cuda", False),
     ("mistral", None, False), ("llama", "dml", False), ("qwen2", "webgpu", False)],
)  # fmt: skip
def test_builds_for_providers_whose_windows_leave_no_trace_are_refused(
    folder, kind, provider, refused
):
    ignore_window(folder)

    def change(model):
        model["type"] = kind
        model["decoder"].pop("sliding_window")
        options = [] if provider is None else [{provider: {}}]
        model["decoder"]["session_options"]["provider_options"] = options

    edit_settings(folder, change)
    if refused:
        with pytest.raises(ModelError, match=r"whether its model has a sliding window"):
            TokenDecoder(folder, STEPS).answers([[3, 4]])
        (folder / "config.json").write_text('{"model_type": "llama"}')
    assert TokenDecoder(folder, STEPS).answers([[3, 4]])
