"""Keys and values that heads share are not copied for each head, and no bit changes."""

import shutil

import numpy as np
import onnx
import pytest
from fakes.decoders import DEMO, demo_graph, session_of
from onnx import helper, numpy_helper

from fairgate.onnx import attention
from fairgate.onnx.attention import join_attention
from fairgate.onnx.decoder_graph import drop_softmax_guards, read_decoder_graph
from fairgate.onnx.shared_heads import SharedHeads

RNG = np.random.default_rng(3)
ROWS = [RNG.integers(3, 1000, size).tolist() for size in (40, 7, 2, 33)]
HEADS, SHARED, SIZE = 4, 2, 32


def stored(model, name, value):
    model.graph.initializer.append(numpy_helper.from_array(np.array(value), name))
    return name


def grouped(axis=2):
    """The embedded decoder with two heads of keys and values, each for two of queries."""
    model = demo_graph()
    graph = model.graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if "/k_proj/" in node.output[0] or "/v_proj/" in node.output[0]:
            tensor = tensors[node.input[1]]
            half = numpy_helper.to_array(tensor)[:, : SHARED * SIZE]
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(half), tensor.name))
    for value in (*graph.input, *graph.output):
        if value.name.startswith(("past_key_values.", "present.")):
            value.type.tensor_type.shape.dim[1].dim_value = SHARED
    del graph.value_info[:]
    axes = stored(model, "group axis", [axis])
    wide = [1] * 5
    wide[axis] = HEADS // SHARED
    group = stored(model, "group", wide)
    shape = stored(model, "repeated", [0, HEADS, -1, SIZE])
    nodes = []
    for node in graph.node:
        node.input[:] = [
            f"{name} repeated" if name.startswith("present.") else name for name in node.input
        ]
        nodes.append(node)
        for name in node.output:
            if name.startswith("present."):
                nodes += [
                    helper.make_node("Unsqueeze", [name, axes], [f"{name} wide"]),
                    helper.make_node("Expand", [f"{name} wide", group], [f"{name} copied"]),
                    helper.make_node("Reshape", [f"{name} copied", shape], [f"{name} repeated"]),
                ]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("grouped") / "model"
    shutil.copytree(DEMO, target)
    onnx.save(grouped(), str(target / "model.onnx"))
    return target


def bits(session):
    first, cache = session.prefill(ROWS, 48)
    before = [np.array(value.numpy()) for value in cache.values]
    second, _ = session.prefill([row[:3] for row in ROWS], 3, None, session.full_cache(before))
    step = session.step(cache, [5, 6, 7, 8])
    return [array.tobytes() for array in (first, *before, second, step)]


def operators(folder, branch):
    [best, *_] = read_decoder_graph(folder / "model.onnx", attends_to_all=True, joins=True).contents
    graph = onnx.load_model_from_string(best).graph
    branches = [
        helper.get_attribute_value(attribute)
        for node in graph.node
        for attribute in node.attribute
        if attribute.name == branch
    ]
    assert len(branches) == 3
    return {node.op_type for inner in branches for node in inner.node}


def test_shared_heads_are_multiplied_with_the_bits_of_repeated_ones(folder, monkeypatch):
    assert "Expand" not in operators(folder, "else_branch")
    session = session_of(folder)
    assert session.joins
    assert session.cuts_freely
    own = bits(session)
    monkeypatch.setattr(SharedHeads, "fit", False)
    assert "Expand" in operators(folder, "else_branch")
    assert bits(session_of(folder)) == own
    monkeypatch.setattr(attention.GraphIndex, "attention", lambda self: [])
    assert bits(session_of(folder)) == own


def elsewhere_repeated():
    return grouped(axis=1)


def scores_read_twice():
    model = grouped()
    node = next(n for n in model.graph.node if n.op_type == "Softmax")
    added = next(n for n in model.graph.node if node.input[0] in n.output)
    model.graph.output.append(
        helper.make_tensor_value_info("scores shape", onnx.TensorProto.INT64, [4])
    )
    model.graph.node.append(helper.make_node("Shape", [added.input[0]], ["scores shape"]))
    return model


@pytest.mark.parametrize("build", [elsewhere_repeated, scores_read_twice])
def test_a_layer_that_repeats_heads_otherwise_is_left_as_it_is(build):
    model = build()
    drop_softmax_guards(model)
    assert join_attention(model)
    [first, *others] = [
        {inner.op_type for inner in helper.get_attribute_value(attribute).node}
        for node in model.graph.node
        for attribute in node.attribute
        if attribute.name == "else_branch"
    ]
    assert "Expand" in first
    assert ("Expand" in others[0]) is (build is elsewhere_repeated)
