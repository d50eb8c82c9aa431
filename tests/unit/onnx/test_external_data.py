"""Which files a graph names, compared with the onnx package on graphs of every construct."""

from __future__ import annotations

import contextlib

import numpy as np
import onnx
import onnxruntime
import pytest
from fakes.graphs import external_tensor, graph_of, model_of
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from fairgate.onnx.graph_file import DamagedGraphError, external_locations
from fairgate.onnx.graph_structure import read_structure
from fairgate.onnx.session import operator_types


def locations(tmp_path, model):
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    return external_locations(file)


def test_a_graph_without_external_data_names_nothing(tmp_path):
    assert locations(tmp_path, model_of(graph_of())) == frozenset()


def test_initializers_are_found_whatever_their_files_are_called(tmp_path):
    names = [
        "weights/data.bin",
        "LICENSE",
        "model.safetensors",
        "NOTICE",
        "ä 中.md",
        ".gitattributes",
    ]
    model = model_of(graph_of(initializer=[external_tensor(name) for name in names]))
    assert locations(tmp_path, model) == frozenset(names)


def sparse(name):
    found = onnx.SparseTensorProto()
    found.values.CopyFrom(external_tensor(f"{name}-values"))
    found.indices.CopyFrom(external_tensor(f"{name}-indices"))
    return found


def test_sparse_initializers_are_found(tmp_path):
    model = model_of(graph_of())
    model.graph.sparse_initializer.append(sparse("s"))
    assert locations(tmp_path, model) == {"s-values", "s-indices"}


def test_attributes_subgraphs_and_functions_are_found_at_any_depth(tmp_path):
    branch = graph_of(initializer=[external_tensor("deep.bin")])
    for _ in range(25):
        branch = graph_of(node=[helper.make_node("If", ["c"], ["y"], then_branch=branch)])
    constant = helper.make_node("Constant", [], ["k"], value=external_tensor("constant.bin"))
    several = helper.make_node("X", [], ["l"], domain="d", many=[external_tensor("many.bin")])
    thin = helper.make_node("Constant", [], ["m"], sparse_value=sparse("thin"))
    graphs = helper.make_node(
        "X", [], ["n"], domain="d", gs=[graph_of(initializer=[external_tensor("gs.bin")])]
    )
    function = helper.make_function(
        "d", "f", [], ["k"], [helper.make_node("Constant", [], ["k"], value=external_tensor("function.bin"))],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    model = model_of(graph_of(node=[*branch.node, constant, several, thin, graphs]))
    model.functions.append(function)
    step = model.training_info.add()
    step.algorithm.CopyFrom(graph_of(initializer=[external_tensor("training.bin")]))
    assert locations(tmp_path, model) == {
        "deep.bin", "constant.bin", "many.bin", "thin-values", "thin-indices", "gs.bin", "function.bin", "training.bin",
    }  # fmt: skip


GROUP, NESTED = b"\xfb\x07\xfc\x07", b"\xfb\x07\x08\x01\x83\x08\x84\x08\x12\x01x\xfc\x07"
"""Fields of numbers that ONNX does not have, in a way of writing that it does not use."""


@pytest.mark.parametrize(
    ("before", "head"),
    [
        (b"", b"\xba\x80\x80\x80\x00"),
        (b"", b"\xba\x80\x80\x80\x10"),
        (b"", b"\xba\x80\x80\x80\x70"),
        (GROUP, b"\x3a"),
        (NESTED, b"\x3a"),
    ],
)
def test_whatever_onnx_runtime_opens_is_read(before, head, tmp_path):
    """Else weights that are not hashed could be computed with, and refusals passed by."""
    add = helper.make_node("Add", ["x", "at w"], ["z"])
    model = model_of(graph_of([add], [external_tensor("w")]))
    model.graph.output[0].name = "z"
    graph = before + model.graph.SerializeToString()
    model.ClearField("graph")
    size = bytes([len(graph) & 0x7F | 0x80, len(graph) >> 7])
    file = tmp_path / "model.onnx"
    file.write_bytes(before + model.SerializeToString() + head + size + graph)
    numbers = np.arange(4, dtype=np.float32)
    (tmp_path / "w").write_bytes(numbers.tobytes())
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": numbers})[-1].tolist() == (2 * numbers).tolist()
    assert external_locations(file) == {"w"}
    assert operator_types(file) == {"Identity", "Add"}
    assert read_structure(file) is None


@pytest.mark.parametrize("end", [b"", b"\x84\x08", b"\x12\x05x"])
def test_a_group_that_does_not_end_is_damage(end, tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(model_of(graph_of()).SerializeToString() + b"\xfb\x07" + end)
    with pytest.raises(DamagedGraphError):
        external_locations(file)


def test_a_tensor_in_a_group_is_none(tmp_path):
    """Protobuf passes it over, so it must not become one in a changed graph."""
    model = model_of(graph_of())
    graph = model.graph.SerializeToString()
    tensor = external_tensor("w").SerializeToString()
    model.ClearField("graph")
    graph += b"\x2b" + tensor + b"\x2c"
    size = bytes([len(graph) & 0x7F | 0x80, len(graph) >> 7])
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString() + b"\x3a" + size + graph)
    assert external_locations(file) == frozenset()
    assert not onnx.load_model_from_string(read_structure(file).content).graph.initializer


def test_tensors_are_found_whether_or_not_they_say_that_they_are_external(tmp_path):
    tensor = external_tensor("w.bin")
    tensor.ClearField("data_location")
    assert locations(tmp_path, model_of(graph_of(initializer=[tensor]))) == {"w.bin"}


@given(content=st.binary(min_size=1, max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("bytes") / "model.onnx"
    file.write_bytes(content)
    with contextlib.suppress(DamagedGraphError):
        assert isinstance(external_locations(file), frozenset)


@pytest.mark.parametrize("size", [0, 1, 40, -1])
def test_a_truncated_graph_is_refused(tmp_path, size):
    model = model_of(graph_of(initializer=[external_tensor("w.bin")]))
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString()[:size])
    with pytest.raises(DamagedGraphError):
        external_locations(file)


def test_weights_inside_the_graph_are_passed_over(tmp_path):
    tensor = TensorProto(name="w", data_type=1, dims=[1000], raw_data=b"\xff" * 4000)
    model = model_of(graph_of(initializer=[tensor, external_tensor("x")]))
    assert locations(tmp_path, model) == {"x"}
