"""Finds windows and chunks that stand in a graph's mask only, by what slots are compared with.

They count slots of the cache, so that padding between a prompt and its answer takes tokens from
them, as it does where `config.json` tells of a window.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairgate.onnx.attention_layers import AttentionGraph

_COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
_BY_FIRST = frozenset(
    {"Abs", "Cast", "Expand", "Flatten", "Identity", "Neg", "Reshape", "Squeeze", "Unsqueeze"}
)
_BY_ALL = frozenset({"Add", "Div", "Mod", "Sub"})
_NO_DISTANCE = 2**31 - 1


def mask_window(model: Any) -> int | None:
    """Return the least number of slots that any comparison of slots counts; None without one.

    `model`: an `onnx.ModelProto`. Differences of one, as in a causal mask, are none.
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
