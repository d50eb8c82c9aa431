"""A graph that is read without its weights is the same graph, with the same bits."""

import contextlib
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
from fakes.decoders import BUILDER, DEMO, builder_folder, session_of
from fakes.graphs import external_tensor, graph_of, model_of
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import load_external_data_for_model

from fairgate.domain.errors import ModelError
from fairgate.onnx import decoder_session, graph_file
from fairgate.onnx.decoder_graph import read_decoder_graph
from fairgate.onnx.graph_file import (
    DamagedGraphError,
    external_locations,
    load_structure,
    read_structure,
)
from fairgate.onnx.model_folder import content_files
from fairgate.onnx.session import sound_model

ROWS = [[(7 * place + n) % 200 for place in range(40)] for n in range(3)]


def bits(session):
    """Return what a session computes of some rows, and what its trials found."""
    first, cache = session.prefill(ROWS, 48)
    kept = [np.array(value.numpy()) for value in cache.values]
    found = session.cut, session.pads, session.shares, session.joins
    return found, [array.tobytes() for array in (first, *kept, session.step(cache, [1, 2, 3]))]


@pytest.fixture(scope="module")
def as_before():
    """The bits of graphs that are opened with their weights in the graph."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(graph_file, "read_structure", lambda graph: None)
        return {folder: bits(session_of(folder)) for folder in (DEMO, BUILDER)}


def moved(folder, target, count):
    """Copy a folder; its weights lie `count` bytes further back in the graph's file."""
    shutil.copytree(folder, target)
    graph = (folder / "model.onnx").read_bytes()
    doc = b"\x32" + bytes([count - 2]) + b"d" * (count - 2) if count else b""
    (target / "model.onnx").write_bytes(doc + graph)
    return target


@pytest.mark.parametrize("folder", [DEMO, BUILDER], ids=["optimum", "builder"])
@pytest.mark.parametrize("count", [0, 3, 17])
def test_weights_in_the_file_give_the_same_bits_wherever_they_begin(
    folder, count, tmp_path, as_before
):
    assert bits(session_of(moved(folder, tmp_path / "moved", count))) == as_before[folder]


def test_changed_graphs_hold_no_weights():
    graph = read_decoder_graph(DEMO / "model.onnx", attends_to_all=True, joins=True)
    size = (DEMO / "model.onnx").stat().st_size
    assert [len(content) < size / 20 for content in graph.contents if content] == [True, True]
    assert graph.folder == DEMO.resolve()


def test_a_link_to_a_graph_in_another_folder_opens_as_the_graph_does(tmp_path, as_before):
    """As a hub's cache has it: the names are links to files that are called by their hashes."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    for file in DEMO.iterdir():
        stored = tmp_path / "blobs" / f"hash-of-{file.stem}"
        shutil.copy(file, stored)
        (tmp_path / "snapshot" / file.name).symlink_to(f"../blobs/{stored.name}")
    assert bits(session_of(tmp_path / "snapshot")) == as_before[DEMO]


WEIGHTS = np.arange(512, dtype=np.float32)


def tensor(name="w", **fields):
    found = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[len(WEIGHTS)])
    for field, value in fields.items():
        if isinstance(value, bytes):
            setattr(found, field, value)
        else:
            getattr(found, field).extend(value)
    return found


def written(path, *weights, **made):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [512]) for name in "xy"]
    node = helper.make_node("Add", ["x", weights[0].name], ["y"])
    graph = helper.make_graph([node], "g", values[:1], values[1:], list(weights))
    graph.doc_string = made.pop("doc", "")
    return path.write_bytes(helper.make_model(graph, **made).SerializeToString()) and path


def initializers(model):
    return {one.name: numpy_helper.to_array(one).tobytes() for one in model.graph.initializer}


def restored(structure):
    """Return the graph of a structure with its weights."""
    content, folder = structure
    model = onnx.load_model_from_string(content)
    load_external_data_for_model(model, str(folder))
    return model


RAW = tensor(raw_data=WEIGHTS.tobytes())


@pytest.mark.parametrize(
    ("weights", "references"),
    [
        ([RAW], 1),
        ([RAW, tensor("v", raw_data=WEIGHTS[::-1].tobytes())], 2),
        ([tensor(float_data=WEIGHTS.tolist())], 0),
        ([tensor("small", raw_data=WEIGHTS[:255].tobytes())], 0),
        ([RAW, numpy_helper.from_array(np.float32([1, 2]), "small")], 1),
        ([tensor("ü\n" * 50, raw_data=WEIGHTS.tobytes())], 1),
    ],
)
def test_every_way_to_write_weights_is_read_as_protobuf_reads_it(weights, references, tmp_path):
    for one in weights:
        if one.name == "small":
            one.dims[:] = [len(one.raw_data) // 4]
    path = written(tmp_path / "mödel x.onnx", *weights)
    structure = read_structure(path)
    assert structure[0].count(b"\x0a\x08location") == references
    assert initializers(restored(structure)) == initializers(onnx.load(str(path)))


def named(entry):
    """Return a model whose second tensor has its values in another file, the entry as it is given."""
    weights = [RAW, external_tensor("others", len(WEIGHTS))]
    content = model_of(graph_of(initializer=weights)).SerializeToString()
    assert content.count(PLAIN) == 1
    return content.replace(PLAIN, entry)


PLAIN, LONG = b"\x0a\x08location\x12\x06others", b"\x0a\x88\x00location\x12\x05other"
"""An entry as it is written, and one of another file with a length in two bytes, which is legal."""


@pytest.mark.parametrize(("entry", "name"), [(PLAIN, "others"), (LONG, "other")])
def test_the_weights_of_a_linked_graph_are_those_that_are_hashed(entry, name, tmp_path):
    """Beside the link, as ONNX Runtime has it; not beside the file that it leads to."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    for folder, weights in ((blobs, WEIGHTS), (snapshot, WEIGHTS[::-1])):
        folder.mkdir()
        (folder / name).write_bytes(weights.tobytes())
    (blobs / "hash").write_bytes(named(entry))
    graph = snapshot / "model.onnx"
    graph.symlink_to("../blobs/hash")
    assert read_structure(graph) is None
    model, folder = load_structure(graph)
    load_external_data_for_model(model, str(folder or graph.parent))
    assert snapshot / name in content_files(snapshot, graph)
    assert initializers(model)["at others"] == (snapshot / name).read_bytes()


