"""Reads a decoder's graph before it runs: what it computes with, and what has to be changed.

Changes are made in memory, without the weights where these are in the graph's file; no file is
written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.onnx.attention_layers import AttentionGraph
from fairgate.onnx.graph_structure import load_structure
from fairgate.onnx.joint_attention import join_attention
from fairgate.onnx.projection_cut import cut_to_positions
from fairgate.onnx.runtime_errors import is_of_memory, memory_errors

_WINDOW = "local_window_size"
_WINDOW_CACHE = "sliding_window_cache"
_PAST_LAYER = re.compile(r"past_key_values\.(\d+)\.")
_WITHOUT_WINDOW = frozenset({"MultiHeadAttention", "DecoderMaskedMultiHeadAttention"})
_EXPERTS = frozenset({"MoE", "QMoE"})
_PICKED_PRODUCTS = frozenset({"NonZero", "MatMulNBits"})
_COARSE_KINDS = frozenset({10, 16})
"""TensorProto.FLOAT16 and BFLOAT16."""
_INTEGER_PRODUCT = 4
"""`accuracy_level` of MatMulNBits at which activations are rounded to 8 bits, block by block."""
_COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
_BY_FIRST = frozenset(
    {"Abs", "Cast", "Expand", "Flatten", "Identity", "Neg", "Reshape", "Squeeze", "Unsqueeze"}
)
_BY_ALL = frozenset({"Add", "Div", "Mod", "Sub"})
_NO_DISTANCE = 2**31 - 1
_HANDED_ON = frozenset(
    {"Cast", "Gather", "Identity", "ReduceMax", "Reshape", "Shape", "Slice", "Squeeze", "Unsqueeze"}
)
_SOURCES = frozenset({"attention_mask", "position_ids"})
_MAX_STEPS = 12
# Offset from the constant to the last width before the switch, by operator and by whether the
# constant stands on the right.
_LAST_BEFORE = {
    ("Greater", True): 0,
    ("GreaterOrEqual", True): -1,
    ("Less", True): -1,
    ("LessOrEqual", True): 0,
    ("Greater", False): -1,
    ("GreaterOrEqual", False): 0,
    ("Less", False): 0,
    ("LessOrEqual", False): -1,
}


def mask_window(model: Any) -> int | None:
    """Return the least number of slots that any comparison of slots counts; None without one.

    `model`: an `onnx.ModelProto`. Differences of one, as in a causal mask, are none.

    Windows and chunks that stand in a mask only count slots of the cache, so that padding between a
    prompt and its answer takes tokens from them, as it does where `config.json` names a window.
    """
    graph = AttentionGraph(model)
    found = (
        distance
        for node in model.graph.node
        if node.op_type in _COMPARISONS
        for distance in _distances(graph, node)
    )
    return min(found, default=None)


def _distances(graph: AttentionGraph, comparison: Any) -> Iterator[int]:
    """Yield the numbers that slots are compared with, or moved by before."""
    waiting, seen = list(comparison.input), set[str]()
    slots, numbers = False, list[float]()
    while waiting:
        name = waiting.pop()
        node = graph.makers.get(name)
        if name in seen:
            continue
        seen.add(name)
        if node is None or node.op_type == "Constant":
            numbers += graph.constants.get(name, [])
        elif node.op_type == "Range":
            slots = True
        elif node.op_type in _BY_FIRST:
            waiting += node.input[:1]
        elif node.op_type in _BY_ALL:
            waiting += node.input
    for number in numbers if slots else ():
        if isinstance(number, int | float) and 1 < abs(number) < _NO_DISTANCE:
            yield int(abs(number))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFacts:
    """What a decoder graph computes with, as far as its nodes show."""

    operators: frozenset[str] = frozenset()
    windows: Mapping[int, int] = field(default_factory=dict)
    """Sliding windows, in tokens, by layer, of the GroupQueryAttention nodes that have one."""
    mask_window: int | None = None
    """The narrowest window, in slots, of a mask that the graph computes itself."""
    switch: int | None = None
    """Width of the attention mask above which other rotary factors are used."""
    coarse: bool = False
    """Whether anything is computed in less than float32."""

    @property
    def counts_rows(self) -> bool:
        """Whether attention counts each row's own tokens, whatever slots they are in."""
        return "GroupQueryAttention" in self.operators

    @property
    def mixes_rows(self) -> bool:
        """Whether tokens of all rows are sorted by expert and multiplied together.

        How many there are decides how a product is summed, so the last bits of one row. Graphs of
        plain operators pick an expert's tokens with NonZero; their products stay equal in float32,
        not with weights of fewer bits, which one token alone is multiplied with in another order.
        """
        return bool(self.operators & _EXPERTS) or self.operators >= _PICKED_PRODUCTS

    @property
    def cannot_window(self) -> bool:
        """Whether attention is an operator that has no window of its own."""
        return not self.counts_rows and bool(self.operators & _WITHOUT_WINDOW)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderGraph:
    """A graph file's facts, and the changed graphs that replace it, best first."""

    facts: GraphFacts = field(default_factory=GraphFacts)
    contents: tuple[bytes | None, ...] = (None,)
    """None: the file as it is."""
    folder: Path | None = None
    """Where the weights of changed graphs are looked up; None: beside the graph's file."""


