"""How far back a model attends and how it counts positions, by its configuration.

Names differ between architectures, so windows are found by the form of a key (`sliding_window`,
`window_size`, `attention_chunk_size`, …): one that is recognised without need costs some speed,
one that is missed would cost answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import harmless, quoted
from fairgate.onnx.model_folder import ModelFolder, whole_number

_WINDOW_KEY = re.compile(r"(window|chunk)(_size|_length|_len)?$")
_NOT_TEXT = ("vision", "audio", "speech")
_SWITCHING = frozenset({"longrope", "su"})
_LOCAL_LAYER = re.compile(r"sliding|local|chunk|window")
_SAYS_ITSELF = frozenset(
    {"apertus", "arcee", "biogpt", "bitnet", "bloom", "codegen", "cohere", "ctrl", "dbrx", "falcon"}
    | {"gemma", "glm", "glm4", "gpt2", "gpt_bigcode", "gpt_neox", "gptj", "granite", "granitemoe"}
    | {"helium", "llama", "mixtral", "mpt", "nemotron", "olmo", "olmo2", "olmoe", "openai-gpt"}
    | {"opt", "persimmon", "phi", "phi3", "phimoe", "stablelm", "starcoder2", "xglm"}
)
"""Model types that have no window unless `config.json` says so, and then in every layer."""
_ALL_LAYERS_FULL = frozenset({"lfm2", "qwen2", "qwen2_moe", "qwen3", "smollm3"})
"""Model types whose layers attend to everything, unless `config.json` has windows switched on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSettings:
    """Settings in a folder's `config.json` and `genai_config.json`; None where there are none."""

    window: int | None
    """Tokens that the narrowest layer attends to, its own included."""
    layers: frozenset[int] | None
    """The layers with a window."""
    switch: int | None
    """Tokens after which a LongRoPE model uses its long factors."""


def read_attention_settings(folder: ModelFolder) -> AttentionSettings:
    """Return the settings of a model folder. Raises ModelError where its files are damaged."""
    config = {**_defaults(folder), **folder.mapping("config.json")}
    builder = _builder(folder)
    windows = [*_windows(config, folder.path), *_windows(builder, folder.path)]
    return AttentionSettings(
        window=min(windows, default=None),
        layers=_builder_layers(builder) or _local_layers(config),
        switch=rotary_switch(config, folder.path),
    )


def _defaults(folder: ModelFolder) -> Mapping[str, Any]:
    """Return what an architecture sets by itself, as its `config.json` may leave it out.

    A builder's folder has no `config.json`. There only the pattern of layers is taken, which is
    the architecture's own; whether a Mistral has a window is each model's.
    """
    config = folder.mapping("config.json")
    builder = {} if config else _builder(folder)
    kind = _kind(folder)
    if not kind:
        return {}
    known = _known_here(kind, config, folder.path)
    if known is not None:
        return known
    import logging  # 2 ms, for what few models need

    silenced = logging.root.manager.disable
    logging.disable(logging.WARNING)  # about keys that its authors know better
    try:
        configurations = _configurations(folder, kind)
        return _known_to_transformers(configurations, folder, builder)
    except ModelError:
        raise
    except Exception:  # noqa: BLE001 an architecture that transformers does not know, or know yet
        return {}
    finally:
        logging.disable(silenced)


def _known_here(kind: str, config: Mapping[str, Any], path: Path) -> Mapping[str, Any] | None:
    """Return what a type of model sets by itself; None where only `transformers` knows."""
    if kind in _SAYS_ITSELF or (kind == "mistral" and "sliding_window" in config):
        return {}
    if kind in _ALL_LAYERS_FULL and "layer_types" not in config and not [*_windows(config, path)]:
        return {"layer_types": ["full_attention"]}
    return None


def unknown_here(folder: ModelFolder) -> str:
    """Return the type of a model whose windows only `transformers` knows; else empty."""
    kind = _kind(folder)
    known = not kind or _known_here(kind, folder.mapping("config.json"), folder.path) is not None
    return "" if known else kind


