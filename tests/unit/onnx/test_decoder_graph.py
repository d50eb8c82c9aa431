"""What is read from a decoder's graph, and what is changed before it runs."""

import sys

import numpy as np
import onnx
import pytest
from fakes.decoders import BUILDER, BUILDER_WINDOW, DEMO, demo_folder, session_of
from onnx import TensorProto, helper, numpy_helper

from fairgate.domain.errors import ModelError
from fairgate.onnx import decoder_graph, decoder_session
from fairgate.onnx.attention import GraphIndex
from fairgate.onnx.decoder_graph import (
    POSITIONS_INPUT,
    DecoderGraph,
    cut_to_positions,
    drop_softmax_guards,
    project_as_stored,
    read_decoder_graph,
    width_switch,
)


def saved(tmp_path, nodes, initializers=()):
    rows = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["rows", "width"])
    places = helper.make_tensor_value_info("position_ids", TensorProto.INT64, ["rows", "new"])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [rows, places], [logits], list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(tmp_path / "model.onnx"))
    return model


def test_a_builders_graph_tells_its_windows_and_gets_caches_that_grow():
    graph = read_decoder_graph(BUILDER / "model.onnx", attends_to_all=True)
    assert graph.facts.windows == {BUILDER_WINDOW}
    assert graph.facts.counts_rows
    assert not graph.facts.coarse
    for content in graph.contents:
        nodes = onnx.load_from_string(content).graph.node
        attributes = {one.name for node in nodes for one in node.attribute}
        assert "local_window_size" in attributes
        assert "sliding_window_cache" not in attributes


def test_a_damaged_graph_is_left_to_the_session(tmp_path):
    (tmp_path / "model.onnx").write_bytes((DEMO / "model.onnx").read_bytes()[:5000])
    assert read_decoder_graph(tmp_path / "model.onnx", attends_to_all=True) == DecoderGraph()


def test_without_the_onnx_package_no_decoder_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModelError, match=r"package 'onnx'.*fairgate\[cpu\]"):
        read_decoder_graph(DEMO / "model.onnx", attends_to_all=True)


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        (helper.make_node("Cast", ["position_ids"], ["logits"], to=TensorProto.FLOAT16), None),
        (helper.make_node("Cast", ["position_ids"], ["logits"], to=TensorProto.BFLOAT16), None),
        (helper.make_node("MatMulNBits", ["x"], ["logits"], accuracy_level=4), None),
        (helper.make_node("Add", ["position_ids", "w"], ["logits"]), np.float16),
        (helper.make_node("Add", ["position_ids", "w"], ["logits"]), np.float32),
        (helper.make_node("MatMulNBits", ["x"], ["logits"], accuracy_level=0), None),
        (helper.make_node("Cast", ["position_ids"], ["logits"], to=TensorProto.FLOAT), None),
    ],
)
def test_what_a_graph_computes_in_is_told(tmp_path, node, kind):
    weights = [] if kind is None else [numpy_helper.from_array(np.ones(1, dtype=kind), "w")]
    saved(tmp_path, [node], weights)
    coarse = kind is np.float16 or any(
        one.i in {TensorProto.FLOAT16, TensorProto.BFLOAT16, 4} for one in node.attribute
    )
    assert read_decoder_graph(tmp_path / "model.onnx", attends_to_all=True).facts.coarse is coarse


def comparing(op, *, by="Shape", constant="right", number=256, stored="node"):
    """Return nodes that compare a width with a number, as the builder lays them out."""
    tensor = numpy_helper.from_array(np.array(number, dtype=np.int64), "")
    nodes = [helper.make_node("Constant", [], ["number"], value=tensor)] if stored == "node" else []
    if by == "Shape":
        index = numpy_helper.from_array(np.array(1, dtype=np.int64), "")
        nodes += [
            helper.make_node("Constant", [], ["one"], value=index),
            helper.make_node("Shape", ["attention_mask"], ["shape"]),
            helper.make_node("Gather", ["shape", "one"], ["width"]),
        ]
    elif by == "ReduceMax":
        nodes.append(helper.make_node("ReduceMax", ["position_ids"], ["width"]))
    else:
        nodes.append(helper.make_node("Cast", ["position_ids"], ["width"], to=TensorProto.INT64))
    sides = ["width", "number"] if constant == "right" else ["number", "width"]
    nodes.append(helper.make_node(op, sides, ["logits"]))
    return nodes, [] if stored == "node" else [numpy_helper.from_array(np.array(number), "number")]


