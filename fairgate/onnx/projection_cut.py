"""Cuts a decoder graph so that only needed positions reach the vocabulary projection.

The projection of every prompt position onto the vocabulary is most of a small model's work, and
all but the last position's result is thrown away. A `GatherND` keeps the positions that a new graph
input names: before the projection, or before the steps of the last layer that lead to it and take
each position by itself.
"""

from __future__ import annotations

from typing import Any

POSITIONS_INPUT = "fairgate_positions"
"""int64 `[rows, positions, 1]`: which positions of each row get logits."""

_ELEMENTWISE = frozenset({"Add", "Cast", "Div", "Identity", "Mul", "Sub", "Tanh"})
_PROJECTIONS = frozenset({"MatMul", "MatMulNBits"})
_MAX_STEPS = 12
_POSITION_STEPS = frozenset(
    {"Add", "Cast", "Div", "Erf", "Gelu", "Identity", "Mul", "Neg", "Pow", "Reciprocal"}
    | {"Relu", "Sigmoid", "Sqrt", "Sub", "Tanh"}
)
_LAST_AXIS = frozenset({"LayerNormalization", "SimplifiedLayerNormalization"})
_HANDED_ON = frozenset({"Cast", "Identity"})
_WHOLE_STATES = frozenset({"Add", "GroupQueryAttention", "MultiHeadAttention", "Reshape"})
"""What hands `[rows, positions, width]` to these steps: a residual sum, an attention's result."""


def cut_to_positions(model: Any) -> bool:
    """Cut a loaded graph; return False, and change nothing, where the place is not beyond doubt.

    Found means: from the output `logits` back through elementwise operations with constants to
    one product, in whatever format, whose weights depend on no input. That makes the projection's
    data `[rows, positions, width]`. Results are the same bytes either way, only slower without.
    """
    projection = _find_projection(model)
    if projection is None or not _supports_gather(model) or _keeps_one_position(model):
        return False
    _insert_gather(model, projection)
    return True


def _find_projection(model: Any) -> Any | None:
    """Return the node that multiplies hidden states with the vocabulary's vectors."""
    producers = {name: node for node in model.graph.node for name in node.output}
    varying = _depends_on_input(model)
    name = "logits"
    for _ in range(_MAX_STEPS):
        node = producers.get(name)
        if node is None:
            return None
        moving = [source for source in node.input if source in varying]
        if node.op_type in _PROJECTIONS:
            return node if moving == [node.input[0]] else None
        if node.op_type not in _ELEMENTWISE or len(moving) != 1:
            return None
        name = moving[0]
    return None


def _depends_on_input(model: Any) -> set[str]:
    """Return the names of all values that an input of the graph can change."""
    constant = {tensor.name for tensor in model.graph.initializer}
    varying = {node.name for node in model.graph.input} - constant
    for node in model.graph.node:  # in topological order, as ONNX demands
        has_subgraph = any(attribute.HasField("g") for attribute in node.attribute)
        if has_subgraph or any(source in varying for source in node.input):
            varying.update(node.output)
    return varying


def _keeps_one_position(model: Any) -> bool:
    """Return whether the graph itself drops all positions but one."""
    logits = [one for one in model.graph.output if one.name == "logits"]
    return any(
        len(dimensions := one.type.tensor_type.shape.dim) > 1 and dimensions[1].dim_value == 1
        for one in logits
    )


def _supports_gather(model: Any) -> bool:
    return any(one.domain in {"", "ai.onnx"} and one.version >= 12 for one in model.opset_import)


def states_before_steps(model: Any, end: Any, varying: set[str]) -> tuple[list[str], list[Any]]:
    """Return the values that the steps before the node `end` begin with, and the steps.

    Without steps, or where a value's shape is not beyond doubt, that is what `end` reads.
    `varying`: the names of all values that an input of the graph can change.

    After its attention the last layer takes one position at a time: output projection, sum with
    what entered the layer, normalisation, feed-forward network. Of positions whose logits nobody
    reads all of this is thrown away, about three quarters of the layer's products: its keys and
    values are computed before.
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
    return vectors and node.op_type in _POSITION_STEPS


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


def _insert_gather(model: Any, projection: Any) -> None:
    import onnx

    names, steps = states_before_steps(model, projection, _depends_on_input(model))
    kept = {name: f"fairgate_kept_{place}" for place, name in enumerate(names)}
    nodes = list(model.graph.node)
    made_at = {name: place for place, node in enumerate(nodes) for name in node.output}
    for node in (projection, *steps):
        for place, name in enumerate(node.input):
            if name in kept:
                node.input[place] = kept[name]
    for name in sorted(names, key=lambda name: made_at.get(name, -1), reverse=True):
        gather = onnx.helper.make_node(
            "GatherND",
            [name, POSITIONS_INPUT],
            [kept[name]],
            name=f"fairgate_keep_positions_{kept[name]}",
            batch_dims=1,
        )
        nodes.insert(made_at.get(name, -1) + 1, gather)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    del model.graph.value_info[:]  # shapes behind the cut have changed
    model.graph.input.append(
        onnx.helper.make_tensor_value_info(
            POSITIONS_INPUT, onnx.TensorProto.INT64, ["fairgate_rows", "fairgate_kept", 1]
        )
    )
    for output in model.graph.output:
        dimensions = output.type.tensor_type.shape.dim
        if output.name == "logits" and len(dimensions) > 1:
            dimensions[1].Clear()
            dimensions[1].dim_param = "fairgate_kept"
