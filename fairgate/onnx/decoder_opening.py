"""Opens a decoder's graph, or the best of its changed copies, and finds how far it is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.onnx.attention_settings import read_attention_settings
from fairgate.onnx.batches import padded_width
from fairgate.onnx.decoder_graph import DecoderGraph, GraphFacts, read_decoder_graph
from fairgate.onnx.fused_layers import FUSED_INPUT
from fairgate.onnx.joint_attention import JOINT_INPUT
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.projection_cut import POSITIONS_INPUT
from fairgate.onnx.session import Device, open_session, refuse_unsound_graph

_PAST = "past_key_values."
_PRESENT = "present."
_PLAIN_INPUTS = frozenset(
    {"input_ids", "attention_mask", "position_ids", POSITIONS_INPUT, JOINT_INPUT, FUSED_INPUT}
)
DTYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
"""The types of inputs that decoders have."""
NEXT_STEP = "Export the model with `fairgate export MODEL --task text-generation`."
_SETTINGS = "genai_config.json"
_SHORTER = (
    "Lower `document_characters` or `top_k` of the retriever, or `max_new_tokens`, or export the "
    "model with `fairgate export MODEL`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedGraph:
    """A session of a graph that has a key-value cache, and what its inputs and outputs are."""

    session: Any
    """An `onnxruntime.InferenceSession`."""
    facts: GraphFacts
    inputs: Mapping[str, Any]
    """By name, of the graph that runs."""
    caches: Mapping[str, tuple[int, int]]
    """Heads and size of each cache input, in the order of the graph's inputs."""

    @property
    def past(self) -> list[str]:
        """Return the names of the cache's inputs."""
        return list(self.caches)

    @property
    def present(self) -> list[str]:
        """Return the names of the cache's outputs, in the same order."""
        return [_present(name) for name in self.caches]


def open_decoder(folder: ModelFolder, *, device: Device, threads: int) -> OpenedGraph:
    """Open a folder's graph, changed if possible. Raises ModelError.

    A graph that is replaced meanwhile is an error too: places of weights are those of its file.
    """
    before = _state(folder.graph)
    window = read_attention_settings(folder).window
    graph = read_decoder_graph(folder.graph, attends_to_all=window is None, joins=device == "cpu")
    refuse_unsound_graph(folder.graph)
    session = _open(folder, graph, device, threads)
    if _state(folder.graph) != before:
        raise ModelError(
            f"{str(folder.graph)!r} was changed while it was opened. Run again when nothing "
            "writes to the folder any more."
        )
    inputs = {node.name: node for node in session.get_inputs()}
    sizes = {name: _cache_shape(folder, inputs[name]) for name in inputs if name.startswith(_PAST)}
    _check_is_decoder(folder, inputs, sizes, [node.name for node in session.get_outputs()])
    caches = {name: shape for name, shape in sizes.items() if shape is not None}
    return OpenedGraph(session=session, facts=graph.facts, inputs=inputs, caches=caches)


def _open(folder: ModelFolder, graph: DecoderGraph, device: Device, threads: int) -> Any:
    opened = partial(
        open_session, folder.graph, device=device, threads=threads, folder=graph.folder
    )
    *better, last = graph.contents
    for content in better:
        try:
            return opened(content=content)
        except OutOfMemoryError:
            raise  # else bits would depend on the memory that is free
        except ModelError:
            pass  # the graph as it stands on disk decides, and explains itself
    return opened(content=last)


def _state(graph: Path) -> tuple[int, int, int] | None:
    """Return what changes with a file's content; None where there is none."""
    try:
        found = graph.stat()
    except OSError:
        return None  # the session reports it
    return found.st_ino, found.st_size, found.st_mtime_ns