@pytest.mark.parametrize(
    ("op", "constant"),
    [(op, side) for op in ("Greater", "GreaterOrEqual", "Less", "LessOrEqual") for side in ("left", "right")],
)  # fmt: skip
@pytest.mark.parametrize(("by", "stored"), [("Shape", "node"), ("ReduceMax", "initializer")])
def test_the_switch_is_the_last_width_on_the_near_side(tmp_path, op, constant, by, stored):
    nodes, weights = comparing(op, by=by, constant=constant, stored=stored)
    model = saved(tmp_path, nodes, weights)
    compare = {
        "Greater": np.greater, "GreaterOrEqual": np.greater_equal,
        "Less": np.less, "LessOrEqual": np.less_equal,
    }[op]  # fmt: skip
    widths = np.arange(250, 262)
    sides = compare(widths, 256) if constant == "right" else compare(256, widths)
    last = int(widths[:-1][sides[:-1] != sides[1:]][0])
    assert width_switch(GraphIndex(model)) == last


@pytest.mark.parametrize(
    "options", [{"by": "itself"}, {"number": 1}, {"number": 0}, {"number": -1}]
)
def test_other_comparisons_are_no_switch(tmp_path, options):
    nodes, weights = comparing("Greater", **options)
    assert width_switch(GraphIndex(saved(tmp_path, nodes, weights))) is None


@pytest.mark.parametrize(
    ("operators", "mixes"),
    [
        (["MoE"], True),
        (["QMoE"], True),
        (["MatMul"], False),
        (["TopK"], False),
        (["MatMulNBits"], False),
        (["NonZero", "MatMul"], False),
        (["NonZero", "MatMulNBits"], True),
    ],
)
def test_experts_that_share_a_product_between_rows_are_told(tmp_path, operators, mixes):
    saved(tmp_path, [helper.make_node(name, ["position_ids"], [name]) for name in operators])
    assert (
        read_decoder_graph(tmp_path / "model.onnx", attends_to_all=True).facts.mixes_rows is mixes
    )


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


UNCERTAIN = {
    "another operation comes first": [node("Softmax", ["states"])],
    "weights depend on the input": [node("MatMul", ["states", "states"])],
    "weights on the left": [node("MatMul", ["weights", "states"])],
    "the projection sees no rows": [
        node("Reshape", ["states", "shape"], "flat"),
        node("MatMul", ["flat", "weights"], "raw"),
        node("Unsqueeze", ["raw", "shape"]),
    ],
    "a sum of two moving values": [node("Add", ["states", "states"])],
}


@pytest.mark.parametrize("why", UNCERTAIN)
def test_a_graph_without_a_certain_place_stays_whole(why):
    model = loaded(UNCERTAIN[why])
    before = model.SerializeToString()
    assert not cut_to_positions(model)
    assert model.SerializeToString() == before


LAYERS = 3


def operators(model):
    return [node.op_type for node in model.graph.node]


def demo():
    return onnx.load(str(DEMO / "model.onnx"))


def logits(folder=DEMO):
    """Return the logits of prompts of unlike lengths in one batch, and of two steps after them."""
    numbers = np.random.default_rng(5)
    rows = [numbers.integers(3, 2000, size).tolist() for size in (1, 7, 64, 300)]
    session = session_of(folder)
    first, cache = session.prefill(rows, 320)
    return [first, *(session.step(cache, [token, 5, 6, token]) for token in (9, 11))]


