"""Stores a decoder's layers as products of 8-bit integers, with a scale for each row and column.

A row of activations, a token, is divided by its own largest magnitude, so that no token's numbers
depend on another's (vector-wise quantisation: Dettmers et al., LLM.int8(), NeurIPS 2022, section
3.1), and written in two digits of 8 bits: `x ≈ (a + b / 254) · max|x| / 127`. Both are multiplied
with the weights, 8 bits on a scale for each column, so that channels beside one of a hundred times
their size are not lost and only weights are rounded much. Before that, rows of weights get equal
maxima where the norm before them can be divided by as much (Xiao et al., SmoothQuant, ICML 2023,
equation 4, with alpha 0). Vocabulary projection and attention stay in float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError
from fairgate.onnx.attention import ONNX, GraphIndex
from fairgate.onnx.decoder_graph import vocabulary_projection

WeightMatrix = npt.NDArray[np.float32]
_PREFIX = "fairgate_rows_"
_LEVELS, _ZERO = 127, 128
_LEAST = float(np.finfo(np.float32).tiny) * 1024
"""The least maximum of a row: 127 divided by it is finite, and zeros stay zeros."""
_WIDEST = 2**16
"""Longer rows would overflow a sum of 32 bits: 255 · 127 · 66 311."""
_FLOAT = 1
_AXES_ARE_INPUTS = 18
"""The version of ONNX since which a reduction's axes are an input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The products of a graph with stored weights, but the one onto the vocabulary."""

    products: Sequence[Any]
    """Nodes, in the order of the graph."""
    weights: Mapping[str, Any]
    """Tensors by name."""

    @classmethod
    def of(cls, model: Any) -> Layers:
        """Find them in an `onnx.ModelProto`. Raises ModelError where there are none."""
        tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        last = vocabulary_projection(model)
        products = [
            node
            for node in model.graph.node
            if node.op_type == "MatMul" and node is not last and _is_matrix(tensors, node.input[1])
        ]
        if last is None or not products:
            raise ModelError(
                "the graph has no products with stored weights before its vocabulary projection, "
                "so `int8-rows` would change nothing: export it in fp32 or int8."
            )
        return cls(products=products, weights={n.input[1]: tensors[n.input[1]] for n in products})

    def readers(self, activation: str) -> list[Any]:
        """Return the products that read an activation."""
        return [node for node in self.products if node.input[0] == activation]

    @property
    def activations(self) -> list[str]:
        """Return the names of what is multiplied with weights, each once."""
        return list(dict.fromkeys(node.input[0] for node in self.products))


def _is_matrix(tensors: Mapping[str, Any], name: str) -> bool:
    tensor = tensors.get(name)
    return (
        tensor is not None
        and tensor.data_type == _FLOAT
        and len(tensor.dims) == 2
        and tensor.dims[0] < _WIDEST
    )


def _axes_are_inputs(model: Any) -> bool:
    versions = [entry.version for entry in model.opset_import if entry.domain in ONNX]
    return max(versions, default=0) >= _AXES_ARE_INPUTS


def to_int8_rows(model: Any) -> Any:
    """Change a float32 `onnx.ModelProto` in place and return it.

    Raises ModelError where there is nothing to change.
    """
    rewrite = _Rewrite(model)
    for name in Layers.of(model).activations:
        rewrite.even_out(name)
    rewrite.replace()
    return model


class _Rewrite:
    """A graph whose products are replaced."""

    def __init__(self, model: Any) -> None:
        from onnx import numpy_helper

        self._model, self._graph = model, model.graph
        self._index = GraphIndex(model)
        self._layers = Layers.of(model)
        self._tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        self._uses: dict[str, int] = {}
        for node in model.graph.node:
            for name in node.input:
                self._uses[name] = self._uses.get(name, 0) + 1
        self._weights = {
            node.output[0]: numpy_helper.to_array(self._layers.weights[node.input[1]]).astype(
                np.float32
            )
            for node in self._layers.products
        }
        """By the product's output: one matrix may be read twice."""

    def even_out(self, name: str) -> None:
        """Give the weights of an activation's channels equal maxima, if a norm can undo it."""
        readers = self._layers.readers(name)
        others = [node for node in self._index.readers[name] if node.op_type != "Shape"]
        if len(readers) != len(others) or name in self._index.outputs:
            return
        heaviest = np.max(
            [np.abs(self._weights[node.output[0]]).max(axis=1) for node in readers], axis=0
        )
        heaviest[heaviest == 0] = 1
        factors = (1 / heaviest).astype(np.float32)
        if self._divide(name, factors):
            for node in readers:
                self._weights[node.output[0]] = self._weights[node.output[0]] * factors[:, None]

    def _divide(self, name: str, factors: WeightMatrix) -> bool:
        """Divide a value's channels in the norm that makes it; return whether that was possible."""
        node = self._index.makers.get(name)
        if node is None:
            return False
        constants = [
            input_name for input_name in node.input if self._is_row(input_name, len(factors))
        ]
        if node.op_type == "Mul" and len(constants) == 1:
            return self._divide_row(constants[0], factors)
        return False

    def _is_row(self, name: str, size: int) -> bool:
        tensor = self._tensors.get(name)
        return tensor is not None and tensor.data_type == _FLOAT and [*tensor.dims] == [size]

    def _divide_row(self, name: str, factors: WeightMatrix) -> bool:
        from onnx import numpy_helper

        if self._uses[name] != 1:
            return False
        row = numpy_helper.to_array(self._tensors[name]) / factors
        self._tensors[name].CopyFrom(numpy_helper.from_array(row.astype(np.float32), name))
        return True

    def replace(self) -> None:
        """Put integer products in the place of the float32 ones."""
        steps = _Steps(axes_are_inputs=_axes_are_inputs(self._model))
        replaced = {node.output[0] for node in self._layers.products}
        nodes = []
        for node in self._graph.node:
            if node.output and node.output[0] in replaced:
                nodes += steps.product(node, self._weights.pop(node.output[0]))
                self._uses[node.input[1]] -= 1
            else:
                nodes.append(node)
        tensors = [tensor for tensor in self._graph.initializer if self._uses.get(tensor.name, 1)]
        del self._graph.node[:], self._graph.initializer[:], self._graph.value_info[:]
        self._graph.node.extend(nodes)
        self._graph.initializer.extend([*tensors, *steps.tensors])


