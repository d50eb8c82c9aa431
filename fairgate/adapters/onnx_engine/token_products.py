"""Products of a graph whose both sides are rounded to 8 bits, each token on a scale of its own.

W8A8: a weight matrix has one scale for each output, a token's numbers have one for each product,
so that sums are of whole numbers and exact: they depend neither on the order nor on other tokens.
Yao et al., ZeroQuant: Efficient and Affordable Post-Training Quantization for Large-Scale
Transformers, NeurIPS 2022, section 4 (token-wise quantization of activations).

A graph's file holds such a product as a node of one function, whose body any ONNX Runtime expands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

from fairgate.adapters.onnx_engine.runtime_errors import imported_runtime
from fairgate.domain.errors import ModelError

TOKEN_PRODUCT = "TokenScaledProduct"  # noqa: S105 no password
"""Inputs: numbers `[..., width]`, weights `[width, outputs]` int8, scales `[outputs]`."""

_DOMAIN = "fairgate"
_CONTRIB = "com.microsoft"
_INTEGERS = "MatMulIntegerToFloat"
_LARGEST, _ZERO = 127, 128
_LEAST = 1e-30
"""Below it a token's numbers are zeros."""
_AXES_ARE_INPUTS = 18
"""The first version of ONNX whose ReduceMax takes its axes as an input."""
_SAME_ROWS = frozenset({"Cast", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators that hand the tokens of their first input on."""
_OLDEST = 13
"""The first version whose operators have all types that are needed."""


def with_token_products(model: Any) -> Any:
    """Replace products with constant matrices in a float32 `onnx.ModelProto`; return it.

    Raises ModelError where the graph's version of ONNX is too old, nothing can be replaced, weights
    are not finite, or a product may have no rows.
    """
    version = _version(model)
    stored = {one.name: one for one in model.graph.initializer if len(one.dims) == 2}
    products = [
        node for node in model.graph.node if node.op_type == "MatMul" and node.input[1] in stored
    ]
    if version < _OLDEST or not products:
        raise ModelError(
            f"the graph has {len(products)} products with constant matrices in operators of "
            f"version {version}; expected some, in version {_OLDEST} or later, to store in 8 bits. "
            "Export the model in int8 instead."
        )
    _refuse_chosen_rows(model, products)
    for name in dict.fromkeys(node.input[1] for node in products):
        model.graph.initializer.extend(_rounded(stored[name]))
    for node in products:
        node.op_type, node.domain = TOKEN_PRODUCT, _DOMAIN
        node.input[1:] = [f"{node.input[1]}_codes", f"{node.input[1]}_scales"]
    read = {name for node in model.graph.node for name in node.input}
    kept = [one for one in model.graph.initializer if one.name in read]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    model.functions.append(_function(version, widened=False))
    _import(model, _DOMAIN, _CONTRIB)
    return model


def has_token_products(model: Any) -> bool:
    """Return whether a graph has this function, wherever it is called."""
    own = _own_functions(model)
    return any(each in own for each in model.functions)


def are_by_token(model: Any, operators: frozenset[str]) -> bool:
    """Return whether nodes of these types stand in this module's own function only."""
    own = _own_functions(model)
    others = [each for each in model.functions if each not in own]
    parts = (model.graph.node, *(each.node for each in others))
    return all(node.op_type not in operators for part in parts for node in _nodes(part))


def widen_products(model: Any) -> bool:
    """Let products be exact on processors that add pairs of them in 16 bits; return if changed.

    There weights are moved to numbers without a sign, which take the processor twice as long. Sums
    are the same bits.
    """
    written, widened = _own_functions(model)
    changed = False
    for place, each in enumerate(model.functions):
        if each == written:
            model.functions[place].CopyFrom(widened)
            changed = True
    return changed


@cache
def pairs_saturate() -> bool:
    """Return whether this processor adds pairs of products in 16 bits, which may not hold them.

    AVX2 without VNNI does, where numbers without sign meet numbers with one. Tried out.
    """
    from onnx import TensorProto, helper, numpy_helper

    onnxruntime = imported_runtime()
    width = 64
    weights = np.full((width, width), _LARGEST, dtype=np.int8)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["codes", "weights"], ["sums"])],
        "pairs",
        [helper.make_tensor_value_info("codes", TensorProto.UINT8, [None, width])],
        [helper.make_tensor_value_info("sums", TensorProto.INT32, [None, width])],
        [numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OLDEST)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    codes = np.full((width, width), 2 * _ZERO - 1, dtype=np.uint8)
    sums = [session.run(None, {"codes": codes[:rows]})[0] for rows in (1, 2, width)]
    exact = width * _LARGEST * (2 * _ZERO - 1)
    return any(bool((found != exact).any()) for found in sums)


