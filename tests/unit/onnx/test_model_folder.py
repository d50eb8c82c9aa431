import pytest
from fakes.graphs import external_tensor, graph_of, model_of
from onnx import helper

from fairgate.domain.errors import ModelError
from fairgate.onnx.model_folder import ModelFolder

ODD_NAMES = ["weights/data.bin", "LICENSE", ".git/objects/pack", "other.onnx", "deep/../down/w"]


@pytest.fixture
def folder(tmp_path):
    write_graph(tmp_path / "model.onnx")
    (tmp_path / "tokenizer.json").write_text("{}")
    return tmp_path


def write_graph(file, *locations, nested=False):
    tensors = [external_tensor(location) for location in locations]
    graph = graph_of(initializer=tensors)
    if nested:
        graph = graph_of(node=[helper.make_node("If", ["c"], ["z"], then_branch=graph)])
    file.write_bytes(model_of(graph).SerializeToString())


def fingerprint(folder, *facts):
    return ModelFolder.find(folder).fingerprint(*facts)


def written(folder, name, text):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_the_fingerprint_follows_content_and_facts(folder):
    before = fingerprint(folder, "mean")
    assert before == fingerprint(folder, "mean")
    assert before != fingerprint(folder, "cls")
    write_graph(folder / "model.onnx", "w.bin")
    assert before != fingerprint(folder, "mean")


def test_notes_licences_original_weights_and_other_graphs_do_not_count(folder):
    before = fingerprint(folder)
    notes = ("README.md", "LICENSE", "provenance.json", "model.safetensors", ".git/HEAD")
    others = (
        "model_q4.onnx",
        "model_q4.onnx_data",
        "model_q4.onnx_data_1",
        "m.onnx",
        "m.onnx.data",
    )
    for name in (*notes, *others):
        written(folder, name, "x")
    assert before == fingerprint(folder)
    written(folder, "model_q4.onnx.json", "x")
    assert before != fingerprint(folder)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_weights_count_whatever_their_file_is_called(folder, name, nested):
    written(folder, "deep/x", "")
    write_graph(folder / "model.onnx", name, nested=nested)
    file = written(folder, name, "weights")
    before = fingerprint(folder)
    file.write_text("WEIGHTS")
    assert before != fingerprint(folder)


@pytest.mark.parametrize(
    "name",
    [
        "chat_template.jinja", "additional_chat_templates/default.jinja", "adapter_config.json",
        "sentencepiece.bpe.model", "vocab.bin", "2_Normalize/config.json",
    ],
)  # fmt: skip
def test_every_file_that_somebody_may_open_counts(folder, name):
    before = fingerprint(folder)
    file = written(folder, name, "{}")
    added = fingerprint(folder)
    file.write_text('{"a": 1}')
    assert len({before, added, fingerprint(folder)}) == 3


def test_a_folder_behind_a_link_counts_and_a_link_in_a_circle_ends(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("templates")
    template = written(outside, "default.jinja", "a")
    (folder / "additional_chat_templates").symlink_to(outside)
    (outside / "again").symlink_to(folder)
    before = fingerprint(folder)
    template.write_text("b")
    assert before != fingerprint(folder)


def test_a_graph_that_cannot_be_read_makes_every_file_count(folder):
    (folder / "model.onnx").write_bytes(b"no graph")
    before = fingerprint(folder)
    written(folder, "LICENSE", "x")
    assert before != fingerprint(folder)


@pytest.mark.parametrize("name", ["/etc/hostname", "a/../../secret.bin"])
def test_weights_outside_the_folder_are_refused(folder, name):
    write_graph(folder / "model.onnx", name)
    with pytest.raises(ModelError, match=r"expected a file in the graph's own folder") as refused:
        fingerprint(folder)
    assert name in str(refused.value)


@pytest.mark.parametrize("name", ["onnx/model.onnx", "decoder.onnx", "onnx/decoder.onnx"])
def test_the_graph_is_found_by_its_name_or_as_the_only_one(tmp_path, name):
    written(tmp_path, name, "x")
    assert ModelFolder.find(tmp_path).graph == tmp_path / name


def test_broken_settings_are_a_model_error(folder):
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match="not readable JSON"):
        ModelFolder.find(folder).mapping("config.json")
    (folder / "config.json").write_text("[1]")
    with pytest.raises(ModelError, match="holds a list"):
        ModelFolder.find(folder).mapping("config.json")
