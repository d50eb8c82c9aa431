"""What is known of a model before it is exported; no torch needed."""

import json
import os
import struct

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
from safetensors.numpy import save_file

from fairgate.domain.errors import ModelError
from fairgate.features.onnx_export import command
from fairgate.features.onnx_export.command import ExportSource, checked_source, memory_line

CONFIG = {"model_type": "llama", "torch_dtype": "bfloat16"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def source(folder):
    return ExportSource(name=str(folder))


def safetensors(file, **shapes):
    save_file({name: np.zeros(shape, np.float16) for name, shape in shapes.items()}, file)


def test_the_size_in_fp32_is_counted_from_the_headers_of_all_parts(folder):
    safetensors(folder / "model-00001-of-00002.safetensors", a=[1000, 1000], b=[3])
    safetensors(folder / "model-00002-of-00002.safetensors", c=[1000], d=[])
    assert source(folder).fp32_bytes() == 4 * (1_000_000 + 3 + 1000 + 1)


@pytest.mark.parametrize("content", [b"", b"x" * 8, struct.pack("<Q", 1 << 40), struct.pack("<Q", 2) + b"[]"])  # fmt: skip
def test_damaged_weights_have_no_known_size(folder, content):
    (folder / "model.safetensors").write_bytes(content)
    assert source(folder).fp32_bytes() is None


def test_the_memory_line_names_need_and_supply_before_anything_is_loaded(folder, monkeypatch):
    safetensors(folder / "model.safetensors", a=[1 << 20])
    monkeypatch.setattr(command, "free_bytes", lambda: 80_000_000)
    assert memory_line(source(folder)) == (
        "the export needs about 17 MB of memory, 4 times the weights in fp32 (4 MB); 80 MB are "
        "available"
    )
    monkeypatch.setattr(command, "free_bytes", lambda: None)
    monkeypatch.setattr(os, "sysconf_names", {})
    assert memory_line(source(folder)).endswith("(4 MB)")
    (folder / "model.safetensors").unlink()
    assert "about 4 times the memory of the weights" in memory_line(source(folder))


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
