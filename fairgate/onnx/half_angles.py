"""Refuses graphs that turn positions into angles in half precision.

An angle is a position times a frequency. Half precision has 11 bits: beyond 128 tokens it is off
by up to a sixteenth of a radian, beyond a thousand by half a one, and a rotary embedding turns
late tokens elsewhere (`tests/unit/features/onnx_export/test_half_precision.py` compares both).
Converters of whole graphs to half precision do this; so did `fairgate export --precision fp16`
before.
"""

from __future__ import annotations

from pathlib import Path

from fairgate.domain.errors import ModelError
from fairgate.onnx.graph_fields import DamagedGraphError
from fairgate.onnx.graph_nodes import Graph, read_graph

_TURNS = frozenset({"Cos", "Sin"})
_NO_NUMBERS = frozenset({"Shape", "Size"})
_HALF = frozenset({10, 16})
"""TensorProto.FLOAT16 and BFLOAT16."""


def has_half_angles(graph: Graph) -> bool:
    """Return whether anything between positions and sines or cosines is in half precision."""
    producer = {name: node for node in graph.nodes for name in node.outputs}
    waiting = [name for node in graph.nodes if node.operator in _TURNS for name in node.inputs]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if graph.formats.get(name) in _HALF:
            return True
        node = producer.get(name)
        if node is None or node.operator in _NO_NUMBERS:
            continue
        if node.format in _HALF:
            return True
        waiting += node.inputs
    return False


def refuse_half_angles(file: Path) -> None:
    """Raise ModelError for a graph whose rotary embeddings are computed in half precision.

    A graph that cannot be read passes: the session that opens it reports the error.
    """
    try:
        half = has_half_angles(read_graph(file))
    except (DamagedGraphError, OSError):
        return
    if half:
        raise ModelError(
            f"the ONNX graph {str(file)!r} turns positions into angles in half precision, which "
            "is off by up to half a radian after a thousand tokens. Use the fp32 graph of the "
            "model (onnx-community: `model.onnx`) or one with block-wise weights "
            "(`model_q4.onnx`), or make one with `fairgate export MODEL --precision fp16`, which "
            "keeps angles in float32."
        )
