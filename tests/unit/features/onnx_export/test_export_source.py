"""What is known of a model before it is exported; no torch needed."""

import json

import huggingface_hub
import pytest
from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

from fairgate.domain.errors import ModelError
from fairgate.features.onnx_export.command import ExportSource, checked_source

CONFIG = {"model_type": "llama", "torch_dtype": "bfloat16"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def source(folder):
    return ExportSource(name=str(folder))


def test_a_file_that_the_hub_lacks_is_none_and_one_it_cannot_be_asked_for_is_an_error(monkeypatch):
    hub = ExportSource(name="org/model", revision="abc")
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_, **__: None)

    def answering(error):
        def download(*_, **__):
            raise error

        monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)

    answering(_raised(EntryNotFoundError))
    assert hub.file("modules.json") is None
    answering(LocalEntryNotFoundError("the network is gone"))
    with pytest.raises(LocalEntryNotFoundError):
        hub.file("modules.json")
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_, **__: object())
    assert hub.file("modules.json") is None


def _raised(kind):
    error = kind.__new__(kind)
    Exception.__init__(error, "404")
    return error


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


def test_all_files_of_a_hubs_model_are_of_one_commit(monkeypatch):
    class Found:
        sha = "0123abcd"

    asked = ExportSource(name="org/model", revision="main")
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *_, **__: Found)
    assert asked.pinned().revision == "0123abcd"

    def unreachable(*_, **__):
        raise RuntimeError("no network")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unreachable)
    assert asked.pinned() == asked
