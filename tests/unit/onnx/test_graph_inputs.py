"""Inputs beside the usual ones, inputs of fixed size, and a graph that is chosen among several."""

import shutil

import numpy as np
import onnx
import pytest
from fakes.decoders import DEMO, TokenDecoder, demo_folder, demo_graph
from fakes.encoders import write_encoder
from onnx import TensorProto, helper, numpy_helper

from fairgate.domain.errors import ModelError
from fairgate.onnx.decoder_graph import vocabulary_projection
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.model_folder import ModelFolder

PROMPTS = [[5, 6, 7, 8, 9], [10, 11, 12], [3] * 17]


def folder_of(graph, folder):
    demo_folder(folder)
    onnx.save(graph, str(folder / "model.onnx"))
    return folder


def keeping(graph, name, shape):
    """Let the graph give logits for its last tokens only, as many as a further input says."""
    projection = vocabulary_projection(graph)
    place = next(n for n, node in enumerate(graph.graph.node) if node is projection)
    constants = {"flat": [1], "end": [2**31 - 1], "axis": [1]}
    for key, numbers in constants.items():
        graph.graph.initializer.append(numpy_helper.from_array(np.array(numbers), f"keep_{key}"))
    nodes = [
        helper.make_node("Reshape", [name, "keep_flat"], ["keep_number"]),
        helper.make_node("Neg", ["keep_number"], ["keep_start"]),
        helper.make_node(
            "Slice", [projection.input[0], "keep_start", "keep_end", "keep_axis"], ["keep_states"]
        ),
    ]
    projection.input[0] = "keep_states"
    for node in reversed(nodes):
        graph.graph.node.insert(place, node)
    graph.graph.input.append(helper.make_tensor_value_info(name, TensorProto.INT64, shape))
    return graph


@pytest.mark.walk(2)
@pytest.mark.parametrize("shape", [[], [1]])
@pytest.mark.parametrize("name", ["num_logits_to_keep", "logits_to_keep"])
def test_a_graph_that_asks_how_many_logits_to_keep_keeps_all(tmp_path, name, shape):
    folder = folder_of(keeping(demo_graph(), name, shape), tmp_path / "m")
    assert TokenDecoder(folder, 4).answers(PROMPTS) == TokenDecoder(DEMO, 4).answers(PROMPTS)


def fix(graph, name, axis, size):
    [value] = [value for value in graph.graph.input if value.name == name]
    value.type.tensor_type.shape.dim[axis].Clear()
    value.type.tensor_type.shape.dim[axis].dim_value = size
    return graph


@pytest.mark.parametrize(
    ("name", "axis"),
    [("input_ids", 0), ("input_ids", 1), ("attention_mask", 0), ("attention_mask", 1), ("position_ids", 1),
     ("past_key_values.0.key", 0), ("past_key_values.0.key", 2), ("past_key_values.1.value", 2)],
)  # fmt: skip
def test_a_decoder_for_inputs_of_one_size_is_refused_in_our_words(tmp_path, name, axis):
    graph = demo_graph()
    folder = folder_of(fix(graph, name, axis, 128), tmp_path / "m")
    with pytest.raises(ModelError, match=rf"inputs of one size.*: {name} .*128.*fairgate export"):
        TokenDecoder(folder, 2).answers(PROMPTS)


@pytest.mark.parametrize(
    ("name", "axis"), [("input_ids", 0), ("input_ids", 1), ("attention_mask", 1)]
)
def test_an_encoder_for_inputs_of_one_size_is_refused_in_our_words(tmp_path, name, axis):
    folder = write_encoder(tmp_path / "m")
    onnx.save(
        fix(onnx.load(str(folder / "model.onnx")), name, axis, 128), str(folder / "model.onnx")
    )
    with pytest.raises(ModelError, match=rf"inputs of one size.*fixes {name} .*fairgate export"):
        OnnxEncoder(folder).embed(["a b"])


def test_a_graph_is_chosen_among_several(tmp_path):
    folder = write_encoder(tmp_path / "m")
    (folder / "onnx").mkdir()
    shutil.move(folder / "model.onnx", folder / "onnx" / "model_q4.onnx")
    shutil.copy(folder / "onnx" / "model_q4.onnx", folder / "onnx" / "model_fp16.onnx")
    with pytest.raises(ModelError, match=r"several ONNX graphs.*`file: onnx/model_fp16.onnx`"):
        ModelFolder.find(folder)
    chosen = ModelFolder.find(folder / "onnx/model_q4.onnx")
    assert (chosen.path, chosen.graph.name) == (folder, "model_q4.onnx")
    assert OnnxEncoder(folder / "onnx/model_q4.onnx").embed(["a b"]).shape == (1, 6)
    with pytest.raises(ModelError, match=r"no graph .onnx/model_q8.onnx.*model_q4.onnx"):
        ModelFolder.find(folder / "onnx/model_q8.onnx")


def test_a_graph_beside_its_own_tokenizer_is_of_that_folder(tmp_path):
    folder = write_encoder(tmp_path / "onnx")
    assert ModelFolder.find(folder / "model.onnx").path == folder
