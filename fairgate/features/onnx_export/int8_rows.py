"""Stores a decoder's layers as products of 8-bit integers, with a scale for each row and column.

`x · W` becomes `(round(x · 127 / max|x|) · round(W / column)) · max|x| · column / 127`. Each row of
`x`, a token, has a maximum of its own, so that no token's numbers depend on another's: LLM.int8()
without its outliers (Dettmers et al., NeurIPS 2022, section 2.2). Before that, channels in which
activations are large are divided, and the weights that read them multiplied: SmoothQuant (Xiao et
al., ICML 2023, equation 4). Vocabulary projection and attention stay in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError
from fairgate.onnx.attention import ONNX, GraphIndex
from fairgate.onnx.decoder_graph import vocabulary_projection
from fairgate.onnx.graph_file import load_structure
from fairgate.onnx.session import open_session

Floats = npt.NDArray[np.float32]
CALIBRATION_TOKENS = 512
_PREFIX = "fairgate_rows_"
_LEVELS, _ZERO = 127, 128
_LEAST = float(np.finfo(np.float32).tiny) * 1024
"""The least maximum of a row: 127 divided by it is finite, and zeros stay zeros."""
_WIDEST = 2**16
"""Longer rows would overflow a sum of 32 bits: 255 · 127 · 66 311."""
_STRENGTH = 0.5
"""The part of a channel's range that the weights take over."""
_UNEVEN = 16
"""A channel so many times the median leaves the others eight levels of 127: they get more."""
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


def channel_maxima(graph: Path, tokens: Sequence[int]) -> dict[str, Floats]:
    """Return for each activation of a float32 graph its channels' largest magnitudes over a text."""
    from onnx import helper, numpy_helper

    model, folder = load_structure(graph)
    every = numpy_helper.from_array(np.array([0, 1]), f"{_PREFIX}tokens")
    model.graph.initializer.append(every)
    has_inputs = _axes_are_inputs(model)
    names = Layers.of(model).activations
    for place, name in enumerate(names):
        size, most = f"{_PREFIX}size_{place}", f"{_PREFIX}most_{place}"
        model.graph.node.append(helper.make_node("Abs", [name], [size]))
        axes = {} if has_inputs else {"axes": [0, 1]}
        inputs = [size, every.name] if has_inputs else [size]
        model.graph.node.append(helper.make_node("ReduceMax", inputs, [most], keepdims=0, **axes))
        model.graph.output.append(helper.make_tensor_value_info(most, _FLOAT, None))
    session = open_session(graph, device="cpu", content=model.SerializeToString(), folder=folder)
    maxima = session.run(
        [f"{_PREFIX}most_{place}" for place in range(len(names))],
        {node.name: _fed(node, tokens) for node in session.get_inputs()},
    )
    return dict(zip(names, maxima, strict=True))


def _fed(node: Any, tokens: Sequence[int]) -> npt.NDArray[Any]:
    """Return an input for one row without anything before it."""
    if node.name == "input_ids":
        return np.array([tokens], dtype=np.int64)
    if node.name == "position_ids":
        return np.arange(len(tokens), dtype=np.int64)[None]
    if node.name == "attention_mask":
        return np.ones((1, len(tokens)), dtype=np.int64)
    shape = [1, node.shape[1], 0, node.shape[3]]
    return np.zeros(shape, dtype=np.float32)


def _axes_are_inputs(model: Any) -> bool:
    versions = [entry.version for entry in model.opset_import if entry.domain in ONNX]
    return max(versions, default=0) >= _AXES_ARE_INPUTS


def to_int8_rows(model: Any, maxima: Mapping[str, Floats] | None = None) -> Any:
    """Change a float32 `onnx.ModelProto` in place and return it.

    `maxima`: of each activation its channels' largest magnitudes, which are smoothed where that
    costs no operation; none are without them. Raises ModelError where there is nothing to change.
    """
    rewrite = _Rewrite(model)
    for name, largest in (maxima or {}).items():
        rewrite.smooth(name, largest)
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
        self._uneven: set[str] = set()
        """Activations of which eight bits are too few."""

    def smooth(self, name: str, largest: Floats) -> None:
        """Divide an activation's channels, and multiply the weights that read them."""
        readers = self._layers.readers(name)
        others = [one for one in self._index.readers[name] if one.op_type != "Shape"]
        if len(readers) != len(others) or name in self._index.outputs:
            return
        heaviest = np.max(
            [np.abs(self._weights[node.output[0]]).max(axis=1) for node in readers], axis=0
        )
        ratio = np.maximum(largest, 1e-3) ** _STRENGTH / np.maximum(heaviest, 1e-6) ** (
            1 - _STRENGTH
        )
        factors = (ratio / np.exp(np.log(ratio).mean())).astype(np.float32)
        if self._divide(name, factors):
            largest = largest / factors
            for node in readers:
                self._weights[node.output[0]] = self._weights[node.output[0]] * factors[:, None]
        if largest.max() > _UNEVEN * np.median(largest):
            self._uneven.add(name)

    def _divide(self, name: str, factors: Floats) -> bool:
        """Divide a value's channels in the norm that makes it; return whether that was possible."""
        node = self._index.makers.get(name)
        if node is None:
            return False
        constants = [one for one in node.input if self._is_row(one, len(factors))]
        if node.op_type == "Mul" and len(constants) == 1:
            return self._divide_row(constants[0], factors)
        return False

    def _is_row(self, name: str, size: int) -> bool:
        tensor = self._tensors.get(name)
        return tensor is not None and tensor.data_type == _FLOAT and [*tensor.dims] == [size]

    def _divide_row(self, name: str, factors: Floats) -> bool:
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
                nodes += steps.product(
                    node, self._weights.pop(node.output[0]), twice=node.input[0] in self._uneven
                )
                self._uses[node.input[1]] -= 1
            else:
                nodes.append(node)
        kept = [tensor for tensor in self._graph.initializer if self._uses.get(tensor.name, 1)]
        del self._graph.node[:], self._graph.initializer[:], self._graph.value_info[:]
        self._graph.node.extend(nodes)
        self._graph.initializer.extend([*kept, *steps.tensors])


