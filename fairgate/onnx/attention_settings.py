"""How far back a model attends and how it counts positions, and how far its graph does so too.

Names differ between architectures, so windows are found by the form of a key (`sliding_window`,
`window_size`, `attention_chunk_size`, …): one that is recognised without need costs some speed,
one that is missed would cost answers. What a graph's own masks show counts beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgate.domain.errors import ModelError
from fairgate.onnx.batches import padded_width
from fairgate.onnx.model_folder import ModelFolder, whole_number, within

if TYPE_CHECKING:
    from fairgate.onnx.decoder_graph import GraphFacts

_WINDOW_KEY = re.compile(r"(window|chunk)(_size|_length|_len)?$")
_NOT_TEXT = ("vision", "audio", "speech")
_SWITCHING = frozenset({"longrope", "su"})
_LOCAL_LAYER = re.compile(r"sliding|local|chunk|window")
_DEFAULT_WINDOWS = {
    "cohere2": 4096,
    "gemma2": 4096,
    "gemma3_text": 4096,
    "gpt_neo": 256,
    "gpt_oss": 128,
    "mistral": 4096,
    "olmo3": 4096,
}
"""Windows of model types that have one where `config.json` does not say it."""
_SHORTER = (
    "Lower `document_characters` or `top_k` of the retriever, or `max_new_tokens`, or export the "
    "model with `fairgate export MODEL`"
)


def attention_windows(folder: ModelFolder) -> frozenset[int]:
    """Return the windows that layers have by `config.json`, in tokens, their own included.

    Raises ModelError for a size that is no number.
    """
    config = folder.mapping("config.json")
    if windows := frozenset(_windows(config, folder.path)):
        return windows
    default = _DEFAULT_WINDOWS.get(str(config.get("model_type")))
    is_said = any(_WINDOW_KEY.search(key) for key in config) or "layer_types" in config
    return frozenset() if default is None or is_said else frozenset({default})


def _has_no_local_layers(config: Mapping[str, Any]) -> bool:
    """Return whether the configuration distinguishes layers, and none has a window."""
    layers = config.get("layer_types")
    return isinstance(layers, list) and not any(
        _LOCAL_LAYER.search(str(layer_type)) for layer_type in layers
    )


def _windows(settings: Mapping[str, Any], path: Path) -> Iterator[int]:
    """Yield every window that layers of a text model have, at any depth. Raises ModelError."""
    if _has_no_local_layers(settings):
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
    """Return how far a folder's graph reaches. Raises ModelError for incomplete settings."""
    folder.file("config.json", "states how far back the model attends")
    limits: list[tuple[int, str]] = []
    own = facts.windows if facts.counts_rows else facts.mask_windows
    windows = attention_windows(folder)
    lost = [window for window in windows if not _is_in_a_mask(window, own)]
    if lost:
        why = f"the model attends to the last {min(lost)} tokens, its graph to more"
        limits.append((min(lost), why))
    slot_window = None if facts.counts_rows else min(windows | facts.mask_windows, default=None)
    switch = rotary_switch(folder.mapping("config.json"), folder.path)
    if switch is not None and facts.switch is None:
        why = (
            f"after {switch} tokens the model uses other rotary factors (LongRoPE), of which its "
            "graph has the short ones only"
        )
        limits.append((switch, why))
    limit, why = min(limits, default=(None, ""))
    return Reach(slot_window=slot_window, switch=facts.switch, limit=limit, why=why)


def _is_in_a_mask(window: int, distances: frozenset[int]) -> bool:
    """Return whether a mask counts this many slots: `>` and `>=` differ by one."""
    return any(abs(distance - window) <= 1 for distance in distances)
