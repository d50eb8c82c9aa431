"""What is read from a decoder's graph, and what is changed before it runs."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest
from fakes.decoders import BUILDER, BUILDER_WINDOW, DEMO, TokenDecoder, builder_folder
from onnx import TensorProto, helper, numpy_helper

from fairgate.domain.errors import ModelError
from fairgate.onnx.decoder_graph import DecoderGraph, find_width_switch, read_decoder_graph


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
    assert graph.facts.windows == {1: BUILDER_WINDOW}
    assert graph.facts.counts_rows
    assert not graph.facts.cannot_window
    assert not graph.facts.coarse
    for content in graph.contents:
        nodes = onnx.load_from_string(content).graph.node
        attributes = {one.name for node in nodes for one in node.attribute}
        assert "local_window_size" in attributes
        assert "sliding_window_cache" not in attributes


def test_the_embedded_graph_is_left_on_disk_but_for_cut_and_joint_steps():
    graph = read_decoder_graph(DEMO / "model.onnx", attends_to_all=True, joins=True)
    joined, cut, whole = graph.contents
    assert joined is not None
    assert cut is not None
    assert whole is None
    assert graph.facts.windows == {}
    assert not graph.facts.counts_rows
    assert graph.facts.switch is None


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
@pytest.mark.parametrize("by", ["Shape", "ReduceMax"])
@pytest.mark.parametrize("stored", ["node", "initializer"])
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
    assert find_width_switch(onnx, model) == last


@pytest.mark.parametrize(
    "options",
    [{"by": "itself"}, {"number": 1}, {"number": 0}, {"number": -1}],
)
def test_other_comparisons_are_no_switch(tmp_path, options):
    nodes, weights = comparing("Greater", **options)
    assert find_width_switch(onnx, saved(tmp_path, nodes, weights)) is None


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


def test_rows_of_a_graph_that_mixes_them_run_one_by_one(tmp_path, monkeypatch):
    engine = TokenDecoder(builder_folder(tmp_path / "builder"), 3, batch_size=8)
    ran = []
    prefill = engine._session.prefill
    monkeypatch.setattr(
        engine._session, "prefill", lambda rows, *given: ran.append(rows) or prefill(rows, *given)
    )
    prompts = [[3, 4], [5, 6], [7, 8]]
    together = engine.answers(prompts)
    assert [len(rows) for rows in ran] == [3]
    ran.clear()
    engine._session.one_by_one = True
    assert engine.answers(prompts) == together
    assert ran == [[prompt, prompt] for prompt in prompts]
