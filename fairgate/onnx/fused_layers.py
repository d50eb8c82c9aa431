"""Lets a layer attend by the operator Attention where an input of the graph says so.

It has no mask to add, copies no keys and values for groups of heads, and is one node: prompts are
read in less time, each token attending to what stands before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairgate.onnx.attention_layers import Attention, AttentionGraph
from fairgate.onnx.fused_attention import attention_node
from fairgate.onnx.graph_branches import either
from fairgate.onnx.needed_queries import keep_needed_queries, needed_mask, needed_of

FUSED_INPUT = "fairgate_fused"
"""bool `[1]`: whether attention is one operator."""


def with_fused_attention(
    graph: AttentionGraph, layer: Attention, nodes: Sequence[Any], prefix: str
) -> list[Any]:
    """Return a layer's nodes with both ways in place of those that attend."""
    own = graph.between(layer, nodes)
    inside = {id(node) for node in own}
    needed = keep_needed_queries(graph, layer)
    outputs = [node.output[0] for node in (layer.product, layer.keys, layer.values)]
    choice = either(
        FUSED_INPUT,
        dict.fromkeys(outputs, layer.kind),
        prefix=f"{prefix}fused_",
        joint=_fused(layer, f"{prefix}fused_", needed=needed),
        plain=_of_needed(own, layer, f"{prefix}all") if needed else own,
    )
    ends = [place for place, node in enumerate(nodes) if id(node) in inside]
    before = [node for node in nodes[: ends[-1]] if id(node) not in inside]
    return [*before, choice, *nodes[ends[-1] + 1 :]]


def _of_needed(nodes: Sequence[Any], layer: Attention, name: str) -> list[Any]:
    """Return nodes that find the same, of needed positions only."""
    from onnx import NodeProto

    product = NodeProto()
    product.CopyFrom(layer.product)
    product.output[0] = name
    kept = needed_of(name, layer.product.output[0])
    return [*(product if node is layer.product else node for node in nodes), *kept]


def _fused(layer: Attention, prefix: str, *, needed: bool) -> tuple[list[Any], list[str]]:
    from onnx import helper

    def name(each: str) -> str:
        return f"{prefix}{each}"

    nodes: list[Any] = []
    (query, key, value), mask = layer.given, ""
    if needed:
        nodes, query, mask = needed_mask(layer, name)
    cached = [layer.keys.input[0], layer.values.input[0]]
    found = [name("found"), name("all_keys"), name("all_values")]
    nodes.append(attention_node([query, key, value, mask, *cached], found, scale=layer.scale))
    if needed:
        halves = [name("first"), name("second")]
        nodes.append(helper.make_node("Split", found[:1], halves, axis=2, num_outputs=2))
        found[0] = name("first")
    return nodes, found
