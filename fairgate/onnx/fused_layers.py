"""Lets a layer attend by the operator Attention where an input of the graph says so.

It has no mask to add, copies no keys and values for groups of heads, and is one node: prompts are
read in less time, each token attending to what stands before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from fairgate.onnx.attention_layers import Attention, AttentionGraph
from fairgate.onnx.projection_cut import POSITIONS_INPUT
from fairgate.onnx.runtime_errors import imported_runtime

FUSED_INPUT = "fairgate_fused"
"""bool `[1]`: whether attention is one operator."""
_SWAPPED = [0, 2, 1, 3]
"""Of heads and tokens."""
_VERSION = 23
_IR_VERSION = 10
"""Of the format of files, the first that belongs to this version of ONNX and that all runtimes of
the operator read."""


def keep_needed_queries(graph: AttentionGraph, layer: Attention) -> bool:
    """Let the graph behind a layer take needed positions only; return False where it takes others.

    From then on the layer's product has to be `[rows, heads, needed positions, size]`.

    What other positions find is thrown away behind the layer (`graph.cut_to_positions`); their keys
    and values are computed before. Of a single position attention would take kernels of another
    order of sums, so each is asked for twice.
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


def either(
    condition: str,
    kinds: Mapping[str, int],
    *,
    prefix: str,
    joint: tuple[Sequence[Any], Sequence[str]],
    plain: Sequence[Any],
) -> Any:
    """Return an `If` that makes the values named in `kinds`, of TensorProto's formats.

    Where the condition holds, by the nodes of `joint`, which give them in order under names of
    their own; elsewhere by the nodes of `plain`, which make them under these names now.
    """
    from onnx import helper

    inner = {name: f"{prefix}plain_{place}" for place, name in enumerate(kinds)}
    nodes, names = joint
    return helper.make_node(
        "If",
        [condition],
        list(kinds),
        name=f"{prefix}either",
        then_branch=_branch(f"{prefix}joint", nodes, names, kinds.values()),
        else_branch=_branch(
            f"{prefix}plain", _renamed(plain, inner), list(inner.values()), kinds.values()
        ),
    )


def _renamed(nodes: Sequence[Any], names: Mapping[str, str]) -> list[Any]:
    from onnx import NodeProto

    copies = []
    for node in nodes:
        copy = NodeProto()
        copy.CopyFrom(node)
        for each in (copy.input, copy.output):
            for place, name in enumerate(each):
                each[place] = names.get(name, name)
        copies.append(copy)
    return copies


def _branch(name: str, nodes: Sequence[Any], outputs: Sequence[str], kinds: Any) -> Any:
    from onnx import helper

    values = [
        helper.make_tensor_value_info(each, kind, None)
        for each, kind in zip(outputs, kinds, strict=True)
    ]
    return helper.make_graph(nodes, name, [], values)


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
    kept = _gathered(name, POSITIONS_INPUT, layer.product.output[0])
    return [*(product if node is layer.product else node for node in nodes), *kept]


def attention_node(inputs: Sequence[str], outputs: Sequence[str], *, scale: float) -> Any:
    """Return a node in which tokens attend.

    `inputs`: query, key and value `[rows, heads, tokens, size]`, what each query sees (empty: what
    stands before it, itself included), and the keys and values before them. `outputs`: what is
    found, all keys, all values.
    """
    from onnx import helper

    return helper.make_node("Attention", inputs, outputs, is_causal=not inputs[3], scale=scale)


@cache
def runs_fused_attention() -> bool:
    """Return whether ONNX Runtime can load the operator, with keys and values before a prompt.

    The operator is Attention of ONNX 23, https://onnx.ai/onnx/operators/onnx__Attention.html.
    """
    from onnx import TensorProto, helper

    onnxruntime = imported_runtime()
    given, found = ["query", "key", "value", "keys", "values"], ["found", "all_keys", "all_values"]
    node = attention_node([*given[:3], "", *given[3:]], found, scale=1.0)
    shape = ["rows", "heads", None, "size"]
    values = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names]
        for names in (given, found)
    ]
    model = helper.make_model(
        helper.make_graph([node], "attention", *values),
        opset_imports=[helper.make_opsetid("", _VERSION)],
        ir_version=_IR_VERSION,
    )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # noqa: BLE001 an older runtime, which says so in one of many ways
        return False
    return True


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
