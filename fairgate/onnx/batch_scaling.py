"""Refuses graphs in which a row's result depends on the other rows of its batch.

Dynamic quantisation rounds activations to 8 bits on a scale taken from the whole tensor, so from
all rows of the batch: an answer or a vector would depend on its companions (measured on random
weights of real architectures: 32 of 40 answers changed with the batch, 20 of 21 vectors).
"""

from __future__ import annotations

from pathlib import Path

from fairgate.domain.errors import ModelError
from fairgate.onnx.graph_fields import DamagedGraphError, mapped, messages

_BATCH_SCALED = frozenset(
    {
        "ConvInteger",
        "ConvIntegerToFloat",
        "DynamicQuantizeLSTM",
        "DynamicQuantizeLinear",
        "DynamicQuantizeMatMul",
        "MatMulInteger",
        "MatMulInteger16",
        "MatMulIntegerToFloat",
        "QAttention",
    }
)
"""`DynamicQuantizeLinear`, what is fused from it, and what computes with its results."""
_CHILDREN: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node"},
    "function": {7: "node"},
    "node": {4: "operator", 5: "attribute"},
    "attribute": {6: "graph", 11: "graph"},
}


def operator_types(graph: Path) -> frozenset[str]:
    """Return the types of all nodes of a graph, its subgraphs and functions.

    Raises DamagedGraphError, and OSError where the file cannot be read.
    """
    with mapped(graph) as content:
        found = messages(content, _CHILDREN, "operator")
        return frozenset(content[begin:end].decode("utf-8", "replace") for begin, end in found)


def refuse_batch_scaling(graph: Path) -> None:
    """Raise ModelError for a graph that quantises activations over the whole batch.

    A graph that cannot be read passes: the session that opens it reports the error.
    """
    try:
        scaled = sorted(operator_types(graph) & _BATCH_SCALED)
    except (DamagedGraphError, OSError):
        return
    if scaled:
        raise ModelError(
            f"the ONNX graph {str(graph)!r} is quantised dynamically ({', '.join(scaled)}): it "
            "rounds on a scale taken from the whole batch, so a result would depend on what else "
            "is asked. Use the fp32 or fp16 graph of the model (onnx-community: `model.onnx`, "
            "`model_fp16.onnx`), a graph with block-wise weights (`model_q4.onnx`), or make one "
            "with `fairgate export MODEL --precision int8`."
        )