def test_a_graph_that_is_cut_off_anywhere_is_damaged(tmp_path):
    content = written(tmp_path / "model.onnx", RAW).read_bytes()
    for end in range(len(content) - 2500, len(content), 7):
        (tmp_path / "model.onnx").write_bytes(content[:end])
        with pytest.raises(DamagedGraphError):
            read_structure(tmp_path / "model.onnx")


@pytest.mark.parametrize("change", ["grows", "is replaced", "is removed"])
def test_a_graph_that_changes_while_it_is_opened_is_an_error(change, tmp_path, monkeypatch):
    """Else places of weights in one file would be read in another."""
    folder, opened = builder_folder(tmp_path / "model"), decoder_session.open_session

    def changes(graph, **options):
        session = opened(graph, **options)
        content = graph.read_bytes()
        if change == "grows":
            graph.write_bytes(content + b"\x32\x00")
        else:
            graph.unlink()
        if change == "is replaced":
            (folder / "new").write_bytes(content)
            (folder / "new").rename(graph)
        return session

    monkeypatch.setattr(decoder_session, "open_session", changes)
    with pytest.raises(ModelError, match="was changed while it was opened"):
        session_of(folder)


def locations(tmp_path, model):
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    return external_locations(file)


def sparse(name):
    found = onnx.SparseTensorProto()
    found.values.CopyFrom(external_tensor(f"{name}-values"))
    found.indices.CopyFrom(external_tensor(f"{name}-indices"))
    return found


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


@pytest.mark.parametrize("size", [10, 2**17])
def test_external_data_of_a_node_are_found_whatever_its_size(size, tmp_path):
    constant = helper.make_node(
        "Constant", [], ["k"], value=external_tensor("constant.bin"), doc_string="d" * size
    )
    assert locations(tmp_path, model_of(graph_of(node=[constant]))) == {"constant.bin"}


GROUP, NESTED = b"\xfb\x07\xfc\x07", b"\xfb\x07\x08\x01\x83\x08\x84\x08\x12\x01x\xfc\x07"
"""Fields of numbers that ONNX does not have, in a way of writing that it does not use."""


@pytest.mark.parametrize(
    ("before", "head"),
    [
        (b"", b"\xba\x80\x80\x80\x00"), (b"", b"\xba\x80\x80\x80\x10"),
        (b"", b"\xba\x80\x80\x80\x70"), (GROUP, b"\x3a"), (NESTED, b"\x3a"),
    ],
)  # fmt: skip
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
    with contextlib.suppress(ModelError), sound_model(file) as (found, _):  # read or refused
        assert {node.op_type for node in found.graph.node} == {"Identity", "Add"}
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
    assert not onnx.load_model_from_string(read_structure(file)[0]).graph.initializer


@given(content=st.binary(min_size=1, max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("bytes") / "model.onnx"
    file.write_bytes(content)
    with contextlib.suppress(DamagedGraphError):
        assert isinstance(external_locations(file), frozenset)
