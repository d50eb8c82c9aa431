"""Raises the version of ONNX that a graph is written in, where all of it means the same."""

from __future__ import annotations

from typing import Any

_ONNX = frozenset({"", "ai.onnx"})
_OLDEST, _NEWEST = 18, 23
"""Between these, the operators below only came to take further number formats and attributes."""
_ALIKE = frozenset(
    {"Cast", "Constant", "ConstantOfShape", "Cos", "Equal", "Flatten", "Identity", "IsNaN"}
    | {"Reshape", "Shape", "Sin", "Size", "Squeeze", "Transpose", "Unsqueeze"}
)


def raise_version(model: Any) -> bool:
    """Raise an `onnx.ModelProto` to version 23; return False, unchanged, where it may not be."""
    sets = [each for each in model.opset_import if each.domain in _ONNX]
    if len(sets) != 1 or sets[0].version < _OLDEST or model.functions:
        return False
    if sets[0].version < _NEWEST:
        nodes = [node for node in model.graph.node if node.domain in _ONNX]
        if any(_has_graph(node) or not _is_alike(node, sets[0].version) for node in nodes):
            return False
        sets[0].version = _NEWEST
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
            for each in (version, _NEWEST)
        )
    except defs.SchemaError:
        return False
    return bool(before == after)
