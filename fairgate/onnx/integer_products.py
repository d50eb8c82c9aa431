"""Tells integer products with a scale for each row from those scaled as a whole, and tries them.

`MatMulIntegerToFloat` multiplies codes and scales the columns of the product:
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md. What codes were rounded
by decides: on a scale of the whole tensor a token's codes depend on its batch and on padding; on
one of the token's own row they do not. The nodes between an activation and its codes tell, not
their names; what is not shown is not believed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

QuantisedRows = npt.NDArray[np.uint8]
Sums = npt.NDArray[np.float32]

PRODUCT = "MatMulIntegerToFloat"
MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""
_ONNX = frozenset({"", "ai.onnx"})
_ELEMENTWISE = frozenset(
    {"Abs", "Add", "Cast", "Clip", "Div", "Equal", "Greater", "Identity", "Less", "Max", "Min"}
    | {"DequantizeLinear", "Mul", "Neg", "QuantizeLinear", "Reciprocal", "Round", "Sub", "Where"}
)
"""Operators of which each number comes from the numbers at its own place only."""
_SIGNS = frozenset({"Abs", "Cast", "Identity", "Neg"})
_REDUCTIONS = frozenset({"ReduceL1", "ReduceL2", "ReduceMax", "ReduceMin"})
_QUANTISED = "QuantizeLinear"
_MOST_STEPS = 64
"""Values between an activation and its codes; the proposed ones are ten."""


class RowScales:
    """The integer products of a graph."""

    def __init__(self, model: Any) -> None:
        """Take an `onnx.ModelProto`."""
        graph = model.graph
        self._products = [node for node in graph.node if node.op_type == PRODUCT]
        self._makers = {name: node for node in graph.node for name in node.output if name}
        self._stored = {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node if self._products else ():
            for attribute in node.attribute if node.op_type == "Constant" else ():
                if attribute.name == "value":
                    self._stored[node.output[0]] = attribute.t
        for value in graph.input:
            self._stored.pop(value.name, None)  # a caller may give another
        self._ranks = {
            value.name: len(value.type.tensor_type.shape.dim)
            for value in (*graph.value_info, *graph.input, *graph.output)
            if value.type.tensor_type.HasField("shape")
        }

    def are_all_by_row(self) -> bool:
        """Return whether in every product rows have scales of their own and weights are stored."""
        return all(map(self._is_by_row, self._products))

    def _is_by_row(self, product: Any) -> bool:
        codes, *other_inputs = product.input
        quantised = self._makers.get(codes)
        if (
            product.domain != MICROSOFT
            or not set(filter(None, other_inputs)) <= self._stored.keys()
        ):
            return False
        if quantised is None or quantised.op_type != _QUANTISED or quantised.domain not in _ONNX:
            return False
        scaled, *constants = quantised.input
        if not all(self._is_scalar(name) for name in constants if name):
            return False
        return any(self._has_no_other_source(scaled, name) for name in self._activations(scaled))

    def _is_scalar(self, name: str) -> bool:
        return name in self._stored and math.prod(self._stored[name].dims) == 1

    def _activations(self, scaled: str) -> Iterator[str]:
        """Yield what reductions over the last axis read behind elementwise steps, nearest first."""
        waiting, visited = [scaled], {scaled}
        while waiting and len(visited) <= _MOST_STEPS:
            node = self._makers.get(waiting.pop(0))
            if node is None or node.domain not in _ONNX:
                continue
            if self._reduces_rows(node):
                yield from self._behind_signs(node.input[0])
            elif node.op_type in _ELEMENTWISE:
                waiting += [name for name in node.input if name and name not in visited]
                visited.update(node.input)

    def _behind_signs(self, name: str) -> Iterator[str]:
        """Yield a value and what it is the magnitude or a copy of."""
        while True:
            yield name
            node = self._makers.get(name)
            if node is None or node.op_type not in _SIGNS:
                return
            name = node.input[0]

    def _has_no_other_source(self, scaled: str, activation: str) -> bool:
        """Return whether a value is made of an activation and its rows' own scales alone."""
        waiting, is_whole = [(scaled, False)], False
        visited = set(waiting)
        while waiting:
            name, is_reduced = waiting.pop()
            if name == activation:
                is_whole = is_whole or not is_reduced
                continue
            if name in self._stored:
                continue
            node = self._makers.get(name)
            if node is None or len(visited) > _MOST_STEPS or node.domain not in _ONNX:
                return False
            if self._reduces_rows(node) and not is_reduced:
                sources = {(node.input[0], True)}
            elif node.op_type in _ELEMENTWISE:
                sources = {(source, is_reduced) for source in node.input if source}
            else:
                return False
            waiting += sources - visited
            visited |= sources
        return is_whole

    def _reduces_rows(self, node: Any) -> bool:
        """Return whether a node reduces the last axis, no other, and keeps it."""
        if node.op_type not in _REDUCTIONS or node.domain not in _ONNX:
            return False
        attributes = {attribute.name: attribute for attribute in node.attribute}
        if "keepdims" in attributes and not attributes["keepdims"].i:
            return False
        axes = [*attributes["axes"].ints] if "axes" in attributes else self._axes(node)
        rank = self._ranks.get(node.input[0], 0)
        return axes == [-1] or (rank > 0 and axes == [rank - 1])

    def _axes(self, node: Any) -> list[int]:
        """Return the axes that are a stored input; none where it is not small and at hand."""
        from onnx import TensorProto, numpy_helper

        tensor = self._stored.get(node.input[1]) if len(node.input) > 1 else None
        if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
            return []
        return [int(axis) for axis in numpy_helper.to_array(tensor).ravel()]


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
