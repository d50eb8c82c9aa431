from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import fairgate
from fairgate.adapters.onnx_engine.graph import POSITIONS_INPUT, cut_to_positions

np = pytest.importorskip("numpy")
DEMO = Path(fairgate.__file__).parent / "data" / "models" / "demo-slm" / "model.onnx"
WEIGHTS = numpy_helper.from_array(np.ones((4, 9), dtype=np.float32), "weights")
FACTOR = numpy_helper.from_array(np.array(0.5, dtype=np.float32), "factor")
SHAPE = numpy_helper.from_array(np.array([-1, 4], dtype=np.int64), "shape")


def loaded(nodes, opset=17):
    graph = helper.make_graph(
        nodes,
        "tail",
        [helper.make_tensor_value_info("states", TensorProto.FLOAT, ["rows", "tokens", 4])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["rows", "tokens", 9])],
        [WEIGHTS, FACTOR, SHAPE],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def node(kind, inputs, output="logits"):
    return helper.make_node(kind, inputs, [output])


def test_the_embedded_decoder_is_cut_before_its_projection():
    model = onnx.load(str(DEMO))
    assert cut_to_positions(model)
    onnx.checker.check_model(model)
    [gather] = [one for one in model.graph.node if one.op_type == "GatherND"]
    [head] = [one for one in model.graph.node if gather.output[0] in one.input]
    assert head.op_type == "MatMul"
    assert list(head.output) == ["logits"]
    assert POSITIONS_INPUT in {one.name for one in model.graph.input}


def test_elementwise_steps_between_projection_and_logits_are_followed():
    import onnxruntime

    nodes = [
        node("MatMul", ["states", "weights"], "raw"),
        node("Div", ["raw", "factor"], "scaled"),
        node("Tanh", ["scaled"], "capped"),
        node("Mul", ["factor", "capped"]),
    ]
    model = loaded(nodes)
    assert cut_to_positions(model)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    states = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 24
    [logits] = session.run(
        None, {"states": states, POSITIONS_INPUT: np.array([[[2], [0]], [[1], [1]]])}
    )
    whole = 0.5 * np.tanh(states @ np.ones((4, 9)) / 0.5)
    assert logits.shape == (2, 2, 9)
    assert logits == pytest.approx(whole[[[0, 0], [1, 1]], [[2, 0], [1, 1]]], abs=1e-5)


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param([node("Softmax", ["states"])], id="another operation comes first"),
        pytest.param([node("MatMul", ["states", "states"])], id="weights depend on the input"),
        pytest.param([node("MatMul", ["weights", "states"])], id="weights on the left"),
        pytest.param(
            [
                node("Reshape", ["states", "shape"], "flat"),
                node("MatMul", ["flat", "weights"], "raw"),
                node("Unsqueeze", ["raw", "shape"]),
            ],
            id="the projection sees no rows",
        ),
        pytest.param([node("Add", ["states", "states"])], id="a sum of two moving values"),
    ],
)
def test_a_graph_without_a_certain_place_stays_whole(nodes):
    model = loaded(nodes)
    before = model.SerializeToString()
    assert not cut_to_positions(model)
    assert model.SerializeToString() == before


def test_an_old_operator_set_stays_whole():
    assert not cut_to_positions(loaded([node("MatMul", ["states", "weights"])], opset=11))


def test_an_output_without_a_shape_is_no_obstacle():
    model = loaded([node("MatMul", ["states", "weights"])])
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert cut_to_positions(model)


def test_a_graph_that_keeps_one_position_itself_stays_whole():
    model = loaded([node("MatMul", ["states", "weights"])])
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1
    assert not cut_to_positions(model)
