"""Which files a graph names, compared with the onnx package on graphs of every construct."""

from __future__ import annotations

import contextlib

import onnx
import pytest
from fakes.graphs import external_tensor, graph_of, model_of
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from fairgate.adapters.onnx_engine.external_data import external_locations
from fairgate.adapters.onnx_engine.graph_fields import DamagedGraphError


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
