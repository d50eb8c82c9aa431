"""How far back a model attends and how it counts positions, and how far its graph does so too.

Names differ between architectures, so windows are found by the form of a key (`sliding_window`,
`window_size`, `attention_chunk_size`, …): one that is recognised without need costs some speed,
one that is missed would cost answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import harmless, quoted
from fairgate.onnx.batches import padded_width
from fairgate.onnx.model_folder import ModelFolder, whole_number, within

if TYPE_CHECKING:
    from fairgate.onnx.decoder_graph import GraphFacts

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
_SHORTER = (
    "Lower `document_characters` or `top_k` of the retriever, or `max_new_tokens`, or export the "
    "model with `fairgate export MODEL`"
)


class AttentionSettings(NamedTuple):
    """Settings in a folder's `config.json` and `genai_config.json`; None where there are none."""

    windows: frozenset[int]
    """Tokens that layers with a window attend to, their own included."""
    layers: frozenset[int] | None
    """The layers with a window."""
    switch: int | None
    """Tokens after which a LongRoPE model uses its long factors."""

    @property
    def window(self) -> int | None:
        """The window of the narrowest layer; None where all attend to everything."""
        return min(self.windows, default=None)


def read_attention_settings(folder: ModelFolder) -> AttentionSettings:
    """Return the settings of a model folder. Raises ModelError where its files are damaged."""
    config = {**_defaults(folder), **folder.mapping("config.json")}
    builder = _builder(folder)
    layers = within(builder, "decoder", "sliding_window", "layers")
    entries = layers if isinstance(layers, list) else []
    windows = frozenset(_windows(builder, folder.path))
    if not windows or folder.mapping("config.json"):  # else a default, which the builder replaces
        windows |= frozenset(_windows(config, folder.path))
    return AttentionSettings(
        windows=windows,
        layers=frozenset(entry for entry in entries if isinstance(entry, int))
        or _local_layers(config),
        switch=rotary_switch(config, folder.path),
    )


def _defaults(folder: ModelFolder) -> Mapping[str, Any]:
    """Return an architecture's defaults, as its `config.json` may leave them out.

    A builder's folder has no `config.json`. There only the pattern of layers is taken, which is
    the architecture's own; whether a Mistral has a window is each model's.
    """
    config = folder.mapping("config.json")
    builder = {} if config else _builder(folder)
    kind = _kind(folder)
    if (defaults := _known_here(kind, config, folder.path)) is not None:
        return defaults
    import logging  # 2 ms, for what few models need

    silenced = logging.root.manager.disable
    logging.disable(logging.WARNING)  # about keys that its authors know better
    try:
        configurations = _configurations(folder, kind)
        if not builder:
            configuration = configurations.from_pretrained(
                str(folder.path), local_files_only=True, trust_remote_code=False
            )
            return dict(configuration.to_dict())
        layers = int(builder["decoder"]["num_hidden_layers"])
        own = configurations.for_model(kind, num_hidden_layers=layers).to_dict()
        return own if _local_layers(own) is not None else {}
    except ModelError:
        raise
    except Exception:  # noqa: BLE001 an architecture that transformers does not know, or know yet
        return {}
    finally:
        logging.disable(silenced)


def _known_here(kind: str, config: Mapping[str, Any], path: Path) -> Mapping[str, Any] | None:
    """Return the defaults of a type of model; None where only `transformers` knows them."""
    if not kind or kind in _SAYS_ITSELF or (kind == "mistral" and "sliding_window" in config):
        return {}
    if kind in _ALL_LAYERS_FULL and "layer_types" not in config and not [*_windows(config, path)]:
        return {"layer_types": ["full_attention"]}
    return None


def unknown_here(folder: ModelFolder) -> str:
    """Return the type of a model whose windows only `transformers` knows; else empty."""
    kind = _kind(folder)
    defaults = _known_here(kind, folder.mapping("config.json"), folder.path)
    return kind if defaults is None else ""


def _kind(folder: ModelFolder) -> str:
    """Return the type of a model by `config.json`, or the builder's where there is none."""
    config = folder.mapping("config.json")
    return str((config.get("model_type") if config else _builder(folder).get("type")) or "")


def _builder(folder: ModelFolder) -> Mapping[str, Any]:
    """Return the model's part of a builder's `genai_config.json`; empty where there is none."""
    model = within(folder.mapping("genai_config.json"), "model")
    return model if isinstance(model, dict) else {}


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