def read_decoder_graph(
    graph_file: Path, *, attends_to_all: bool, joins: bool = False
) -> DecoderGraph:
    """Return the facts of a graph and the graphs to try.

    `attends_to_all`: whether every layer attends to the whole text, as far as the folder says.
    `joins`: whether a second way to attend is wanted, see `joint_attention`.
    A file that cannot be read is left to the session that opens it, which reports the error.
    Raises ModelError without the package `onnx`, and OutOfMemoryError.
    """
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise ModelError(
            "decoders need the package 'onnx' beside ONNX Runtime: without it nothing shows what "
            "a graph attends to. Install `fairgate[cpu]`, or `fairgate[cuda]`."
        ) from error
    with memory_errors(f"the ONNX graph {str(graph_file)!r} cannot be read"):
        try:
            model, folder = load_structure(graph_file)
        except Exception as error:
            if is_of_memory(error):
                raise
            return DecoderGraph()  # any kind of damage
        return _changed(onnx, model, folder, is_whole=attends_to_all, joins=joins)


def drop_softmax_guards(model: Any) -> int:
    """Take the checks out of an `onnx.ModelProto` and return how many there were.

    Exporters replace what a softmax returns for a row without a single key, NaN, by zeros
    (`Where(IsNaN(softmax), 0, softmax)`). With prompts padded on the right, as this engine runs
    them, every row of attention to the whole text sees the first token at least, so that answers
    stay the same bit by bit. Padding on the left, and padding beyond a sliding window, has rows
    that see none.
    """
    graph = model.graph
    producer = {name: node for node in graph.node for name in node.output}
    readers = Counter(name for node in graph.node for name in node.input)
    kept = {value.name for value in graph.output}
    guards = [
        node
        for node in graph.node
        if node.op_type == "Where" and node.output[0] not in kept and _is_guard(node, producer)
    ]
    plain = {guard.output[0]: guard.input[2] for guard in guards}
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name in plain:
                node.input[place] = plain[name]
    for guard in guards:
        graph.node.remove(guard)
        if readers[guard.input[0]] == 1 and guard.input[0] not in kept:
            graph.node.remove(producer[guard.input[0]])
    return len(guards)


def _is_guard(node: Any, producer: dict[str, Any]) -> bool:
    """Return whether a Where replaces the NaNs of a softmax."""
    asked, found = producer.get(node.input[0]), producer.get(node.input[2])
    return (
        asked is not None
        and found is not None
        and asked.op_type == "IsNaN"
        and found.op_type == "Softmax"
        and asked.input[0] == node.input[2]
    )


