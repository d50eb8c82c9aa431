"""What is known here of an architecture's windows is what `transformers` knows of them."""

import json
import sys

import pytest

from fairgate.domain.errors import ModelError
from fairgate.onnx import attention_settings
from fairgate.onnx.attention_settings import read_attention_settings
from fairgate.onnx.model_folder import ModelFolder

KINDS = sorted(attention_settings._SAYS_ITSELF | attention_settings._ALL_LAYERS_FULL | {"mistral"})
SMALL = {"num_hidden_layers": 4}
SWITCHED_ON = {"sliding_window": 64, "use_sliding_window": True}
FACTORS = {"type": "longrope", "short_factor": [1.0] * 48, "long_factor": [2.0] * 48}
POSITIONS = {"max_position_embeddings": 131072, "original_max_position_embeddings": 4096}
SETTINGS = {
    "nothing": {},
    "a window": {"sliding_window": 64},
    "no window": {"sliding_window": None},
    "a window that is off": {"sliding_window": 64, "use_sliding_window": False},
    "a window that is on": {**SWITCHED_ON, "max_window_layers": 2},
    "layers": {**SWITCHED_ON, "layer_types": ["full_attention", "sliding_attention"] * 2},
    "two sets of factors": {**POSITIONS, "rope_scaling": FACTORS},
}


def folder_with(place, config=None, builder=None):
    place.mkdir(exist_ok=True)
    (place / "model.onnx").write_bytes(b"")
    for name, content in (("config.json", config), ("genai_config.json", builder)):
        if content is not None:
            (place / name).write_text(json.dumps(content))
    return ModelFolder.find(place)


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_that_is_known_here(tmp_path, monkeypatch, kind):
    folders = [
        folder_with(tmp_path / name, {"model_type": kind, **SMALL, **settings})
        for name, settings in SETTINGS.items()
    ]
    ours = [*map(read_attention_settings, folders)]
    monkeypatch.setattr(attention_settings, "_known_here", lambda *_: None)
    assert dict(zip(SETTINGS, ours, strict=True)) == {
        name: read_attention_settings(folder)
        for name, folder in zip(SETTINGS, folders, strict=True)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_in_a_builder_s_folder(tmp_path, monkeypatch, kind):
    decoder = {"num_hidden_layers": 4, "sliding_window": {"window_size": 64, "layers": [1]}}
    folder = folder_with(tmp_path / "m", builder={"model": {"type": kind, "decoder": decoder}})
    ours = read_attention_settings(folder)
    monkeypatch.setattr(attention_settings, "_known_here", lambda *_: None)
    assert ours == read_attention_settings(folder)


def test_most_need_no_transformers_and_the_others_say_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    for position, config in enumerate(
        [
            {"model_type": "llama"},
            {"model_type": "qwen2", "use_sliding_window": False, "sliding_window": 9},
            {"model_type": "mistral", "sliding_window": None},
            {},
        ]
    ):
        assert read_attention_settings(folder_with(tmp_path / str(position), config)).window is None
    for kind in ("gemma2", "mistral", "brand_new"):
        with pytest.raises(ModelError) as found:
            read_attention_settings(folder_with(tmp_path / kind, {"model_type": kind}))
        assert f"what models of type '{kind}' set by themselves" in str(found.value)
        assert "pip install 'fairgate[transformers]'" in str(found.value)
