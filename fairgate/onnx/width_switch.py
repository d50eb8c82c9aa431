"""Finds the width of the attention mask at which a graph turns to other rotary factors.

LongRoPE models (Phi-3, Phi-4) have short and long factors. The onnxruntime-genai builder writes
both and lets the mask's width, padding included, or the largest position of the batch choose.
"""

from __future__ import annotations

from typing import Any

_HANDED_ON = frozenset(
    {"Cast", "Gather", "Identity", "ReduceMax", "Reshape", "Shape", "Slice", "Squeeze", "Unsqueeze"}
)
_SOURCES = frozenset({"attention_mask", "position_ids"})
_MAX_STEPS = 12
# Offset from the constant to the last width before the switch, by operator and by whether the
# constant stands on the right.
_LAST_BEFORE = {
    ("Greater", True): 0,
    ("GreaterOrEqual", True): -1,
    ("Less", True): -1,
    ("LessOrEqual", True): 0,
    ("Greater", False): -1,
    ("GreaterOrEqual", False): 0,
    ("Less", False): 0,
    ("LessOrEqual", False): -1,
}


def find_width_switch(onnx: Any, model: Any) -> int | None:
    """Return the greatest width before the switch; None where no comparison decides on widths."""
    producers = {name: node for node in model.graph.node for name in node.output}
    constants = _constants(onnx, model)
    found = []
    for node in model.graph.node:
        for place, name in enumerate(node.input[:2]):
            offset = _LAST_BEFORE.get((node.op_type, place == 1))
            number = constants.get(name)
            other = node.input[1 - place] if len(node.input) == 2 else ""
            if offset is None or number is None or number < 2 or not other:
                continue
            if _is_a_width(other, producers):
                found.append(number + offset)
    return min(found, default=None)


def _constants(onnx: Any, model: Any) -> dict[str, int]:
    """Return the graph's single whole numbers by name."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value":
                    tensors[node.output[0]] = attribute.t
    single = {
        name: tensor
        for name, tensor in tensors.items()
        if tensor.data_type in {onnx.TensorProto.INT64, onnx.TensorProto.INT32}
        and tensor.data_location != onnx.TensorProto.EXTERNAL
        and all(size == 1 for size in tensor.dims)
    }
    return {name: int(onnx.numpy_helper.to_array(one).item()) for name, one in single.items()}


def _is_a_width(name: str, producers: dict[str, Any]) -> bool:
    """Return whether a value is the shape of the mask, or the largest of all positions."""
    reduced = False
    for _ in range(_MAX_STEPS):
        if name in _SOURCES:
            return reduced
        node = producers.get(name)
        if node is None or node.op_type not in _HANDED_ON:
            return False
        reduced = reduced or node.op_type in {"Shape", "ReduceMax"}
        name = node.input[0]
    return False
