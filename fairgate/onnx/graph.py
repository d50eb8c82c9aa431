"""Cuts a decoder graph so that only needed positions reach the vocabulary projection.

The projection of every prompt position onto the vocabulary is most of a small model's work, and
all but the last position's result is thrown away. A `GatherND` keeps the positions that a new graph
input names: before the projection, or before the steps of the last layer that lead to it and take
each position by itself.
"""

from __future__ import annotations

from typing import Any

from fairgate.onnx.position_steps import states_before_steps

POSITIONS_INPUT = "fairgate_positions"
"""int64 `[rows, positions, 1]`: which positions of each row get logits."""

_ELEMENTWISE = frozenset({"Add", "Cast", "Div", "Identity", "Mul", "Sub", "Tanh"})
_PROJECTIONS = frozenset({"MatMul", "MatMulNBits"})
_MAX_STEPS = 12


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
