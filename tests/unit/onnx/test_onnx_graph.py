from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import fairgate
from fairgate.onnx.projection_cut import POSITIONS_INPUT, cut_to_positions

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


def test_the_embedded_decoder_is_cut_behind_its_last_attention():
    model = onnx.load(str(DEMO))
    assert cut_to_positions(model)
    onnx.checker.check_model(model)
    gathers = [one for one in model.graph.node if one.op_type == "GatherND"]
    attended, entered = sorted(one.input[0] for one in gathers)[::-1]
    assert attended.startswith("/model/layers.2/self_attn/")
    assert entered.startswith("/model/layers.2/input_layernorm/")
    kept = {name for one in gathers for name in one.output}
    readers = {one.op_type for one in model.graph.node if kept & set(one.input)}
    assert readers == {"MatMul", "Add"}  # output projection and residual sum
    assert POSITIONS_INPUT in {one.name for one in model.graph.input}


@pytest.mark.parametrize("rows", [2, 5])
def test_a_cut_graph_gives_the_bits_of_the_whole_one(rows):
    import onnxruntime

    def run(model, feeds):
        session = onnxruntime.InferenceSession(model.SerializeToString())
        known = {one.name for one in session.get_inputs()}
        return session.run(None, {name: value for name, value in feeds.items() if name in known})

    model, size = onnx.load(str(DEMO)), 23
    rng = np.random.default_rng(rows)
    wanted = rng.integers(0, size, (rows, 3, 1))
    feeds = {
        "input_ids": rng.integers(3, 2000, (rows, size)),
        "attention_mask": np.ones((rows, size), dtype=np.int64),
        "position_ids": np.tile(np.arange(size), (rows, 1)),
        POSITIONS_INPUT: wanted,
    }
    for one in model.graph.input:
        if one.name.startswith("past"):
            feeds[one.name] = np.zeros((rows, 4, 0, 32), dtype=np.float32)
    whole, *cache = run(model, feeds)
    assert cut_to_positions(model)
    kept, *same_cache = run(model, feeds)
    assert np.array_equal(kept, np.take_along_axis(whole, wanted, axis=1))
    assert all(np.array_equal(a, b) for a, b in zip(cache, same_cache, strict=True))


BEFORE = [
    node("Reshape", ["states", "same"], "attended"),
    node("MatMul", ["attended", "square"], "mixed"),
    node("Add", ["attended", "mixed"], "sum"),
    node("ReduceMean", ["sum"], "mean"),
    node("Sub", ["sum", "mean"], "centred"),
]
BEFORE[3].attribute.append(helper.make_attribute("axes", [-1]))


def gathered(nodes, extra=()):
    model = loaded([*nodes, node("MatMul", ["centred", "weights"])])
    rng = np.random.default_rng(0)
    for name, array in {
        "same": np.array([0, 0, 4], dtype=np.int64),
        "square": rng.normal(size=(4, 4)).astype(np.float32),
        "vector": np.ones(4, dtype=np.float32),
        "by position": np.ones((1, 3, 1), dtype=np.float32),
    }.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    model.graph.output.extend(extra)
    assert cut_to_positions(model)
    return [one.input[0] for one in model.graph.node if one.op_type == "GatherND"]


def changed(place, kind, inputs, **attributes):
    nodes = list(BEFORE)
    nodes[place] = helper.make_node(kind, inputs, list(BEFORE[place].output), **attributes)
    return nodes


def test_steps_that_take_each_position_by_itself_come_after_the_cut():
    assert gathered(BEFORE) == ["attended"]
    assert gathered(changed(3, "Mul", ["sum", "vector"])) == ["attended"]


@pytest.mark.parametrize(
    ("nodes", "begin"),
    [
        (changed(3, "ReduceMean", ["sum"], axes=[1]), ["centred"]),
        (changed(3, "ReduceMean", ["sum"], axes=[-1], keepdims=0), ["centred"]),
        (changed(3, "ReduceMean", ["sum"]), ["centred"]),
        (changed(3, "Softmax", ["sum"], axis=1), ["centred"]),
        (changed(3, "Add", ["sum", "by position"]), ["sum", "mean"]),
        (changed(3, "MatMul", ["sum", "states"]), ["centred"]),
        (changed(0, "Abs", ["states"]), ["centred"]),
        (changed(1, "Abs", ["attended"]), ["centred"]),
    ],
)
def test_a_step_that_mixes_positions_or_whose_shape_is_in_doubt_stays_before_the_cut(nodes, begin):
    assert gathered(nodes) == begin


def test_what_something_else_reads_stays_before_the_cut():
    value = helper.make_tensor_value_info("sum", TensorProto.FLOAT, None)
    assert gathered(BEFORE, [value]) == ["sum"]
    assert gathered([*BEFORE, node("Shape", ["sum"], "counted")]) == ["sum"]


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
