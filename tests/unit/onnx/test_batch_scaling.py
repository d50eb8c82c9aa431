"""Graphs that quantise over the whole batch are found out, decoders and encoders."""

from __future__ import annotations

import shutil
from pathlib import Path

import onnx
import pytest
from fakes.graphs import graph_of, model_of
from onnx import helper

import fairgate
from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.session import operator_types, refuse_batch_scaling

MODELS = Path(fairgate.__file__).parent / "data" / "models"
DYNAMIC = (
    "DynamicQuantizeLinear",
    "DynamicQuantizeMatMul",
    "MatMulInteger",
    "MatMulIntegerToFloat",
    "ConvInteger",
    "DynamicQuantizeLSTM",
    "QAttention",
)


def written(tmp_path, model):
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    return file


@pytest.mark.filterwarnings("ignore")
def test_a_dynamically_quantised_decoder_is_refused_and_the_alternative_named(tmp_path):
    from onnxruntime.quantization import quantize_dynamic

    folder = tmp_path / "decoder"
    shutil.copytree(MODELS / "demo-slm", folder)
    quantize_dynamic(MODELS / "demo-slm" / "model.onnx", folder / "model.onnx")
    engine = OnnxDecoder(folder, decoding=Decoding())
    with pytest.raises(ModelError, match=r"DynamicQuantizeLinear.*whole batch.*--precision int8"):
        list(engine.generate([GenerationRequest(prompt="Is it good?")]))


def test_a_dynamically_quantised_encoder_is_refused_and_the_alternative_named(tmp_path):
    folder = tmp_path / "encoder"
    shutil.copytree(MODELS / "minilm", folder)
    model = onnx.load(str(folder / "model.onnx"))
    [last] = [node for node in model.graph.node if "last_hidden_state" in node.output]
    last.output[0] = "exact"
    model.graph.node.extend(
        [
            helper.make_node("DynamicQuantizeLinear", ["exact"], ["codes", "scale", "zero"]),
            helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["last_hidden_state"]),
        ]
    )
    onnx.save(model, str(folder / "model.onnx"))
    with pytest.raises(ModelError, match=r"DynamicQuantizeLinear.*whole batch.*--precision int8"):
        OnnxEncoder(folder).embed(["Is it good?"])


@pytest.mark.parametrize("operator", DYNAMIC)
def test_every_operator_of_dynamic_quantisation_is_found_in_branches_and_functions(
    tmp_path, operator
):
    node = helper.make_node(operator, ["x"], ["z"], domain="com.microsoft")
    branch = helper.make_node("If", ["c"], ["y"], then_branch=graph_of(node=[node]))
    deeper = helper.make_node("If", ["c"], ["y"], else_branch=graph_of(node=[branch]))
    function = helper.make_function(
        "d", "f", ["x"], ["z"], [node], [helper.make_opsetid("com.microsoft", 1)]
    )
    with_function = model_of(graph_of())
    with_function.functions.append(function)
    for model in (
        model_of(graph_of(node=[node])),
        model_of(graph_of(node=[deeper])),
        with_function,
    ):
        with pytest.raises(ModelError, match=operator):
            refuse_batch_scaling(written(tmp_path, model))


def test_operators_are_those_that_the_onnx_package_reads():
    for model in ("demo-slm", "minilm"):
        file = MODELS / model / "model.onnx"
        nodes = onnx.load(str(file), load_external_data=False).graph.node
        assert operator_types(file) == {node.op_type for node in nodes}
        refuse_batch_scaling(file)


def test_weights_in_blocks_and_static_scales_pass(tmp_path):
    nodes = [
        helper.make_node(kind, ["x"], [kind], domain="com.microsoft")
        for kind in ("MatMulNBits", "GatherBlockQuantized", "QMoE")
    ]
    nodes += [helper.make_node(kind, ["x"], [kind]) for kind in ("QLinearMatMul", "QuantizeLinear")]
    refuse_batch_scaling(written(tmp_path, model_of(graph_of(node=nodes))))


def test_a_damaged_file_is_left_to_the_session_that_opens_it(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"\x0a")
    refuse_batch_scaling(tmp_path / "model.onnx")
    refuse_batch_scaling(tmp_path / "none.onnx")
