"""Gives a decoder graph further ways to attend, as for rows of unlike lengths in one batch.

An exported graph appends each token's key and value behind the widest row, copies the whole cache
for that and repeats it for every group of heads. The operator GroupQueryAttention reads each row's
own tokens only, wherever the others end, and writes the new ones into the cache in place: Ainslie
et al., GQA: Training Generalized Multi-Query Transformer Models, EMNLP 2023; the layout is that of
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.

All ways stand in one graph, behind an `If` on the input `JOINT_INPUT` and, for the one of
`fused_layers`, on `FUSED_INPUT`, so that they share weights and prompts are read as before, bit by
bit. A graph in which any layer's attention is not the plain one in float32 is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fairgate.onnx.attention_layers import Attention, AttentionGraph, plain_attention
from fairgate.onnx.fused_layers import (
    FUSED_INPUT,
    either,
    runs_fused_attention,
    with_fused_attention,
)
from fairgate.onnx.runtime_errors import imported_runtime

JOINT_INPUT = "fairgate_joint"
"""bool `[1]`: whether one token is added to each row of a cache without gaps."""

_PREFIX = "fairgate_joint_"
_DOMAIN = "com.microsoft"
_POSITIONS = "position_ids"
_FLOAT32 = 1
"""TensorProto's number of the one format in which the operator's bits are the same in any batch: in
float16 the last bit of a logit changed with it in 2 of 240 steps of a random model."""
_OLDEST = 13
"""The first version of ONNX whose ReduceSum takes its axes as an input."""
_GIVES_SCORES = (1, 24)
"""A version of ONNX Runtime whose operator also gives the scores. It then multiplies a row as a
whole, in two thirds of the time of the tiles that it takes else, which are made for many tokens."""
_AFTER_SOFTMAX = 2
_ELSE, _OTHER = "else", "other"
_ONNX = frozenset({"", "ai.onnx"})
_OLDEST_SET, _NEWEST_SET = 18, 23
"""Between these, the operators below only came to take further number formats and attributes."""
_ALIKE = frozenset(
    {"Cast", "Constant", "ConstantOfShape", "Cos", "Equal", "Flatten", "Identity", "IsNaN"}
    | {"Reshape", "Shape", "Sin", "Size", "Squeeze", "Transpose", "Unsqueeze"}
)


def hide_plain_nodes(model: Any, condition: str, prefix: str) -> None:
    """Let nodes run where the plain way is chosen only.

    Those are nodes before the first `If` on the condition that nothing but the else-branches of
    such `If`s reads, at first or second hand.

    What an exporter computes for all layers, above all the mask, is read by the plain way only;
    without this, each joint step would compute it in vain.
    """
    nodes = list(model.graph.node)
    first = next(place for place, node in enumerate(nodes) if _chooses(node, condition))
    readers = _readers(model, condition)
    hidden: dict[int, Any] = {}
    for node in reversed(nodes[:first]):
        read_by = {reader for name in node.output for reader in readers.get(name, [_OTHER])}
        if node.op_type != "Constant" and all(one == _ELSE or one in hidden for one in read_by):
            hidden[id(node)] = node
    moved = [node for node in nodes[:first] if id(node) in hidden]
    shown = [name for node in moved for name in node.output if _ELSE in readers.get(name, [])]
    kinds = _kinds(model, nodes[:first])
    if not shown or not all(name in kinds for name in shown):
        return
    formats = {name: kinds[name] for name in shown}
    unread = _unread(prefix, list(formats.values()))
    chosen = either(condition, formats, prefix=prefix, joint=unread, plain=moved)
    kept = [node for node in nodes[:first] if id(node) not in hidden]
    del model.graph.node[:]
    model.graph.node.extend([*kept, chosen, *nodes[first:]])


def _chooses(node: Any, condition: str) -> bool:
    return bool(node.op_type == "If" and node.input[0] == condition)


def _readers(model: Any, condition: str) -> dict[str, list[int | str]]:
    """Return who reads each value: nodes by their ids, else-branches, or anything else."""
    found: dict[str, list[int | str]] = {each.name: [_OTHER] for each in model.graph.output}
    for node in model.graph.node:
        for name in node.input:
            found.setdefault(name, []).append(id(node))
        for attribute in node.attribute:
            if attribute.HasField("g"):
                plain = _chooses(node, condition) and attribute.name == "else_branch"
                for name in _names_in(attribute.g):
                    found.setdefault(name, []).append(_ELSE if plain else _OTHER)
    return found


def _names_in(graph: Any) -> Iterator[str]:
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _names_in(attribute.g)
    for value in graph.output:
        yield value.name


def _kinds(model: Any, nodes: Sequence[Any]) -> dict[str, int]:
    """Return TensorProto's number of the format of what nodes make, as far as it can be told."""
    from onnx import helper, shape_inference

    graph = model.graph
    constants = [
        helper.make_tensor_value_info(each.name, each.data_type, list(each.dims))
        for each in graph.initializer
    ]
    traced = helper.make_graph(nodes, "formats", [*graph.input, *constants], [])
    found = shape_inference.infer_shapes(
        helper.make_model(
            traced, opset_imports=list(model.opset_import), ir_version=model.ir_version
        )
    )
    return {
        value.name: value.type.tensor_type.elem_type
        for value in found.graph.value_info
        if value.type.tensor_type.elem_type
    }


