"""Stores a decoder's layers as products of 8-bit integers, with a scale for each row and column.

A row of activations, a token, is divided by its own largest magnitude, so that no token's numbers
depend on another's (vector-wise quantisation: Dettmers et al., LLM.int8(), NeurIPS 2022, section
3.1), and written in one term of 8 bits or in two: `x ≈ (a + b / 254) · max|x| / 127`. Each is
multiplied with the weights, 8 bits on a scale for each column. With two, channels beside one of a
hundred times their size are not lost, and only weights are rounded much. Before that, channels are
divided by a power of their size, and their weights multiplied by it, so that weights of large
channels are rounded less (Lin et al., AWQ, MLSys 2024, equation 5). Of a grid of powers the one is
taken whose expected error of rounding is least. What makes a channel is divided, where nothing else
reads it: a norm's weights, or a product's columns. Vocabulary projection and attention stay in
float32.

Powers of the weights' own sizes beside it (Xiao et al., SmoothQuant, ICML 2023, equation 4) lessen
that error further, and SmolLM2's next tokens move away from float32's: a product's error is not the
model's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError
from fairgate.onnx.attention import ONNX, import_microsoft
from fairgate.onnx.decoder_graph import vocabulary_projection
from fairgate.onnx.integer_products import MICROSOFT, PRODUCT

Terms = Literal[1, 2]
WeightMatrix = npt.NDArray[np.float32]
Factors = npt.NDArray[np.float32]
ActivationRows = Mapping[str, npt.NDArray[np.float32]]
"""By an activation's name in the graph: `[tokens, channels]`, as a calibration sees them."""
_NOTHING: ActivationRows = MappingProxyType({})
_PREFIX = "fairgate_rows_"
_LEVELS, _ZERO = 127, 128
_LEAST = float(np.finfo(np.float32).tiny) * 1024
"""The least maximum of a row: 127 divided by it is finite, and zeros stay zeros."""
_WIDEST = 2**16
"""Longer rows would overflow a sum of 32 bits: 255 · 127 · 66 311."""
_STEPS = ("step", "small_step")
"""Names of the steps that the terms of an activation are rounded to."""
_POWERS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
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
        """Return the tensors that an activation is multiplied with."""
        return [
            self.weights[node.input[1]] for node in self.products if node.input[0] == activation
        ]

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


