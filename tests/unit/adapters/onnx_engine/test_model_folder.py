from __future__ import annotations

import pytest

from fairgate.adapters.onnx_engine.folder import ModelFolder
from fairgate.domain.errors import ModelError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"graph")
    (tmp_path / "tokenizer.json").write_text("{}")
    return tmp_path


def test_the_fingerprint_follows_content_and_facts(folder):
    before = ModelFolder.find(folder).fingerprint("mean")
    assert before == ModelFolder.find(folder).fingerprint("mean")
    assert before != ModelFolder.find(folder).fingerprint("cls")
    (folder / "model.onnx").write_bytes(b"other graph")
    assert before != ModelFolder.find(folder).fingerprint("mean")


def test_notes_licences_and_original_weights_do_not_count(folder):
    before = ModelFolder.find(folder).fingerprint()
    for name in ("README.md", "LICENSE", "provenance.json", "model.safetensors"):
        (folder / name).write_text("x")
    assert before == ModelFolder.find(folder).fingerprint()


def test_other_graphs_and_their_data_do_not_count_but_external_data_does(folder):
    before = ModelFolder.find(folder).fingerprint()
    (folder / "model_q4.onnx").write_bytes(b"x")
    (folder / "model_q4.onnx_data").write_bytes(b"x")
    assert before == ModelFolder.find(folder).fingerprint()
    (folder / "model.onnx_data").write_bytes(b"x")
    assert before != ModelFolder.find(folder).fingerprint()


def test_the_fingerprint_does_not_depend_on_where_the_folder_is(folder, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (copy / name).write_bytes((folder / name).read_bytes())
    assert ModelFolder.find(copy).fingerprint() == ModelFolder.find(folder).fingerprint()


def test_a_graph_is_found_in_the_onnx_subfolder(tmp_path):
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").write_bytes(b"x")
    assert ModelFolder.find(tmp_path).graph == tmp_path / "onnx" / "model.onnx"


def test_the_only_graph_may_have_any_name(tmp_path):
    (tmp_path / "decoder.onnx").write_bytes(b"x")
    assert ModelFolder.find(tmp_path).graph.name == "decoder.onnx"


def test_several_graphs_without_a_plain_one_are_refused_by_name(tmp_path):
    for name in ("a.onnx", "b.onnx"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(ModelError, match=r"a\.onnx, b\.onnx"):
        ModelFolder.find(tmp_path)


def test_broken_settings_are_a_model_error(folder):
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match="not readable JSON"):
        ModelFolder.find(folder).mapping("config.json")
    (folder / "config.json").write_text("[1]")
    with pytest.raises(ModelError, match="holds a list"):
        ModelFolder.find(folder).mapping("config.json")