def _unread(prefix: str, kinds: Sequence[int]) -> tuple[list[Any], list[str]]:
    """Return nodes that make a number of each format, and their names."""
    from onnx import helper

    names = [f"{prefix}unread_{place}" for place in range(len(kinds))]
    nodes = [
        helper.make_node("Constant", [], [name], value=helper.make_tensor(name, kind, [1], [0]))
        for name, kind in zip(names, kinds, strict=True)
    ]
    return nodes, names


def raise_version(model: Any) -> bool:
    """Raise an `onnx.ModelProto` to version 23; return False, unchanged, where it may not be."""
    sets = [each for each in model.opset_import if each.domain in _ONNX]
    if len(sets) != 1 or sets[0].version < _OLDEST_SET or model.functions:
        return False
    if sets[0].version < _NEWEST_SET:
        nodes = [node for node in model.graph.node if node.domain in _ONNX]
        if any(_has_graph(node) or not _is_alike(node, sets[0].version) for node in nodes):
            return False
        sets[0].version = _NEWEST_SET
    return True


def _has_graph(node: Any) -> bool:
    return any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)


def _is_alike(node: Any, version: int) -> bool:
    """Return whether an operator means the same in both versions."""
    from onnx import defs

    if node.op_type in _ALIKE:
        return True
    try:
        before, after = (
            defs.get_schema(node.op_type, max_inclusive_version=each, domain="").since_version
            for each in (version, _NEWEST_SET)
        )
    except defs.SchemaError:
        return False
    return bool(before == after)


def join_attention(model: Any) -> bool:
    """Add these ways to an `onnx.ModelProto`; return False, unchanged, where they do not fit.

    With `JOINT_INPUT` set, the tokens are one per row, and keys and values lie without gaps from
    slot 0 on, as many as `position_ids` say, or else one less than `attention_mask` marks. With
    `FUSED_INPUT`, where there is one, no row has gaps before its last token. Whether all ways agree
    is for the caller to try out: layers are recognised by their nodes, not by their meaning.
    """
    versions = [each.version for each in model.opset_import if each.domain in {"", "ai.onnx"}]
    layers = plain_attention(model) if max(versions, default=0) >= _OLDEST else []
    if not layers or any(layer.kind != _FLOAT32 for layer in layers):
        return False
    _insert(model, layers, fuses=runs_fused_attention() and raise_version(model))
    hide_plain_nodes(model, JOINT_INPUT, _PREFIX + "shared_")
    return True


def _insert(model: Any, layers: list[Attention], *, fuses: bool) -> None:
    from onnx import TensorProto, helper

    graph = AttentionGraph(model)
    counted = any(value.name == _POSITIONS for value in model.graph.input)
    model.graph.initializer.extend(_constants(layers[0]))
    for name in (JOINT_INPUT, FUSED_INPUT) if fuses else (JOINT_INPUT,):
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.BOOL, [1]))
    replaced: dict[int, list[Any]] = {}
    left_out: set[int] = set()
    turned: set[str] = set()
    for number, layer in enumerate(layers):
        nodes, prefix = graph.inside(layer), f"{_PREFIX}{number}_"
        left_out.update(map(id, nodes))
        outputs = [node.output[0] for node in (layer.merged, layer.keys, layer.values)]
        choice = either(
            JOINT_INPUT,
            dict.fromkeys(outputs, layer.kind),
            prefix=prefix,
            joint=_joint(layer, prefix),
            plain=with_fused_attention(graph, layer, nodes, prefix) if fuses else nodes,
        )
        replaced[id(layer.merged)] = [*_angles(layer, turned), choice]
    nodes = [*_lengths(counted=counted), *_nodes(model, left_out, replaced)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    del model.graph.value_info[:]
    if all(each.domain != _DOMAIN for each in model.opset_import):
        model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))


def _nodes(model: Any, left_out: set[int], replaced: dict[int, list[Any]]) -> Iterator[Any]:
    for node in model.graph.node:
        if id(node) in replaced:
            yield from replaced[id(node)]
        elif id(node) not in left_out:
            yield node