def test_answers_stay_the_same_bit_by_bit_without_the_guards_of_softmax(monkeypatch):
    # Attention is replaced where no softmax has a guard: its bits are others.
    monkeypatch.setattr(decoder_graph, "join_attention", lambda _: False)
    without = logits()
    monkeypatch.setattr(decoder_graph, "drop_softmax_guards", lambda _: 0)
    for plain, guarded in zip(without, logits(), strict=True):
        assert np.array_equal(plain, guarded)


def tied(model, kind=np.float32):
    """Let a model write with vectors that it stores by row, as it reads with them."""
    [last] = [n for n in model.graph.node if n.output[0] == "logits"]
    [weights] = [t for t in model.graph.initializer if t.name == last.input[1]]
    rows = np.ascontiguousarray(numpy_helper.to_array(weights).T).astype(kind)
    weights.CopyFrom(numpy_helper.from_array(rows, "vectors"))
    place = list(model.graph.node).index(last)
    model.graph.node.insert(
        place, helper.make_node("Transpose", ["vectors"], ["turned"], perm=[1, 0])
    )
    last.input[1] = "turned"
    return model


def test_vectors_of_the_vocabulary_are_multiplied_as_they_are_stored(tmp_path, monkeypatch):
    folder = demo_folder(tmp_path / "model")
    onnx.save(tied(demo()), str(folder / "model.onnx"))
    [best, *_] = read_decoder_graph(
        folder / "model.onnx", attends_to_all=True, on_cpu=True
    ).contents
    graph = onnx.load_model_from_string(best).graph
    assert [n.op_type for n in graph.node if "vectors" in n.input] == ["FusedMatMul"]
    assert not any("turned" in n.output for n in graph.node)
    own = logits(folder)
    monkeypatch.setattr(decoder_graph, "project_as_stored", lambda _: False)
    for stored, turned in zip(own, logits(folder), strict=True):
        assert np.array_equal(stored, turned)


def test_vectors_that_are_stored_otherwise_are_left_as_they_are():
    for model in (demo(), tied(demo(), np.float16)):
        before = model.SerializeToString()
        assert not project_as_stored(model)
        assert model.SerializeToString() == before


def test_without_positions_keys_and_values_are_the_same_and_no_logits_are_computed():
    session, rows = session_of(), [[5, 6, 7], [8, 9]]
    logits, cache = session.prefill(rows, 4)
    none, same = session.prefill(rows, 4, np.zeros((2, 0), dtype=np.int64))
    assert none.shape == (2, 0, logits.shape[2])
    for own, value in zip(same.values, cache.values, strict=True):
        assert np.array_equal(own.numpy(), value.numpy())


def test_all_checks_of_an_export_are_taken_out_and_the_graph_stays_valid():
    model = demo()
    assert operators(model).count("IsNaN") == operators(model).count("Softmax") == LAYERS
    others = operators(model).count("Where") - LAYERS
    assert drop_softmax_guards(model) == LAYERS
    onnx.checker.check_model(model)
    assert "IsNaN" not in operators(model)
    assert operators(model).count("Where") == others
    assert drop_softmax_guards(model) == 0


@pytest.mark.parametrize(
    ("settings", "is_dropped"),
    [
        ({}, True),
        ({"sliding_window": None}, True),
        ({"sliding_window": 4096}, False),
        ({"text_config": {"attention_chunk_size": 8192}}, False),
        ({"attention_types": [[["global", "local"], 12]], "window_size": 256}, False),
    ],
)
def test_models_that_attend_to_a_part_keep_it(tmp_path, monkeypatch, settings, is_dropped):
    folder = demo_folder(tmp_path / "model", config=settings)
    seen = []
    read = decoder_session.read_decoder_graph
    monkeypatch.setattr(
        decoder_session,
        "read_decoder_graph",
        lambda *given, **named: seen.append(read(*given, **named)) or seen[0],
    )
    session_of(folder)
    best = onnx.load_model_from_string(seen[0].contents[0])
    assert ("IsNaN" not in operators(best)) is is_dropped