def _check_is_decoder(
    folder: ModelFolder,
    inputs: Mapping[str, Any],
    caches: Mapping[str, tuple[int, int] | None],
    outputs: Sequence[str],
) -> None:
    graph = str(folder.graph)
    if not caches or "input_ids" not in inputs or "logits" not in outputs:
        names = ", ".join(sorted(inputs))[:300]
        raise ModelError(
            f"{graph!r} is no decoder with a key-value cache: its inputs are {names}; expected "
            f"input_ids, past_key_values.* and the output logits. {NEXT_STEP}"
        )
    unknown = [name for name in inputs if name not in _PLAIN_INPUTS and name not in caches]
    missing = [name for name in map(_present, caches) if name not in outputs]
    unsupported = [name for name, node in inputs.items() if node.type not in DTYPES]
    flat = [name for name, shape in caches.items() if shape is None]
    for wrong, what in (
        (unknown, "needs inputs this engine does not know"),
        (missing, "lacks the cache outputs"),
        (unsupported, "has inputs of a type this engine does not support"),
        (flat, "has cache inputs that are not [rows, heads, tokens, size] with known sizes"),
    ):
        if wrong:
            raise ModelError(f"{graph!r} {what}: {', '.join(wrong)[:300]}. {NEXT_STEP}")


def _present(past: str) -> str:
    return past.replace(_PAST, _PRESENT, 1)


def head_size(folder: ModelFolder) -> int | None:
    """Return the width of a key of the cache, which newer graphs call `kv_cache_dim` only."""
    builder = _model(folder).get("decoder")
    config = folder.mapping("config.json")
    sizes = [
        builder.get("head_size") if isinstance(builder, dict) else None,
        config.get("head_dim"),
    ]
    hidden, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if isinstance(hidden, int) and isinstance(heads, int) and heads > 0:
        sizes.append(hidden // heads)
    return next((one for one in sizes if isinstance(one, int) and one > 0), None)


def refuse_wrong_builds(folder: ModelFolder, facts: GraphFacts) -> None:
    """Raise ModelError for folders with another graph than the model, or incomplete settings.

    Settings that the onnxruntime-genai builder's graphs leave open are in `genai_config.json`.
    Tried with the builder of 0.18; the graphs of 0.15 to 0.17 differ in what is handled here.
    """
    has_config = (folder.path / "config.json").is_file()
    builder = _model(folder)
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


def _may_hide_a_window(builder: dict[str, Any], facts: GraphFacts) -> bool:
    """Return whether a folder without a window may come from a model that has one.

    For other execution providers than these two the builder leaves windows out of Mistral and
    Phi-3, and of the settings.
    """
    decoder = builder.get("decoder")
    if not isinstance(decoder, dict) or "sliding_window" in decoder:
        return False
    options = decoder.get("session_options")
    made_for = options.get("provider_options") if isinstance(options, dict) else None
    others = {
        name
        for one in (made_for if isinstance(made_for, list) else [])
        if isinstance(one, dict)
        for name in one
    } - {"cpu", "cuda"}
    windowed = str(builder.get("type")).startswith(("mistral", "ministral", "phi3"))
    return facts.cannot_window or (windowed and bool(others))


def _model(folder: ModelFolder) -> dict[str, Any]:
    found = folder.mapping(_SETTINGS).get("model")
    return found if isinstance(found, dict) else {}


def _cache_shape(folder: ModelFolder, node: Any) -> tuple[int, int] | None:
    """Return heads and size of a cache input; None where neither graph nor folder gives it."""
    shape = node.shape
    if len(shape) != 4 or not isinstance(shape[1], int):
        return None
    size = shape[3] if isinstance(shape[3], int) else head_size(folder)
    return None if size is None else (shape[1], size)


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
        switch = self.switch
        if switch is None:
            return
        crossing = sum(length <= switch < length + new_tokens for length in lengths)
        if crossing:
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
    windows = [*facts.windows.values(), *([settings.window] if settings.window else [])]
    window = min(windows, default=None)
    if window is not None:
        if facts.cannot_window or (facts.counts_rows and not facts.windows):
            why = f"the model attends to the last {window} tokens, its graph to all of them"
            limits.append((window, why))
        elif facts.counts_rows and settings.layers not in {None, frozenset(facts.windows)}:
            why = (
                f"the graph keeps to the last {window} tokens in other layers than the model, as "
                "far as its files show (config.json of the original, copied beside it, shows more)"
            )
            limits.append((window, why))
        elif not facts.counts_rows:
            slot_window = window
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
