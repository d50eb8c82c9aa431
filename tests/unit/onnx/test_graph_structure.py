"""A graph that is read without its weights is the same graph, with the same bits."""

from __future__ import annotations

import os
import shutil

import numpy as np
import onnx
import pytest
from fakes.decoders import BUILDER, DEMO, builder_folder
from fakes.graphs import external_tensor, graph_of, model_of
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import load_external_data_for_model

from fairgate.domain.errors import ModelError
from fairgate.onnx import decoder_opening, graph_structure
from fairgate.onnx.decoder_graph import read_decoder_graph
from fairgate.onnx.decoder_session import DecoderSession
from fairgate.onnx.graph_file import DamagedGraphError
from fairgate.onnx.graph_structure import load_structure, read_structure
from fairgate.onnx.model_folder import ModelFolder, content_files

ROWS = [[(7 * place + n) % 200 for place in range(40)] for n in range(3)]


def session_of(folder):
    return DecoderSession(ModelFolder.find(folder), device="cpu", threads=1)


def bits(session):
    """Return what a session computes of some rows, and what its trials found."""
    first, cache = session.prefill(ROWS, 48)
    kept = [np.array(value.numpy()) for value in cache.values]
    found = session.cut, session.pads, session.shares, session.cuts_freely, session.joins
    return found, [array.tobytes() for array in (first, *kept, session.step(cache, [1, 2, 3]))]


@pytest.fixture(scope="module")
def as_before():
    """The bits of graphs that are opened with their weights in the graph."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(graph_structure, "read_structure", lambda graph: None)
        return {folder: bits(session_of(folder)) for folder in (DEMO, BUILDER)}


def moved(folder, target, count):
    """Copy a folder; its weights lie `count` bytes further back in the graph's file."""
    shutil.copytree(folder, target)
    graph = (folder / "model.onnx").read_bytes()
    doc = b"\x32" + bytes([count - 2]) + b"d" * (count - 2) if count else b""
    (target / "model.onnx").write_bytes(doc + graph)
    return target


@pytest.mark.parametrize("folder", [DEMO, BUILDER], ids=["optimum", "builder"])
@pytest.mark.parametrize("count", [0, 2, 3, 5, 9, 17])
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
    model = onnx.load_model_from_string(structure.content)
    load_external_data_for_model(model, str(structure.folder))
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
    assert structure.content.count(b"\x0a\x08location") == references
    assert initializers(restored(structure)) == initializers(onnx.load(str(path)))


def varint(number):
    return bytes([number & 0x7F | 0x80, number >> 7])


def test_a_tensor_with_its_values_twice_stays_as_it_is(tmp_path):
    """Protobuf takes the last of a repeated field."""
    path = written(tmp_path / "model.onnx", RAW)
    model = onnx.load(str(path))
    twice = RAW.SerializeToString() + b"\x4a\x80\x10" + WEIGHTS[::-1].tobytes()
    del model.graph.initializer[:]
    graph = model.graph.SerializeToString() + b"\x2a" + varint(len(twice)) + twice
    model.ClearField("graph")
    path.write_bytes(model.SerializeToString() + b"\x3a" + varint(len(graph)) + graph)
    expected = initializers(onnx.load(str(path)))
    assert expected == {"w": WEIGHTS[::-1].tobytes()}
    assert initializers(restored(read_structure(path))) == expected


def test_a_graph_that_is_written_in_two_parts_is_not_taken_apart(tmp_path):
    path = written(tmp_path / "model.onnx", RAW)
    path.write_bytes(path.read_bytes() + b"\x3a\x00")
    assert read_structure(path) is None


def test_weights_in_another_file_are_left_to_the_reader_of_the_whole_graph(tmp_path):
    other = tensor("v", external_data=[], raw_data=b"")
    entry = other.external_data.add()
    entry.key, entry.value = "location", "weights.data"
    other.data_location = TensorProto.EXTERNAL
    assert read_structure(written(tmp_path / "model.onnx", RAW, other)) is None


def named(place):
    """Return a model whose tensor in `place` has its values in the file `others`."""
    other = external_tensor("others", len(WEIGHTS))
    constant = helper.make_node("Constant", [], ["k"], value=other)
    inner = graph_of(initializer=[other])
    model = model_of(graph_of(initializer=[RAW]))
    if place == "initializer":
        model.graph.initializer.append(other)
    elif place == "sparse initializer":
        model.graph.sparse_initializer.add().values.CopyFrom(other)
    elif place == "attribute":
        model.graph.node.append(constant)
    elif place == "subgraph":
        model.graph.node.append(helper.make_node("If", ["c"], ["n"], then_branch=inner))
    elif place == "function":
        imports = [helper.make_opsetid("", 17)]
        model.functions.append(helper.make_function("d", "f", [], ["k"], [constant], imports))
    else:
        model.training_info.add().algorithm.CopyFrom(inner)
    return model


PLACES = [
    "initializer", "sparse initializer", "attribute", "subgraph", "function", "training info"
]  # fmt: skip
PLAIN, LONG = b"\x0a\x08location\x12\x06others", b"\x0a\x88\x00location\x12\x05other"
"""An entry as it is written, and one of another file with a length in two bytes, which is legal."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("entry", [PLAIN, LONG], ids=["plain", "long"])
def test_a_named_file_is_found_wherever_and_however_it_is_written(place, entry, tmp_path):
    content = named(place).SerializeToString()
    assert content.count(PLAIN) == 1
    (tmp_path / "model.onnx").write_bytes(content.replace(PLAIN, entry))
    assert read_structure(tmp_path / "model.onnx") is None


@pytest.mark.parametrize(("entry", "name"), [(PLAIN, "others"), (LONG, "other")])
def test_the_weights_of_a_linked_graph_are_those_that_are_hashed(entry, name, tmp_path):
    """Beside the link, as ONNX Runtime has it; not beside the file that it leads to."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    content = named("initializer").SerializeToString().replace(PLAIN, entry)
    for folder, weights in ((blobs, WEIGHTS), (snapshot, WEIGHTS[::-1])):
        folder.mkdir()
        (folder / name).write_bytes(weights.tobytes())
    (blobs / "hash").write_bytes(content)
    graph = snapshot / "model.onnx"
    graph.symlink_to("../blobs/hash")
    model, folder = load_structure(graph)
    load_external_data_for_model(model, str(folder or graph.parent))
    assert snapshot / name in content_files(snapshot, graph)
    assert initializers(model)["at others"] == (snapshot / name).read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="names are Unicode there")
def test_a_name_that_no_graph_can_hold_is_not_named(tmp_path):
    path = tmp_path / os.fsdecode(b"model-\xff.onnx")
    assert read_structure(written(path, RAW)) is None


def test_a_graph_that_is_cut_off_anywhere_is_damaged(tmp_path):
    content = written(tmp_path / "model.onnx", RAW).read_bytes()
    for end in range(len(content) - 2500, len(content), 7):
        (tmp_path / "model.onnx").write_bytes(content[:end])
        with pytest.raises(DamagedGraphError):
            read_structure(tmp_path / "model.onnx")


@pytest.mark.parametrize("change", ["grows", "is replaced", "is removed"])
def test_a_graph_that_changes_while_it_is_opened_is_an_error(change, tmp_path, monkeypatch):
    """Else places of weights in one file would be read in another."""
    folder, opened = builder_folder(tmp_path / "model"), decoder_opening.open_session

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

    monkeypatch.setattr(decoder_opening, "open_session", changes)
    with pytest.raises(ModelError, match="was changed while it was opened"):
        session_of(folder)