def _local_layers(config: Mapping[str, Any]) -> frozenset[int] | None:
    """Return the layers with a window; None where the configuration does not distinguish layers."""
    layers = config.get("layer_types")
    if not isinstance(layers, list):
        return None
    return frozenset(
        n for n, layer_type in enumerate(layers) if _LOCAL_LAYER.search(str(layer_type))
    )


def _windows(settings: Mapping[str, Any], path: Path) -> Iterator[int]:
    """Yield every window that layers of a text model have, at any depth. Raises ModelError."""
    if _local_layers(settings) == frozenset():
        return
    for name, value in settings.items():
        key = str(name)
        if isinstance(value, dict):
            if not key.startswith(_NOT_TEXT):
                yield from _windows(value, path)
        elif key.startswith("mamba") or settings.get(f"use_{key}") is False:
            continue  # no window of an attention that is used
        elif _WINDOW_KEY.search(key):
            for entry in value if isinstance(value, list) else [value]:
                if entry is not None and not isinstance(entry, bool):
                    window = whole_number(entry, path, key)
                    yield from [window] if window > 0 else []


def rotary_switch(config: Mapping[str, Any], path: Path) -> int | None:
    """Return after how many tokens a LongRoPE model takes its long factors; None: it has none.

    `path` names the model. Raises ModelError.
    """
    switches, key = [], "original_max_position_embeddings"
    for part in (config, within(config, "text_config")):
        for name in ("rope_scaling", "rope_parameters"):
            scaling = within(part, name)
            kind = within(scaling, "rope_type") or within(scaling, "type")
            switch = within(part, key) or within(scaling, key)
            if kind in _SWITCHING and switch is not None:
                switches.append(whole_number(switch, path, key))
    return min(switches, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How long prompt and answer may be together, and where padding would be seen.

    Right padding leaves unused slots between a prompt and its answer. Most graphs do not notice. A
    sliding window that counts slots loses as many tokens as there are unused slots, and a graph
    that chooses its rotary factors by the mask's width counts them as tokens. Where either could
    happen a row is as wide as it is long; whether it could depends on the row's own length alone.
    """

    slot_window: int | None = None
    """A window that counts slots of the cache; None where there is none."""
    switch: int | None = None
    """Width above which the graph itself uses other rotary factors."""
    limit: int | None = None
    """Tokens of prompt and answer up to which the graph is right."""
    why: str = ""
    """What happens beyond `limit`."""

    def width(self, length: int, new_tokens: int, widest: int | None) -> int:
        """Return how wide a prompt of `length` tokens may be padded before `new_tokens` follow."""
        width = padded_width(length)
        if widest is not None:
            width = max(length, min(width, widest))  # a table of positions may end there
        end = width + new_tokens
        in_window = self.slot_window is None or not new_tokens or end <= self.slot_window
        same_factors = self.switch is None or length > self.switch or end <= self.switch
        return width if in_window and same_factors else length

    def furthest(self, length: int) -> int | None:
        """Return how long prompt and answer may become; None where the graph sets no limit."""
        switch = self.switch if self.switch is not None and length <= self.switch else None
        return min((end for end in (self.limit, switch) if end is not None), default=None)

    def check(self, lengths: Sequence[int], new_tokens: int, name: str) -> None:
        """Raise ModelError, with counts, where a prompt and its answer go beyond the reach."""
        ends = [length + new_tokens for length in lengths]
        if self.limit is not None and (many := sum(end > self.limit for end in ends)):
            raise ModelError(
                f"{many} of {len(ends)} prompts are too long for {name!r}: with {new_tokens} "
                f"tokens kept for the answer the longest needs {max(ends)}, the limit is "
                f"{self.limit}: {self.why}. {_SHORTER}."
            )
        if (switch := self.switch) is None:
            return
        if crossing := sum(length <= switch < length + new_tokens for length in lengths):
            raise ModelError(
                f"{crossing} of {len(ends)} prompts end less than {new_tokens} tokens before token "
                f"{switch} of {name!r}, where the model turns to other rotary factors (LongRoPE): "
                "an answer across that place would mix both. Lower `max_new_tokens` or change "
                "`document_characters` or `top_k` of the retriever."
            )


def read_reach(folder: ModelFolder, facts: GraphFacts) -> Reach:
    """Return how far a folder's graph reaches. Raises ModelError for graphs that are not right."""
    refuse_wrong_builds(folder, facts)
    settings = read_attention_settings(folder)
    limits: list[tuple[int, str]] = []
    slot_window = None
    windows = settings.windows | set(facts.windows.values())
    if (window := min(windows, default=None)) is not None:
        if facts.cannot_window or (facts.counts_rows and not facts.windows):
            why = f"the model attends to the last {window} tokens, its graph to all of them"
            limits.append((window, why))
        elif facts.counts_rows and settings.layers not in {None, frozenset(facts.windows)}:
            why = (
                f"the graph keeps to the last {window} tokens in other layers than the model, as "
                "far as its files show (config.json of the original, copied beside it, shows more)"
            )
            limits.append((window, why))
        elif facts.counts_rows and not settings.windows <= set(facts.windows.values()):
            why = (
                f"the model's layers attend to the last {_listed(settings.windows)} tokens, its "
                f"graph's to the last {_listed(facts.windows.values())}"
            )
            limits.append((window, why))
        elif not facts.counts_rows:
            slot_window = min(window, facts.mask_window or window)
            lost = [size for size in windows if not _is_in_a_mask(size, facts.mask_windows)]
            if lost:
                why = (
                    f"the model attends to the last {min(lost)} tokens, and no mask in its graph "
                    "shows such a window, so that the graph attends to more"
                )
                limits.append((min(lost), why))
    if window is None and not facts.counts_rows:
        slot_window = facts.mask_window  # config.json is silent
    if settings.switch is not None and facts.switch is None:
        why = (
            f"after {settings.switch} tokens the model uses other rotary factors (LongRoPE), of "
            "which its graph has the short ones only"
        )
        limits.append((settings.switch, why))
    limit, why = min(limits, default=(None, ""))
    return Reach(slot_window=slot_window, switch=facts.switch, limit=limit, why=why)


def lost_window(folder: ModelFolder, distances: frozenset[int]) -> int | None:
    """Return the narrowest window of an encoder that its graph does not show; None without one.

    `distances` are what the graph's masks count. A window that goes both ways counts half of its
    size on each side, as ModernBERT's `local_attention` does. Longformer's graphs attend in chunks
    that no mask shows: its windows are left out. Raises ModelError for a size that is no number.
    """
    config = folder.mapping("config.json")
    if config.get("model_type") == "longformer":
        return None
    windows = set(_windows(config, folder.path))
    if (size := config.get("local_attention")) is not None:
        windows.add(whole_number(size, folder.path, "local_attention"))
    lost = [
        window
        for window in windows
        if window > 1
        and not _is_in_a_mask(window, distances)
        and not _is_in_a_mask(window // 2, distances)
    ]
    return min(lost, default=None)


def _is_in_a_mask(window: int, distances: frozenset[int]) -> bool:
    """Return whether a mask counts so many slots: `>` and `>=` differ by one."""
    return any(abs(distance - window) <= 1 for distance in distances)


def _listed(windows: Iterable[int]) -> str:
    return " and ".join(str(window) for window in sorted(set(windows)))


def refuse_wrong_builds(folder: ModelFolder, facts: GraphFacts) -> None:
    """Raise ModelError for folders with another graph than the model, or incomplete settings.

    Settings that the onnxruntime-genai builder's graphs leave open are in `genai_config.json`.
    Tried with the builder of 0.18; the graphs of 0.15 to 0.17 differ in what is handled here.
    """
    has_config = (folder.path / "config.json").is_file()
    builder = _builder(folder)
    if not builder:
        if not has_config:
            folder.file("config.json", "states how far back the model attends")
        return
    if builder.get("type") == "olmo" and "LayerNormalization" not in facts.operators:
        raise ModelError(
            f"{str(folder.graph)!r} is no OLMo: the onnxruntime-genai builder normalises by the "
            "root mean square, the model subtracts the mean first, so every answer is wrong (seen "
            "with 0.18). Export it with `fairgate export MODEL`."
        )
    if not has_config and not facts.windows and _may_hide_a_window(builder, facts):
        raise ModelError(
            f"{str(folder.path)!r} does not say whether its model has a sliding window, and its "
            "graph has none. Copy the original model's config.json into the folder, or build it "
            "for the execution provider `cpu` or `cuda`."
        )


def _may_hide_a_window(builder: Mapping[str, Any], facts: GraphFacts) -> bool:
    """Return whether a folder without a window may come from a model that has one.

    For other execution providers than these two the builder leaves windows out of Mistral and
    Phi-3, and of the settings.
    """
    decoder = builder.get("decoder")
    if not isinstance(decoder, dict) or "sliding_window" in decoder:
        return False
    options = within(decoder, "session_options", "provider_options")
    providers = [
        provider
        for provider in (options if isinstance(options, list) else [])
        if isinstance(provider, dict)
    ]
    others = {name for provider in providers for name in provider} - {"cpu", "cuda"}
    windowed = str(builder.get("type")).startswith(("mistral", "ministral", "phi3"))
    return facts.cannot_window or (windowed and bool(others))