def _refuse_chosen_rows(model: Any, products: Iterable[Any]) -> None:
    """Raise ModelError for products of tokens that are chosen while a graph runs.

    ONNX Runtime's ReduceMax of no rows has a wrong shape, so that all products fail (seen in 1.31).
    """
    makers = {name: node for node in model.graph.node for name in node.output}
    for product in products:
        maker = makers.get(product.input[0])
        while maker is not None and maker.op_type in _SAME_ROWS:
            maker = makers.get(maker.input[0])
        waiting = [maker.input[1]] if maker is not None and maker.op_type == "Gather" else []
        while waiting:
            chosen = makers.get(waiting.pop())
            if chosen is not None and chosen.op_type == "NonZero":
                raise ModelError(
                    f"the product {product.name!r} is one of an expert, which gets the tokens that "
                    "are chosen for it: there may be none, of which 8 bits for weights and "
                    "activations cannot be computed. Export the model in int8 instead."
                )
            if chosen is not None and chosen.op_type in _SAME_ROWS | {"Split"}:
                waiting.append(chosen.input[0])


def _rounded(tensor: Any) -> list[Any]:
    """Return a matrix in 8 bits and the scales of its columns."""
    from onnx import numpy_helper

    weights = numpy_helper.to_array(tensor).astype(np.float32)
    if not np.isfinite(weights).all():
        raise ModelError(
            f"the weights {tensor.name!r} hold numbers that are not finite, which 8 bits cannot "
            "keep. The model's files are damaged: fetch them again."
        )
    largest = np.maximum(np.abs(weights).max(axis=0), np.float32(_LEAST))
    scales = (largest / np.float32(_LARGEST)).astype(np.float32)
    codes = np.clip(np.rint(weights / scales), -_LARGEST, _LARGEST).astype(np.int8)
    return [
        numpy_helper.from_array(codes, f"{tensor.name}_codes"),
        numpy_helper.from_array(scales, f"{tensor.name}_scales"),
    ]


def _own_functions(model: Any) -> list[Any]:
    """Return the function as a graph of this version of ONNX has it: as written, and widened."""
    return [_function(_version(model), widened=widened) for widened in (False, True)]


def _function(version: int, *, widened: bool) -> Any:
    from onnx import TensorProto, helper

    made = helper.make_node
    axes = {"inputs": ["sizes", "axis"]} if version >= _AXES_ARE_INPUTS else {"inputs": ["sizes"]}
    axis = {} if version >= _AXES_ARE_INPUTS else {"axes": [-1]}
    right, zero = ("moved", ["zero"]) if widened else ("weights", [])
    nodes = [
        _constant("axis", TensorProto.INT64, [-1], [1]),
        _constant("largest_code", TensorProto.FLOAT, [_LARGEST]),
        _constant("least", TensorProto.FLOAT, [_LEAST]),
        _constant("one", TensorProto.FLOAT, [1.0]),
        _constant("none", TensorProto.FLOAT, [0.0]),
        _constant("zero", TensorProto.UINT8, [_ZERO]),
        made("Abs", ["numbers"], ["sizes"]),
        made("ReduceMax", axes["inputs"], ["size"], keepdims=1, **axis),
        made("Max", ["size", "least"], ["bounded"]),
        made("Div", ["bounded", "largest_code"], ["step"]),
        # ReduceMax passes a NaN over; without this one would become a number here.
        made("ReduceSum", ["sizes", "axis"], ["total"], keepdims=1),
        made("Mul", ["total", "none"], ["flaw"]),
        made("Add", ["step", "flaw"], ["scale"]),
        made("Div", ["numbers", "scale"], ["scaled"]),
        made("QuantizeLinear", ["scaled", "one", "zero"], ["codes"]),
        *(_moved() if widened else []),
        made(
            _INTEGERS,
            ["codes", right, "one", "scales", "zero", *zero],
            ["sums"],
            domain=_CONTRIB,
        ),
        made("Mul", ["sums", "scale"], ["product"]),
    ]
    imports = [helper.make_opsetid("", version), helper.make_opsetid(_CONTRIB, 1)]
    given = ["numbers", "weights", "scales"]
    return helper.make_function(_DOMAIN, TOKEN_PRODUCT, given, ["product"], nodes, imports)


def _moved() -> list[Any]:
    """Return nodes that ONNX Runtime computes once, when the graph is loaded."""
    from onnx import TensorProto, helper

    return [
        _constant("shift", TensorProto.INT32, [_ZERO]),
        helper.make_node("Cast", ["weights"], ["wide"], to=TensorProto.INT32),
        helper.make_node("Add", ["wide", "shift"], ["shifted"]),
        helper.make_node("Cast", ["shifted"], ["moved"], to=TensorProto.UINT8),
    ]


def _constant(name: str, kind: int, numbers: list[Any], sizes: Iterable[int] = ()) -> Any:
    from onnx import helper

    tensor = helper.make_tensor(name, kind, list(sizes), numbers)
    return helper.make_node("Constant", [], [name], value=tensor)


def _nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield nodes and those of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _nodes(graph.node)


def _version(model: Any) -> int:
    found = [one.version for one in model.opset_import if one.domain in {"", "ai.onnx"}]
    return int(max(found, default=0))


def _import(model: Any, *domains: str) -> None:
    from onnx import helper

    known = {one.domain for one in model.opset_import}
    model.opset_import.extend(helper.make_opsetid(each, 1) for each in domains if each not in known)
