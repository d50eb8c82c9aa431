"""Opens a decoder's graph, or the best of its changed copies, and checks that it can be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.onnx.attention_settings import read_attention_settings
from fairgate.onnx.builder_folder import head_size
from fairgate.onnx.decoder_graph import DecoderGraph, GraphFacts, read_decoder_graph
from fairgate.onnx.folder import ModelFolder
from fairgate.onnx.fused_layers import FUSED_INPUT
from fairgate.onnx.graph import POSITIONS_INPUT
from fairgate.onnx.joint_attention import JOINT_INPUT
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


def _cache_shape(folder: ModelFolder, node: Any) -> tuple[int, int] | None:
    """Return heads and size of a cache input; None where neither graph nor folder gives it."""
    shape = node.shape
    if len(shape) != 4 or not isinstance(shape[1], int):
        return None
    size = shape[3] if isinstance(shape[3], int) else head_size(folder)
    return None if size is None else (shape[1], size)
