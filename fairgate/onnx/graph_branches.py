"""Writes the ONNX node that computes values in one of two ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


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
