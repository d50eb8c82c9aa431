"""Lets the last layer attend from the positions whose logits are read, and from no others.

What other positions find there is thrown away behind the layer (`graph.cut_to_positions`); their
keys and values are had before. Of a single position attention would take kernels of another order
of sums, so each is asked for twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairgate.onnx.attention_layers import Attention, AttentionGraph
from fairgate.onnx.graph import POSITIONS_INPUT

_SWAPPED = [0, 2, 1, 3]
"""Of heads and tokens."""


def keep_needed_queries(graph: AttentionGraph, layer: Attention) -> bool:
    """Let the graph behind a layer take needed positions only; return False where it takes others.

    From then on the layer's product has to be `[rows, heads, needed positions, size]`.
    """
    from onnx import TensorProto, helper

    kept = graph.only_reader(layer.merged.output[0], "GatherND")
    if kept is None or kept.input[1] != POSITIONS_INPUT:
        return False
    name = "fairgate_needed_shape"
    graph.graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, [3], [0, 0, -1]))
    layer.merged.input[1] = name
    for reader in graph.readers[kept.output[0]]:
        for place, each in enumerate(reader.input):
            if each == kept.output[0]:
                reader.input[place] = layer.merged.output[0]
    graph.graph.node.remove(kept)
    return True


def needed_of(found: str, output: str) -> list[Any]:
    """Return nodes that keep needed positions of `[rows, heads, tokens, size]`."""
    return _gathered(found, POSITIONS_INPUT, output)


def needed_mask(layer: Attention, name: Callable[[str], str]) -> tuple[list[Any], str, str]:
    """Return nodes, and what they make: needed queries, each twice, and what these may see."""
    from onnx import TensorProto, helper

    def number(each: str, value: int) -> Any:
        tensor = helper.make_tensor(name(each), TensorProto.INT64, [1], [value])
        return helper.make_node("Constant", [], [name(each)], value=tensor)

    made = helper.make_node
    past, (query, key, _) = layer.keys.input[0], layer.given
    nodes = [
        made("Concat", [POSITIONS_INPUT, POSITIONS_INPUT], [name("twice")], axis=1),
        *_gathered(query, name("twice"), name("queries")),
        made("Shape", [past], [name("before")], start=2, end=3),
        made("Shape", [key], [name("new")], start=2, end=3),
        made("Add", [name("before"), name("new")], [name("all")]),
        number("axes", 0),
        number("one", 1),
        made("Squeeze", [name("all"), name("axes")], [name("end")]),
        made("Squeeze", [name("axes")], [name("zero")]),
        made("Squeeze", [name("one")], [name("step")]),
        made("Range", [name("zero"), name("end"), name("step")], [name("slots")]),
        made("Add", [name("twice"), name("before")], [name("places")]),
        made("GreaterOrEqual", [name("places"), name("slots")], [name("seen")]),
        made("Unsqueeze", [name("seen"), name("one")], [name("mask")]),
    ]
    return nodes, name("queries"), name("mask")


def _gathered(found: str, positions: str, output: str) -> list[Any]:
    from onnx import helper

    made = helper.make_node
    turned, kept = f"{output}_turned", f"{output}_kept"
    return [
        made("Transpose", [found], [turned], perm=_SWAPPED),
        made("GatherND", [turned, positions], [kept], batch_dims=1),
        made("Transpose", [kept], [output], perm=_SWAPPED),
    ]