class _Steps:
    """The nodes and tensors that replace products; one activation is rounded once."""

    def __init__(self, *, axes_are_inputs: bool) -> None:
        self._axes_are_inputs = axes_are_inputs
        self._rounded: dict[str, tuple[str, str]] = {}
        self._rests: dict[str, str] = {}
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

    def product(self, node: Any, weights: Floats, *, twice: bool) -> list[Any]:
        """Return the nodes for one product with a matrix `[channels, columns]`.

        `twice`: what rounding leaves of the activation is rounded in its turn and multiplied, too.
        """
        from onnx import helper

        name = f"{_PREFIX}{len(self.tensors)}_"
        nodes, (codes, most) = self._rows(node.input[0])
        rest = ""
        if twice:
            further, rest = self._rest(node.input[0], codes)
            nodes += further
        columns = np.abs(weights).max(axis=0) / _LEVELS
        columns[columns == 0] = 1
        rounded = np.rint(weights / columns).clip(-_LEVELS, _LEVELS).astype(np.int8)
        matrix = self._constant(name + "codes", rounded)
        scale = self._constant(name + "scale", (columns / _LEVELS).astype(np.float32))
        zero = _PREFIX + "zero"
        whole = f"{name}whole" if twice else f"{name}floats"
        steps: list[tuple[str, list[str], str, dict[str, int]]] = [
            ("MatMulInteger", [codes, matrix, zero], f"{name}sums", {}),
            ("Cast", [f"{name}sums"], whole, {"to": _FLOAT}),
        ]
        if twice:
            steps += [
                ("MatMulInteger", [rest, matrix, zero], f"{name}rest_sums", {}),
                ("Cast", [f"{name}rest_sums"], f"{name}rest", {"to": _FLOAT}),
                ("Mul", [f"{name}rest", _PREFIX + "small_step"], f"{name}small", {}),
                ("Add", [whole, f"{name}small"], f"{name}floats", {}),
            ]
        steps += [
            ("Mul", [f"{name}floats", most], f"{name}rows", {}),
            ("Mul", [f"{name}rows", scale], node.output[0], {}),
        ]
        return [*nodes, *(helper.make_node(op, i, [o], **more) for op, i, o, more in steps)]

    def _rest(self, activation: str, codes: str) -> tuple[list[Any], str]:
        """Return the nodes that round what rounding left, and the name of its codes."""
        from onnx import helper

        if activation in self._rests:
            return [], self._rests[activation]
        name = codes.removesuffix("codes")
        step, small, zero = (_PREFIX + one for one in ("step", "small_step", "zero"))
        steps = (
            ("DequantizeLinear", [codes, step, zero], "rounded"),
            ("Sub", [f"{name}scaled", f"{name}rounded"], "left"),
            ("QuantizeLinear", [f"{name}left", small, zero], "rest_codes"),
        )
        self._rests[activation] = f"{name}rest_codes"
        return [helper.make_node(op, i, [name + o]) for op, i, o in steps], f"{name}rest_codes"

    def _rows(self, activation: str) -> tuple[list[Any], tuple[str, str]]:
        """Return the nodes that round an activation, and the names of its codes and maxima."""
        from onnx import helper

        if activation in self._rounded:
            return [], self._rounded[activation]
        name = f"{_PREFIX}x{len(self._rounded)}_"
        axes = [_PREFIX + "axis"] if self._axes_are_inputs else []
        more = {"keepdims": 1, **({} if axes else {"axes": [-1]})}
        steps = (
            ("Abs", [activation], "sizes", {}),
            ("ReduceMax", [f"{name}sizes", *axes], "largest", more),
            ("Max", [f"{name}largest", _PREFIX + "least"], "most", {}),
            ("Div", [_PREFIX + "levels", f"{name}most"], "factor", {}),
            ("Mul", [activation, f"{name}factor"], "scaled", {}),
            ("QuantizeLinear", [f"{name}scaled", _PREFIX + "step", _PREFIX + "zero"], "codes", {}),
        )
        self._rounded[activation] = f"{name}codes", f"{name}most"
        nodes = [helper.make_node(op, i, [name + o], **extra) for op, i, o, extra in steps]
        return nodes, self._rounded[activation]
