"""Moves what only one way to attend reads behind the condition that chooses it.

What an exporter computes for all layers, above all the mask, is read by the plain way only; without
this, each joint step would compute it for nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairgate.onnx.graph_branches import either

_ELSE, _OTHER = "else", "other"


def hide_plain_nodes(model: Any, condition: str, prefix: str) -> None:
    """Let nodes run where the plain way is chosen only.

    Those are nodes before the first `If` on the condition that nothing but the else-branches of
    such `If`s reads, at first or second hand.
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
