"""Reads a decoder's graph before it runs: what it computes with, and what has to be changed.

Changes are made in memory, without the weights where these are in the graph's file; no file is
written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.onnx.graph import cut_to_positions
from fairgate.onnx.graph_structure import load_structure
from fairgate.onnx.joint_attention import join_attention
from fairgate.onnx.mask_windows import mask_window
from fairgate.onnx.runtime_errors import is_of_memory, memory_errors
from fairgate.onnx.softmax_guards import drop_softmax_guards
from fairgate.onnx.width_switch import find_width_switch

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