def to_int8_rows(model: Any, calibration: ActivationRows = _NOTHING, terms: Terms = 2) -> Any:
    """Change a float32 `onnx.ModelProto` in place and return it.

    `terms`: in how many activations are written. `calibration`: what `sample_activations` saw; an
    activation without rows is taken as it is. Raises ModelError where there is nothing to change.
    """
    from onnx import numpy_helper

    layers, graph = Layers.of(model), model.graph
    factors = {
        name: _factors(
            rows, [numpy_helper.to_array(tensor) for tensor in layers.readers(name)], terms
        )
        for name, rows in calibration.items()
    }
    makers = _Makers(model, layers)
    columns = {makers.divide(name, by): np.reciprocal(by) for name, by in factors.items()}
    steps = _Steps(factors, columns, terms, axes_are_inputs=_axes_are_inputs(model))
    replaced, nodes = {node.output[0] for node in layers.products}, []
    for node in graph.node:
        if node.output and node.output[0] in replaced:
            weights = numpy_helper.to_array(layers.weights[node.input[1]]).astype(np.float32)
            nodes += steps.product(node, weights)
        else:
            nodes.append(node)
    read = {name for node in nodes for name in node.input}
    tensors = [t for t in graph.initializer if t.name in read or t.name not in layers.weights]
    del graph.node[:], graph.initializer[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.initializer.extend([*tensors, *steps.tensors])
    import_microsoft(model)
    return model


def _factors(
    rows: npt.NDArray[np.float32], matrices: Sequence[WeightMatrix], terms: Terms
) -> Factors:
    """Choose what channels are divided by, with a geometric mean of 1.

    Rounding errors are independent and spread evenly over a step. Of weights a step is a share of
    their column's largest, of an activation one of its row's, so the expected square of a product's
    error is that of the weights' steps times that of the channels, and the other way round. A
    channel counts as a thousandth of the largest at least.
    """
    magnitudes = [np.abs(matrix) for matrix in matrices]
    sizes = np.sqrt(np.square(rows, dtype=np.float64).mean(axis=0))
    sizes = sizes.clip(max(float(sizes.max(initial=0)) / 1000, _LEAST))
    squares, tokens = np.square(sizes), np.maximum(np.abs(rows), sizes.min())
    weight_squares = sum(np.square(matrix).sum(axis=1, dtype=np.float64) for matrix in matrices)
    finer = 1 if terms == 1 else 2 * _LEVELS

    def error(factors: Factors) -> float:
        steps = sum(
            float(np.square((matrix * factors[:, None]).max(axis=0), dtype=np.float64).sum())
            for matrix in magnitudes
        )
        row_steps = np.square((tokens / factors).max(axis=1), dtype=np.float64).mean() / finer**2
        of_weights = steps * float((squares / np.square(factors, dtype=np.float64)).sum())
        of_rows = row_steps * float((weight_squares * np.square(factors, dtype=np.float64)).sum())
        return of_weights + float(of_rows)

    logarithms = np.log(sizes) - np.log(sizes).mean()
    candidates: list[Factors] = [np.exp(power * logarithms).astype(np.float32) for power in _POWERS]
    return min(candidates, key=error)


class _Makers:
    """What makes activations, as far as it can be divided by channel in advance."""

    def __init__(self, model: Any, layers: Layers) -> None:
        graph = model.graph
        self._vectors = {
            tensor.name: tensor
            for tensor in graph.initializer
            if tensor.data_type == _FLOAT and len(tensor.dims) == 1
        }
        self._products = {node.output[0] for node in layers.products}
        self._nodes = {name: node for node in graph.node for name in node.output}
        readers = [(name, node) for node in graph.node for name in node.input]
        self._readers = Counter(name for name, node in readers if node.op_type != "Shape")
        self._readers.update(value.name for value in graph.output)
        self._reading_products = Counter(node.input[0] for node in layers.products)

    def divide(self, activation: str, factors: Factors) -> str:
        """Divide a norm's weights; else return what is to be divided in its place.

        That is a product whose columns are the channels, or the activation itself.
        """
        from onnx import numpy_helper

        node = self._nodes.get(activation)
        if self._readers[activation] != self._reading_products[activation]:
            return activation
        for name in node.input if node is not None and node.op_type == "Mul" else ():
            if self._readers[name] != 1:
                continue
            if name in self._products:
                return str(name)
            if name in self._vectors and [*self._vectors[name].dims] == [len(factors)]:
                tensor = self._vectors[name]
                divided = numpy_helper.to_array(tensor) / factors
                tensor.CopyFrom(numpy_helper.from_array(divided, name))
                return ""
        return activation


class _Steps:
    """The nodes and tensors that replace products; one activation is rounded once."""

    def __init__(
        self,
        factors: Mapping[str, Factors],
        columns: Mapping[str, Factors],
        terms: Terms,
        *,
        axes_are_inputs: bool,
    ) -> None:
        self._factors, self._columns = factors, columns
        self._terms, self._axes_are_inputs = terms, axes_are_inputs
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
        if node.input[0] in self._factors:
            weights = weights * self._factors[node.input[0]][:, None]
        if node.output[0] in self._columns:
            weights = weights * self._columns[node.output[0]]
        columns = np.abs(weights).max(axis=0) / _LEVELS
        columns[columns == 0] = 1
        codes = np.rint(weights / columns).clip(-_LEVELS, _LEVELS).astype(np.int8)
        # A matrix for each term: ONNX Runtime changes one for the one product that reads it.
        terms = range(1, self._terms + 1)
        matrices = [self._constant(f"{name}codes_{term}", codes) for term in terms]
        scale = self._constant(name + "scale", (columns / _LEVELS).astype(np.float32))
        parts = []
        for codes, matrix, step in zip((first, second), matrices, _STEPS, strict=False):
            parts.append(f"{name}{step}")
            inputs = [codes, matrix, _PREFIX + step, scale, _PREFIX + "zero"]
            nodes.append(helper.make_node(PRODUCT, inputs, parts[-1:], domain=MICROSOFT))
        if self._terms == 2:
            nodes.append(helper.make_node("Add", parts, [f"{name}sum"]))
            parts = [f"{name}sum"]
        return [*nodes, helper.make_node("Mul", [*parts, most], [node.output[0]])]

    def _rows(self, activation: str) -> tuple[list[Any], tuple[str, str, str]]:
        """Return the nodes that round an activation, and the names of both codes and of maxima."""
        from onnx import helper

        if activation in self._rounded:
            return [], self._rounded[activation]
        name = f"{_PREFIX}x{len(self._rounded)}_"
        axes = [_PREFIX + "axis"] if self._axes_are_inputs else []
        more: dict[str, Any] = {"keepdims": 1, **({} if axes else {"axes": [-1]})}
        step, small, zero = (_PREFIX + constant for constant in ("step", "small_step", "zero"))
        divided = activation
        if activation in self._columns:
            divided = f"{name}divided"
            self._constant(divided + "_by", self._columns[activation])
        steps: tuple[tuple[str, list[str], str, dict[str, Any]], ...] = (
            ("Abs", [divided], "sizes", {}),
            ("ReduceMax", [f"{name}sizes", *axes], "largest", more),
            ("Max", [f"{name}largest", _PREFIX + "least"], "most", {}),
            ("Div", [_PREFIX + "levels", f"{name}most"], "factor", {}),
            ("Mul", [divided, f"{name}factor"], "scaled", {}),
            ("QuantizeLinear", [f"{name}scaled", step, zero], "codes_1", {}),
        )
        second_term: tuple[tuple[str, list[str], str, dict[str, Any]], ...] = (
            ("DequantizeLinear", [f"{name}codes_1", step, zero], "rounded", {}),
            ("Sub", [f"{name}scaled", f"{name}rounded"], "left", {}),
            ("QuantizeLinear", [f"{name}left", small, zero], "codes_2", {}),
        )
        steps += second_term if self._terms == 2 else ()
        nodes = [helper.make_node(op, i, [name + o], **extra) for op, i, o, extra in steps]
        if divided != activation:
            by = f"{_PREFIX}{divided}_by"
            nodes.insert(0, helper.make_node("Mul", [activation, by], [divided]))
        self._rounded[activation] = f"{name}codes_1", f"{name}codes_2", f"{name}most"
        return nodes, self._rounded[activation]
