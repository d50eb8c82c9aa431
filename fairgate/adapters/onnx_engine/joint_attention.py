"""Gives a decoder graph a second way to attend, for rows of unlike lengths in one batch.

An exported graph appends each token's key and value behind the widest row, copies the whole cache
for that and repeats it for every group of heads. The operator GroupQueryAttention reads each row's
own tokens only, wherever the others end, and writes the new ones into the cache in place: Ainslie
et al., GQA: Training Generalized Multi-Query Transformer Models, EMNLP 2023; the layout is that of
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.

Both ways stand in one graph, behind an `If` on the input `JOINT_INPUT`, so that they share weights
and prompts are read as before, bit by bit. A graph in which any layer's attention is not the plain
one in float32 is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fairgate.adapters.onnx_engine.attention_layers import (
    Attention,
    AttentionGraph,
    plain_attention,
)

JOINT_INPUT = "fairgate_joint"
"""bool `[1]`: whether one token is added to each row of a cache without gaps."""

_PREFIX = "fairgate_joint_"
_DOMAIN = "com.microsoft"
_FLOAT32 = 1
"""TensorProto's number of the one format in which the operator's bits are the same in any batch: in
float16 the last bit of a logit changed with it in 2 of 240 steps of a random model."""
_OLDEST = 13
"""The first version of ONNX whose ReduceSum takes its axes as an input."""


def join_attention(model: Any) -> bool:
    """Add the second way to an `onnx.ModelProto`; return False, unchanged, where it does not fit.

    With `JOINT_INPUT` set, keys and values must lie without gaps from slot 0 on, `attention_mask`
    has one column more than the cache has slots, and the tokens are one per row. Whether both ways
    agree is for the caller to try out: layers are recognised by their nodes, not by their meaning.
    """
    versions = [each.version for each in model.opset_import if each.domain in {"", "ai.onnx"}]
    layers = plain_attention(model) if max(versions, default=0) >= _OLDEST else []
    if not layers or any(layer.kind != _FLOAT32 for layer in layers):
        return False
    _insert(model, layers)
    return True


def _insert(model: Any, layers: list[Attention]) -> None:
    from onnx import TensorProto, helper

    graph, first = AttentionGraph(model), layers[0]
    whole, shared = first.heads * first.size, first.shared_heads * first.size
    shapes = {"queries": [-1, 1, whole], "cached": [-1, 1, shared]}
    shapes |= {"found": [-1, first.heads, 1, first.size], "axis": [1], "one": [1]}
    for name, numbers in shapes.items():
        model.graph.initializer.append(
            helper.make_tensor(_PREFIX + name, TensorProto.INT64, [len(numbers)], numbers)
        )
    model.graph.input.append(helper.make_tensor_value_info(JOINT_INPUT, TensorProto.BOOL, [1]))
    replaced: dict[int, Any] = {}
    left_out: set[int] = set()
    for number, layer in enumerate(layers):
        nodes = graph.inside(layer)
        left_out.update(map(id, nodes))
        replaced[id(layer.product)] = _either(layer, nodes, f"{_PREFIX}{number}_")
    nodes = [*_lengths(), *_nodes(model, left_out, replaced)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    del model.graph.value_info[:]
    if all(each.domain != _DOMAIN for each in model.opset_import):
        model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))


def _nodes(model: Any, left_out: set[int], replaced: dict[int, Any]) -> Iterator[Any]:
    for node in model.graph.node:
        if id(node) in replaced:
            yield replaced[id(node)]
        elif id(node) not in left_out:
            yield node


def _lengths() -> list[Any]:
    """Return nodes that count each row's tokens, less one, and those of the longest row."""
    from onnx import TensorProto, helper

    made, name = helper.make_node, _named(_PREFIX)
    return [
        made("ReduceSum", ["attention_mask", name("axis")], [name("sums")], keepdims=0),
        made("Sub", [name("sums"), name("one")], [name("before")]),
        made("Cast", [name("before")], [name("lengths")], to=TensorProto.INT32),
        made("ReduceMax", [name("sums")], [name("most")], keepdims=0),
        made("Cast", [name("most")], [name("longest")], to=TensorProto.INT32),
    ]


def _either(layer: Attention, nodes: list[Any], prefix: str) -> Any:
    """Return the node that attends in one of both ways, with the outputs of the first."""
    from onnx import NodeProto, helper

    targets = [node.output[0] for node in (layer.product, layer.keys, layer.values)]
    plain = {target: f"{prefix}plain_{place}" for place, target in enumerate(targets)}
    copies = []
    for node in nodes:
        copy = NodeProto()
        copy.CopyFrom(node)
        for names in (copy.input, copy.output):
            for place, each in enumerate(names):
                names[place] = plain.get(each, each)
        copies.append(copy)
    kinds = [layer.kind] * len(targets)
    return helper.make_node(
        "If",
        [JOINT_INPUT],
        targets,
        name=f"{prefix}either",
        then_branch=_joint(layer, prefix, kinds),
        else_branch=_branch(f"{prefix}plain", copies, list(plain.values()), kinds),
    )


def _joint(layer: Attention, prefix: str, kinds: list[int]) -> Any:
    from onnx import helper

    name, fixed = _named(prefix), _named(_PREFIX)
    made = helper.make_node
    given = [name("queries"), name("keys"), name("values"), layer.keys.input[0]]
    nodes = [
        made("Reshape", [layer.query, fixed("queries")], [name("queries")]),
        made("Reshape", [layer.keys.input[1], fixed("cached")], [name("keys")]),
        made("Reshape", [layer.values.input[1], fixed("cached")], [name("values")]),
        made(
            "GroupQueryAttention",
            [*given, layer.values.input[0], fixed("lengths"), fixed("longest")],
            [name("attended"), name("all_keys"), name("all_values")],
            domain=_DOMAIN,
            num_heads=layer.heads,
            kv_num_heads=layer.shared_heads,
            scale=layer.scale,
        ),
        made("Reshape", [name("attended"), fixed("found")], [name("found")]),
    ]
    found = [name("found"), name("all_keys"), name("all_values")]
    return _branch(f"{prefix}joint", nodes, found, kinds)


def _branch(name: str, nodes: list[Any], outputs: list[str], kinds: list[int]) -> Any:
    from onnx import helper

    values = [
        helper.make_tensor_value_info(each, kind, None)
        for each, kind in zip(outputs, kinds, strict=True)
    ]
    return helper.make_graph(nodes, name, [], values)


def _named(prefix: str) -> Callable[[str], str]:
    return lambda name: prefix + name