class _Steps:
    """The nodes and tensors that replace products; one activation is rounded once."""

    def __init__(self, *, axes_are_inputs: bool) -> None:
        self._axes_are_inputs = axes_are_inputs
        self._rounded: dict[str, tuple[str, str, str]] = {}
        self.tensors: list[Any] = []
        self._constant("levels", np.float32(_LEVELS))
        self._constant("step", np.float32(1))
        self._constant("small_step", np.float32(1 / (2 * _LEVELS)))
        self._constant("least", np.float32(_LEAST))
        self._constant("zero", np.uint8(_ZERO))
        if axes_are_inputs:
            self._constant("axis", np.array([-1]))

    def _constant(self, name: str, value: Any) -> str:
        from onnx import numpy_helper

        self.tensors.append(numpy_helper.from_array(np.asarray(value), _PREFIX + name))
        return _PREFIX + name

    def product(self, node: Any, weights: WeightMatrix) -> list[Any]:
        """Return the nodes for one product with a matrix `[channels, columns]`."""
        from onnx import helper

        name = f"{_PREFIX}{len(self.tensors)}_"
        nodes, (first, second, most) = self._rows(node.input[0])
        columns = np.abs(weights).max(axis=0) / _LEVELS
        columns[columns == 0] = 1
        codes = np.rint(weights / columns).clip(-_LEVELS, _LEVELS).astype(np.int8)
        # Twice: ONNX Runtime changes a matrix for the one product that reads it.
        matrices = [self._constant(f"{name}codes_{digit}", codes) for digit in (1, 2)]
        scale = self._constant(name + "scale", (columns / _LEVELS).astype(np.float32))
        zero = _PREFIX + "zero"
        steps: list[tuple[str, list[str], str, dict[str, int]]] = [
            ("MatMulInteger", [first, matrices[0], zero], f"{name}sums_1", {}),
            ("MatMulInteger", [second, matrices[1], zero], f"{name}sums_2", {}),
            ("Cast", [f"{name}sums_1"], f"{name}large", {"to": _FLOAT}),
            ("Cast", [f"{name}sums_2"], f"{name}whole", {"to": _FLOAT}),
            ("Mul", [f"{name}whole", _PREFIX + "small_step"], f"{name}small", {}),
            ("Add", [f"{name}large", f"{name}small"], f"{name}floats", {}),
            ("Mul", [f"{name}floats", most], f"{name}rows", {}),
            ("Mul", [f"{name}rows", scale], node.output[0], {}),
        ]
        return [*nodes, *(helper.make_node(op, i, [o], **more) for op, i, o, more in steps)]

    def _rows(self, activation: str) -> tuple[list[Any], tuple[str, str, str]]:
        """Return the nodes that round an activation, and the names of both codes and of maxima."""
        from onnx import helper

        if activation in self._rounded:
            return [], self._rounded[activation]
        name = f"{_PREFIX}x{len(self._rounded)}_"
        axes = [_PREFIX + "axis"] if self._axes_are_inputs else []
        more: dict[str, Any] = {"keepdims": 1, **({} if axes else {"axes": [-1]})}
        step, small, zero = (_PREFIX + constant for constant in ("step", "small_step", "zero"))
        steps: tuple[tuple[str, list[str], str, dict[str, Any]], ...] = (
            ("Abs", [activation], "sizes", {}),
            ("ReduceMax", [f"{name}sizes", *axes], "largest", more),
            ("Max", [f"{name}largest", _PREFIX + "least"], "most", {}),
            ("Div", [_PREFIX + "levels", f"{name}most"], "factor", {}),
            ("Mul", [activation, f"{name}factor"], "scaled", {}),
            ("QuantizeLinear", [f"{name}scaled", step, zero], "codes_1", {}),
            ("DequantizeLinear", [f"{name}codes_1", step, zero], "rounded", {}),
            ("Sub", [f"{name}scaled", f"{name}rounded"], "left", {}),
            ("QuantizeLinear", [f"{name}left", small, zero], "codes_2", {}),
        )
        nodes = [helper.make_node(op, i, [name + o], **extra) for op, i, o, extra in steps]
        self._rounded[activation] = f"{name}codes_1", f"{name}codes_2", f"{name}most"
        return nodes, self._rounded[activation]
