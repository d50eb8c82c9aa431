"""Of a hub's model only the files are fetched that are used, and of the revision that is asked."""

import hashlib
import json
import subprocess
import sys

import pytest
from fakes.encoders import PROMPTS, encoder_graph, write_encoder
from fakes.graphs import external_tensor, graph_of, model_of
from fakes.model_hub import asking, model_hub

from fairgate.domain.errors import ModelError
from fairgate.onnx.model_folder import ModelFolder, exported_folder, fetch

FETCH = """
import json, sys
from pathlib import Path
from fairgate.onnx.model_folder import fetch
from fairgate.domain.errors import ModelError
name, revision, models = sys.argv[1:]
try:
    print(json.dumps({"folder": str(fetch(name, revision=revision or None, models=Path(models)))}))
except ModelError as error:
    print(json.dumps({"refused": str(error)}))
"""


@pytest.fixture
def ask(tmp_path):
    """Return a function that fetches a model in a process of its own: answer, files fetched."""

    def asked(name, revision="", **environment):
        with model_hub(tmp_path / "hub") as (address, fetched):
            hub = asking(address, tmp_path / "home") | {"HF_HUB_DISABLE_PROGRESS_BARS": "1"}
            done = subprocess.run(
                [sys.executable, "-c", FETCH, name, revision, str(tmp_path / "models")],
                capture_output=True, text=True, check=False, env=hub | environment,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), sorted(fetched)

    return asked


@pytest.mark.whole
def test_one_graph_its_weights_and_the_settings_are_fetched_and_nothing_else(ask, tmp_path):
    folder = write_encoder(tmp_path / "hub" / "org" / "encoder")
    (folder / "model.onnx").unlink()
    (folder / "onnx").mkdir()
    graph = encoder_graph()
    graph.graph.initializer.append(external_tensor("weights/part 1.bin", size=1))
    (folder / "onnx" / "model.onnx").write_bytes(graph.SerializeToString())
    others = [
        "onnx/model_q4.onnx", "onnx/model.onnx_data", "model.safetensors", "README.md",
        "tf_model.h5", "model.safetensors.index.json", "openvino/openvino_model.bin",
        "onnx/config.txt", "own.py",
    ]  # fmt: skip
    used = ["onnx/weights/part 1.bin", "vocab.txt", "chat_template.jinja"]
    used.append("additional_chat_templates/rag.jinja")
    for name in (*others, *used):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(hashlib.sha256(name.encode()).digest()[:4])
    answer, fetched = ask("org/encoder")
    settings = ["1_Pooling/config.json", "config.json", "modules.json", "tokenizer.json", PROMPTS]
    assert fetched == sorted(["onnx/model.onnx", *used, *settings])
    found = ModelFolder.find(type(folder)(answer["folder"]))
    assert found.fingerprint()
    again, fetched = ask("org/encoder")
    assert (again, fetched) == (answer, [])
    for no_hub in ({"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}):
        assert ask("org/encoder", **no_hub) == (answer, [])
        refused, _ = ask("org/other", **no_hub)
        assert "neither in" in refused["refused"]


def test_a_model_without_a_graph_or_with_several_is_refused_before_anything_is_fetched(
    ask, tmp_path
):
    folder = tmp_path / "hub" / "org" / "plain"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"x")
    answer, fetched = ask("org/plain")
    assert "no ONNX graph on the hub" in answer["refused"]
    assert "fairgate export org/plain" in answer["refused"]
    for name in ("a.onnx", "b.onnx"):
        (folder / name).write_bytes(b"x")
    answer, more = ask("org/plain")
    assert "a.onnx, b.onnx" in answer["refused"]
    assert fetched == more == []


def test_a_graph_that_names_weights_outside_its_folder_fetches_nothing_there(ask, tmp_path):
    folder = tmp_path / "hub" / "org" / "odd"
    folder.mkdir(parents=True)
    graph = model_of(graph_of(initializer=[external_tensor("../../../../secret")]))
    (folder / "model.onnx").write_bytes(graph.SerializeToString())
    answer, fetched = ask("org/odd")
    assert fetched == ["model.onnx"]
    with pytest.raises(ModelError, match="the graph's own folder"):
        ModelFolder.find(type(folder)(answer["folder"])).fingerprint()


def test_an_unknown_model_says_how_to_get_it(ask):
    answer, _ = ask("org/none", revision="abc")
    assert "`fairgate export org/none --revision abc`" in answer["refused"]


def test_an_export_of_another_revision_is_not_used_for_a_pinned_one(tmp_path, monkeypatch):
    import huggingface_hub

    def unreachable(*_, **__):
        raise OSError("no hub")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unreachable)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    exported_folder("org/m", tmp_path).mkdir()
    assert fetch("org/m", revision=None, models=tmp_path) == tmp_path / "org--m"
    with pytest.raises(ModelError, match="no hub"):
        fetch("org/m", revision="abc", models=tmp_path)
    pinned = exported_folder("org/m", tmp_path, "abc")
    pinned.mkdir()
    assert fetch("org/m", revision="abc", models=tmp_path) == pinned