def _kind(folder: ModelFolder) -> str:
    """Return the type of a model by `config.json`, or the builder's where there is none."""
    config = folder.mapping("config.json")
    return str((config.get("model_type") if config else _builder(folder).get("type")) or "")


def _builder(folder: ModelFolder) -> Mapping[str, Any]:
    """Return the model's part of a builder's `genai_config.json`; empty where there is none."""
    found = folder.mapping("genai_config.json").get("model")
    return found if isinstance(found, dict) else {}


def _configurations(folder: ModelFolder, kind: str) -> Any:
    try:
        from transformers import AutoConfig
    except ImportError as error:
        raise ModelError(
            f"how far {str(folder.path)!r} attends is not certain: its files leave out what models "
            f"of type {quoted(kind)} set by themselves. The package that knows it cannot be "
            f"imported ({harmless(str(error)[:200])}): pip install 'fairgate[transformers]'"
        ) from error
    return AutoConfig


def _known_to_transformers(
    configurations: Any, folder: ModelFolder, builder: Mapping[str, Any]
) -> Mapping[str, Any]:
    if not builder:
        known = configurations.from_pretrained(
            str(folder.path), local_files_only=True, trust_remote_code=False
        )
        return dict(known.to_dict())
    layers = builder["decoder"]["num_hidden_layers"]
    known = configurations.for_model(builder["type"], num_hidden_layers=int(layers))
    found = dict(known.to_dict())
    return found if _local_layers(found) is not None else {}


def _builder_layers(builder: Mapping[str, Any]) -> frozenset[int]:
    decoder = builder.get("decoder")
    window = decoder.get("sliding_window") if isinstance(decoder, dict) else None
    layers = window.get("layers") if isinstance(window, dict) else None
    found = layers if isinstance(layers, list) else []
    return frozenset(one for one in found if isinstance(one, int))


def _local_layers(config: Mapping[str, Any]) -> frozenset[int] | None:
    """Return the layers with a window; None where the configuration does not distinguish layers."""
    layers = config.get("layer_types")
    if not isinstance(layers, list):
        return None
    return frozenset(n for n, one in enumerate(layers) if _LOCAL_LAYER.search(str(one)))


def _windows(settings: Mapping[str, Any], path: Path) -> Iterator[int]:
    """Yield every window that layers of a text model have, at any depth. Raises ModelError."""
    if _local_layers(settings) == frozenset():
        return
    for name, value in settings.items():
        key = str(name)
        if isinstance(value, dict):
            if not key.startswith(_NOT_TEXT):
                yield from _windows(value, path)
        elif _WINDOW_KEY.search(key) and not _is_switched_off(key, settings):
            for one in value if isinstance(value, list) else [value]:
                if one is not None and not isinstance(one, bool):
                    window = whole_number(one, path, key)
                    yield from [window] if window > 0 else []


def _is_switched_off(key: str, settings: Mapping[str, Any]) -> bool:
    """Return whether a key is no window of an attention that is used."""
    return settings.get(f"use_{key}") is False or key.startswith("mamba")


def rotary_switch(config: Mapping[str, Any], path: Path) -> int | None:
    """Return after how many tokens a LongRoPE model takes its long factors; None: it has none.

    `path` names the model. Raises ModelError.
    """
    places = []
    for part in (config, config.get("text_config")):
        if not isinstance(part, dict):
            continue
        for name in ("rope_scaling", "rope_parameters"):
            scaling = part.get(name)
            if not isinstance(scaling, dict):
                continue
            kind = scaling.get("rope_type") or scaling.get("type")
            switch = part.get("original_max_position_embeddings") or scaling.get(
                "original_max_position_embeddings"
            )
            if kind in _SWITCHING and switch is not None:
                places.append(whole_number(switch, path, "original_max_position_embeddings"))
    return min(places, default=None)
