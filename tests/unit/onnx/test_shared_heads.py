"""Keys and values that heads share are not copied for each head."""

import shutil

import numpy as np
import onnx
import pytest
from fakes.decoders import DEMO, demo_graph, session_of
from onnx import helper, numpy_helper

from fairgate.onnx import attention
from fairgate.onnx.attention import join_attention
from fairgate.onnx.decoder_graph import drop_softmax_guards, read_decoder_graph

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


def results(session):
    first, cache = session.prefill(ROWS, 48)
    before = [np.array(value.numpy()) for value in cache.values]
    second, _ = session.prefill([row[:3] for row in ROWS], 3, None, session.full_cache(before))
    return [first, second, session.step(cache, [5, 6, 7, 8])]


def test_shared_heads_are_multiplied_without_copies(folder, monkeypatch):
    session = session_of(folder)
    assert session.joins
    assert session.shares
    [best, *_] = read_decoder_graph(folder / "model.onnx", attends_to_all=True, joins=True).contents
    graph = onnx.load_model_from_string(best).graph
    branches = [a.g for node in graph.node if node.op_type == "If" for a in node.attribute]
    assert len(branches) == 6
    assert all(node.op_type != "Expand" for branch in branches for node in branch.node)
    assert not any("copied" in name for node in graph.node for name in node.output)
    own = results(session)
    monkeypatch.setattr(attention.GraphIndex, "attention", lambda self: [])
    for replaced, plain in zip(own, results(session_of(folder)), strict=True):
        assert np.allclose(replaced, plain, rtol=0, atol=1e-5 * np.abs(plain).max())


def test_heads_that_repeat_in_another_order_keep_their_attention():
    model = grouped(axis=1)
    drop_softmax_guards(model)
    before = model.SerializeToString()
    assert not join_attention(model)
    assert model.SerializeToString() == before
