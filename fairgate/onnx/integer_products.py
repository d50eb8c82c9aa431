"""Tells integer products with stored scales from those scaled by the batch, and tries them.

`MatMulIntegerToFloat` multiplies codes and scales the columns of the product:
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

QuantisedRows = npt.NDArray[np.uint8]
Sums = npt.NDArray[np.float32]

PRODUCT = "MatMulIntegerToFloat"
MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""
_ONNX = frozenset({"", "ai.onnx"})
_QUANTISED = "QuantizeLinear"


def rounds_by_stored_scales(model: Any) -> bool:
    """Return whether the integer products of an `onnx.ModelProto` depend on no batch.

    All their inputs are stored, but for the codes, and these are rounded on a stored scale. Dynamic
    quantisation computes that scale from the whole tensor; `int8-rows` divides each row by its own
    largest number first and rounds by a constant.
    """
    graph = model.graph
    makers = {name: node for node in graph.node for name in node.output if name}
    # A caller may give another value for what is an input, too.
    stored = {t.name for t in graph.initializer} - {value.name for value in graph.input}
    stored |= {node.output[0] for node in graph.node if node.op_type == "Constant"}
    for product in (node for node in graph.node if node.op_type == PRODUCT):
        codes, *others = product.input
        quantised = makers.get(codes)
        if quantised is None or quantised.op_type != _QUANTISED or quantised.domain not in _ONNX:
            return False
        wanted = {name for name in (*others, *quantised.input[1:]) if name}
        if product.domain != MICROSOFT or not wanted <= stored:
            return False
    return True


_ZERO_POINT = 128
_TRIED_ROWS = (1, 2, 3, 17, 64)
_TRIED_WIDTHS = ((2, 1), (64, 16), (131, 67), (576, 192))
"""Channels and columns: multiples of what kernels take at once, and others."""


def inexact_product(run: Callable[[bytes, QuantisedRows], Sums]) -> str:
    """Return how an integer product is wrong here; nothing where all that were tried are exact.

    Processors without VNNI sum two products of 8-bit numbers in 16 bits, which 255 · 127 twice
    overflows, unless ONNX Runtime stores the weights unsigned. `run` opens a graph and returns its
    sums, float32 `[rows, columns]`, for codes, uint8 `[rows, channels]`.
    """
    for channels, columns in _TRIED_WIDTHS:
        rng = np.random.default_rng(channels)
        weights = rng.choice(np.array([-127, 127, 126, 1], dtype=np.int8), (channels, columns))
        weights[:, 0] = 127
        weights[:, -1] = -127
        graph = _product_graph(weights)
        for rows in _TRIED_ROWS:
            codes = rng.choice(np.array([1, 255, 254], dtype=np.uint8), (rows, channels))
            codes[0], codes[-1] = 1, 255
            expected = (codes.astype(np.int64) - _ZERO_POINT) @ weights.astype(np.int64)
            if (wrong := np.abs(run(graph, codes) - expected).max()) != 0:
                return f"{rows} rows of {channels} numbers by {columns}: off by {wrong}"
    return ""


def _product_graph(weights: npt.NDArray[np.int8]) -> bytes:
    """Return a graph of one product, as exports have it."""
    from onnx import TensorProto, helper, numpy_helper

    inputs = ["codes", "weights", "one", "one", "zero"]
    node = helper.make_node(PRODUCT, inputs, ["sums"], domain=MICROSOFT)
    stored = [
        numpy_helper.from_array(np.array(1, dtype=np.float32), "one"),
        numpy_helper.from_array(weights, "weights"),
        numpy_helper.from_array(np.array(_ZERO_POINT, dtype=np.uint8), "zero"),
    ]
    shape = ["rows", weights.shape[0]]
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("codes", TensorProto.UINT8, shape)],
        [helper.make_tensor_value_info("sums", TensorProto.FLOAT, ["rows", weights.shape[1]])],
        stored,
    )
    versions = [helper.make_opsetid("", 14), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=8)
    return bytes(model.SerializeToString())