def _changed(
    onnx: Any, model: Any, folder: Path | None, *, is_whole: bool, joins: bool
) -> DecoderGraph:
    facts = _facts(onnx, model)
    grown = _grow_window_caches(model)
    whole = bytes(model.SerializeToString()) if grown else None
    if is_whole and not facts.windows and facts.mask_window is None:
        drop_softmax_guards(model)
    better: list[bytes] = []
    if cut_to_positions(model):
        better.append(bytes(model.SerializeToString()))
    if joins and is_whole and not facts.windows and join_attention(model):
        better.insert(0, bytes(model.SerializeToString()))
    return DecoderGraph(facts=facts, contents=(*better, whole), folder=folder)


def find_width_switch(onnx: Any, model: Any) -> int | None:
    """Return the greatest width before the switch; None where no comparison decides on widths.

    LongRoPE models (Phi-3, Phi-4) have short and long factors. The onnxruntime-genai builder writes
    both and lets the mask's width, padding included, or the largest position of the batch choose.
    """
    producers = {name: node for node in model.graph.node for name in node.output}
    constants = _constants(onnx, model)
    found = []
    for node in model.graph.node:
        for place, name in enumerate(node.input[:2]):
            offset = _LAST_BEFORE.get((node.op_type, place == 1))
            number = constants.get(name)
            other = node.input[1 - place] if len(node.input) == 2 else ""
            if offset is None or number is None or number < 2 or not other:
                continue
            if _is_a_width(other, producers):
                found.append(number + offset)
    return min(found, default=None)


def _constants(onnx: Any, model: Any) -> dict[str, int]:
    """Return the graph's single whole numbers by name."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value":
                    tensors[node.output[0]] = attribute.t
    single = {
        name: tensor
        for name, tensor in tensors.items()
        if tensor.data_type in {onnx.TensorProto.INT64, onnx.TensorProto.INT32}
        and tensor.data_location != onnx.TensorProto.EXTERNAL
        and all(size == 1 for size in tensor.dims)
    }
    return {name: int(onnx.numpy_helper.to_array(one).item()) for name, one in single.items()}


def _is_a_width(name: str, producers: dict[str, Any]) -> bool:
    """Return whether a value is the shape of the mask, or the largest of all positions."""
    reduced = False
    for _ in range(_MAX_STEPS):
        if name in _SOURCES:
            return reduced
        node = producers.get(name)
        if node is None or node.op_type not in _HANDED_ON:
            return False
        reduced = reduced or node.op_type in {"Shape", "ReduceMax"}
        name = node.input[0]
    return False


def _facts(onnx: Any, model: Any) -> GraphFacts:
    return GraphFacts(
        operators=frozenset(node.op_type for node in model.graph.node),
        windows=dict(_windows(model)),
        mask_window=mask_window(model),
        switch=find_width_switch(onnx, model),
        coarse=any(_coarse_steps(model)),
    )


def _windows(model: Any) -> Iterator[tuple[int, int]]:
    attending = [node for node in model.graph.node if node.op_type == "GroupQueryAttention"]
    for place, node in enumerate(attending):
        named = next(filter(None, map(_PAST_LAYER.match, node.input)), None)
        for attribute in node.attribute:
            if attribute.name == _WINDOW and attribute.i > 0:
                yield int(named[1]) if named else place, attribute.i


def _coarse_steps(model: Any) -> Iterator[bool]:
    for tensor in model.graph.initializer:
        yield tensor.data_type in _COARSE_KINDS
    for node in model.graph.node:
        for attribute in node.attribute:
            yield attribute.name == "to" and attribute.i in _COARSE_KINDS
            yield attribute.name == "accuracy_level" and attribute.i == _INTEGER_PRODUCT


def _grow_window_caches(model: Any) -> bool:
    """Let windowed layers keep a cache that grows like the others'; return whether one did not.

    With `sliding_window_cache` the operator wants a ring of fixed size, whose slots it counts in
    its own way. Without it the same operator attends to the same tokens of a growing cache.
    """
    changed = False
    for node in model.graph.node:
        kept = [attribute for attribute in node.attribute if attribute.name != _WINDOW_CACHE]
        if len(kept) != len(node.attribute):
            del node.attribute[:]
            node.attribute.extend(kept)
            changed = True
    return changed
