"""What is known of a model before it is exported; no torch needed."""

import json

import huggingface_hub
import pytest
from huggingface_hub.utils import filter_repo_objects

from fairgate.domain.errors import ModelError
from fairgate.features.onnx_export.command import ExportSource, checked_source

CONFIG = {"model_type": "llama", "torch_dtype": "bfloat16"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def source(folder):
    return ExportSource(name=str(folder))


@pytest.mark.parametrize(("raised", "said", "unsaid"), [
    (OSError("You are trying to access a gated repo. 403 Client Error"), "HF_TOKEN", "network"),
    (ValueError("requires you to execute the configuration file; trust_remote_code=True"), "its own code", "licence"),
    (ValueError("The checkpoint has model type `x` but Transformers does not recognize this architecture"), "does not know this model", "licence"),
    (OSError("nobody/x is not a local folder and is not a valid model identifier"), "Check the name", "licence"),
    (ConnectionError("We couldn't connect to 'https://huggingface.co'"), "Check the network", "licence"),
    (RuntimeError("something else"), "config.json", "licence"),
])  # fmt: skip
def test_advice_fits_the_error(folder, monkeypatch, raised, said, unsaid):
    import transformers

    def refuse(*_, **__):
        raise raised

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", refuse)
    with pytest.raises(ModelError) as refused:
        checked_source(source(folder), decoder=True)
    advice = str(refused.value).split(")")[-1]
    assert said in advice
    assert unsaid not in advice.lower()


def test_an_adapter_an_encoder_with_decoder_and_empty_folders_are_refused(folder, tmp_path_factory):
    (folder / "config.json").write_text(json.dumps({"model_type": "bart"}))
    with pytest.raises(ModelError, match="a bart model of encoder and decoder"):
        checked_source(source(folder), decoder=True)
    assert checked_source(source(folder), decoder=False) == source(folder)
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match="merge_and_unload"):
        checked_source(source(folder), decoder=False)
    with pytest.raises(ModelError, match=r"no folder with a config\.json and no GGUF file"):
        checked_source(source(tmp_path_factory.mktemp("empty")), decoder=True)


def test_all_files_of_a_hubs_model_are_of_one_commit(monkeypatch, tmp_path):
    asked = ExportSource(name="org/model", revision="main")
    snapshot = tmp_path / "0123abcd"
    (snapshot / "1_Pooling").mkdir(parents=True)
    (snapshot / "1_Pooling" / "config.json").write_text("{}")

    def download(name, *, revision, allow_patterns):
        assert (name, revision) == ("org/model", "main")
        wanted = ["LICENSE", "tokenizer.json", "1_Pooling/config.json", "chat_template.jinja"]
        every = [*wanted, "model.safetensors", "onnx/model.onnx"]
        assert list(filter_repo_objects(every, allow_patterns=allow_patterns)) == wanted
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    pinned = asked.pinned()
    assert pinned.revision == "0123abcd"
    assert pinned.mapping("1_Pooling/config.json") == {}
    assert pinned.file("modules.json") is None
    assert pinned.modules() == []


def test_a_folder_is_asked_of_no_hub(folder, monkeypatch):
    monkeypatch.setattr(huggingface_hub, "snapshot_download", None)
    assert source(folder).pinned() == source(folder)