def _constants(layer: Attention) -> Iterator[Any]:
    from onnx import TensorProto, helper

    whole, shared, half = layer.heads * layer.size, layer.shared_heads * layer.size, layer.size // 2
    numbers = {"queries": [-1, 1, whole], "cached": [-1, 1, shared], "angles": [-1, half]}
    numbers |= {"flat": [-1], "column": [-1, 1], "half": [half], "last": [3], "first": [0]}
    for name, values in (numbers | {"axis": [1], "one": [1]}).items():
        yield helper.make_tensor(_PREFIX + name, TensorProto.INT64, [len(values)], values)
    for name, value in (("none", 0), ("each", 1)):
        yield helper.make_tensor(_PREFIX + name, TensorProto.INT64, [], [value])
    yield helper.make_tensor(_PREFIX + "token", TensorProto.INT32, [], [1])


def _lengths(*, counted: bool) -> list[Any]:
    """Return nodes that count each row's tokens, less one, those of the longest row, and rows."""
    from onnx import TensorProto, helper

    made, name = helper.make_node, _named(_PREFIX)
    before = [
        made("ReduceSum", ["attention_mask", name("axis")], [name("sums")], keepdims=0),
        made("Sub", [name("sums"), name("one")], [name("before")]),
    ]
    if counted:
        before = [made("Reshape", [_POSITIONS, name("flat")], [name("before")])]
    return [
        *before,
        made("Cast", [name("before")], [name("lengths")], to=TensorProto.INT32),
        made("ReduceMax", [name("lengths")], [name("most")], keepdims=0),
        made("Add", [name("most"), name("token")], [name("longest")]),
        made("Size", [name("before")], [name("size")]),
        made("Range", [name("none"), name("size"), name("each")], [name("places")]),
        made("Reshape", [name("places"), name("column")], [name("rows")]),
    ]


def _angles(layer: Attention, known: set[str]) -> Iterator[Any]:
    """Yield nodes that write each row's cosines and sines as a table, unless they are `known`."""
    from onnx import helper

    name, inputs = _named(_PREFIX), layer.plain_inputs
    for each in () if inputs is None else (inputs.cosines, inputs.sines):
        if each not in known:
            known.add(each)
            given = [each, name("first"), name("half"), name("last")]
            yield helper.make_node("Slice", given, [f"{each}_half"])
            yield helper.make_node("Reshape", [f"{each}_half", name("angles")], [f"{each}_table"])


def _joint(layer: Attention, prefix: str) -> tuple[list[Any], list[str]]:
    """Return the nodes of the second way, and what they give: attention, keys, values.

    The operator's own scale would make its product of queries and keys twice as slow.
    """
    from onnx import TensorProto, helper

    name, fixed, made = _named(prefix), _named(_PREFIX), helper.make_node
    scale = helper.make_tensor(name("scale"), TensorProto.FLOAT, [1], [layer.scale])
    nodes, (queries, keys, values) = _projected(layer, prefix)
    found = [name("attended"), name("all_keys"), name("all_values")]
    version = tuple(map(int, imported_runtime().__version__.split(".")[:2]))
    scores = {"qk_output": _AFTER_SOFTMAX} if version >= _GIVES_SCORES else {}
    given = [name("scaled"), keys, values, layer.keys.input[0], layer.values.input[0]]
    nodes += [
        made("Constant", [], [name("scale")], value=scale),
        made("Mul", [queries, name("scale")], [name("scaled")]),
        made(
            "GroupQueryAttention",
            [*given, fixed("lengths"), fixed("longest")],
            [*found, name("scores")] if scores else found,
            domain=_DOMAIN,
            num_heads=layer.heads,
            kv_num_heads=layer.shared_heads,
            scale=1.0,
            **scores,
        ),
    ]
    return nodes, found


def _projected(layer: Attention, prefix: str) -> tuple[list[Any], list[str]]:
    """Return nodes that write queries, keys and values as `[rows, 1, heads * size]`."""
    from onnx import helper

    name, fixed, made = _named(prefix), _named(_PREFIX), helper.make_node
    names, inputs = [name("queries"), name("keys"), name("values")], layer.plain_inputs
    if inputs is None:
        given = [layer.query, layer.keys.input[1], layer.values.input[1]]
        shapes = [fixed("queries"), fixed("cached"), fixed("cached")]
        return [
            made("Reshape", [each, shape], [own])
            for each, shape, own in zip(given, shapes, names, strict=True)
        ], names
    tables = [fixed("rows"), f"{inputs.cosines}_table", f"{inputs.sines}_table"]
    return [
        made("RotaryEmbedding", [each, *tables], [own], domain=_DOMAIN)
        for each, own in zip((inputs.queries, inputs.keys), names, strict=False)
    ], [*names[:2], inputs.values]


def _named(prefix: str) -> Callable[[str], str]:
    return lambda name: prefix + name
