"""Finds what a decoder computes of each position by itself before the vocabulary projection.

After its attention the last layer takes one position at a time: output projection, sum with what
entered the layer, normalisation, feed-forward network. Of positions whose logits nobody reads all
of this is thrown away, about three quarters of the layer's products: its keys and values are had
before.
"""

from __future__ import annotations

from typing import Any

_ELEMENTWISE = frozenset(
    {"Add", "Cast", "Div", "Erf", "Gelu", "Identity", "Mul", "Neg", "Pow", "Reciprocal"}
    | {"Relu", "Sigmoid", "Sqrt", "Sub", "Tanh"}
)
_LAST_AXIS = frozenset({"LayerNormalization", "SimplifiedLayerNormalization"})
_HANDED_ON = frozenset({"Cast", "Identity"})
_WHOLE_STATES = frozenset({"Add", "GroupQueryAttention", "MultiHeadAttention", "Reshape"})
"""What hands `[rows, positions, width]` to these steps: a residual sum, an attention's result."""


def states_before_steps(model: Any, end: Any, varying: set[str]) -> tuple[list[str], list[Any]]:
    """Return the values that the steps before the node `end` begin with, and the steps.

    Without steps, or where a value's shape is not beyond doubt, that is what `end` reads.
    `varying`: the names of all values that an input of the graph can change.
    """
    constants = _constants(model)
    kept = {value.name for value in model.graph.output}
    nodes = list(model.graph.node)
    producers = {name: node for node in nodes for name in node.output}
    readers: dict[str, list[int]] = {}
    for node in nodes:
        for name in node.input:
            readers.setdefault(name, []).append(id(node))
    steps: list[Any] = []
    inside = {id(end)}
    for node in reversed(nodes):
        read_by = {reader for name in node.output for reader in readers.get(name, ())}
        alone = read_by and read_by <= inside and kept.isdisjoint(node.output)
        if alone and _is_step(node, varying, constants):
            steps.append(node)
            inside.add(id(node))
    made = {name for node in steps for name in node.output}
    read = [name for node in (end, *steps) for name in node.input if name in varying - made]
    begin = list(dict.fromkeys(read))
    if all(_are_states(name, producers) for name in begin):
        return begin, steps
    return [end.input[0]], []


def _are_states(name: str, producers: dict[str, Any]) -> bool:
    """Return whether a value is beyond doubt `[rows, positions, width]`."""
    node = producers.get(name)
    while node is not None and node.op_type in _HANDED_ON:
        node = producers.get(node.input[0])
    return node is not None and node.op_type in _WHOLE_STATES


def _is_step(node: Any, varying: set[str], constants: dict[str, Any]) -> bool:
    """Return whether a node computes each position of `[rows, positions, …]` by itself."""
    moving = [name in varying for name in node.input]
    fixed = [constants.get(name) for name in node.input if name not in varying]
    if not any(moving) or None in fixed:
        return False
    if node.op_type == "MatMul":
        return moving[0] and not any(moving[1:]) and len(fixed[0].dims) == 2  # type: ignore[union-attr]
    if node.op_type == "MatMulNBits":
        return moving[0] and not any(moving[1:])
    if node.op_type == "ReduceMean":
        return _attribute(node, "keepdims", 1) == 1 and _axes(node, constants) == [-1]
    vectors = all(set(one.dims[:-1]) <= {1} and len(one.dims) <= 3 for one in fixed)  # type: ignore[union-attr]
    if node.op_type in _LAST_AXIS:
        return vectors and moving[0] and _attribute(node, "axis", -1) == -1
    return vectors and node.op_type in _ELEMENTWISE


def _constants(model: Any) -> dict[str, Any]:
    """Return the tensors that no input changes, by name; their sizes are in the graph's file."""
    found = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Identity" and node.input[0] in found:
            found[node.output[0]] = found[node.input[0]]  # equal weights are stored once
        elif node.op_type == "Constant":
            found.update((node.output[0], one.t) for one in node.attribute if one.name == "value")
    return found


def _axes(node: Any, constants: dict[str, Any]) -> list[int]:
    """Return the axes of a reduction, which newer operator sets give as a constant."""
    from onnx import TensorProto, numpy_helper

    named = [list(one.ints) for one in node.attribute if one.name == "axes"]
    if len(node.input) < 2 or named:
        return named[0] if named else []
    tensor = constants[node.input[1]]
    if tensor.data_location == TensorProto.EXTERNAL:
        return []
    return [int(axis) for axis in numpy_helper.to_array(tensor).ravel()]


def _attribute(node: Any, name: str, default: int) -> int:
    return next((int(one.i) for one in node.attribute if one.name == name), default)
