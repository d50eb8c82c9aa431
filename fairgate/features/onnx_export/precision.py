"""Stores an exported graph in fewer bits: half precision, or integers.

Never dynamic int8 on a scale of the whole batch: an answer would depend on its companions. Weights
in blocks (`MatMulNBits`) do not have that flaw, nor has a scale for each row (`int8_rows`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from fairgate.domain.errors import UsageError
from fairgate.features.onnx_export.calibration import sample_activations
from fairgate.features.onnx_export.int8_rows import Terms, to_int8_rows
from fairgate.onnx.model_folder import ModelFolder

Precision = Literal["fp32", "fp16", "int8", "int4", "int8-rows"]

_BITS = {"int8": 8, "int4": 4}
_BLOCK = 32
_EXTERNAL_ABOVE = 1_800_000_000
"""Bytes; a protobuf file may hold 2 GiB."""
_FLOAT = 1
_TURNS = frozenset({"Cos", "Sin"})
_SQUARES = frozenset({"Pow", "Mul"})
_NO_NUMBERS = frozenset({"Constant", "Shape"})
_KEPT = "fairgate_float32_"


def halve(model: Any) -> Any:
    """Return the model with weights, caches and most computations in half precision.

    Positions times frequencies are angles of up to thousands: half precision has steps of half a
    radian there, so rotary embeddings would turn late tokens anywhere. Squares of hidden states
    overflow at 256. `transformers` computes both in float32, and so does the graph that is made
    here.
    """
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    island = _Island(model)
    island.add_angles()
    island.add_norms()
    island.part_from_the_rest()
    halved = convert_float_to_float16(
        model,
        keep_io_types=False,
        disable_shape_infer=True,
        node_block_list=[node.name for node in model.graph.node if node.name.startswith(_KEPT)],
    )
    OnnxModel(halved).topological_sort()
    return halved


class _Island:
    """The nodes of a graph that stay in float32, and the casts around them."""

    def __init__(self, model: Any) -> None:
        self._graph = model.graph
        self._nodes = list(model.graph.node)
        self._producer = {name: n for n, node in enumerate(self._nodes) for name in node.output}
        self._readers: dict[str, list[int]] = {}
        for number, node in enumerate(self._nodes):
            for name in node.input:
                self._readers.setdefault(name, []).append(number)
        self._kept: set[int] = set()
        self._entries: set[str] = set()
        """Floating-point values that come from outside."""
        self._exits: set[str] = set()
        """Floating-point values that are read outside."""

    def add_angles(self) -> None:
        """Keep all nodes on the way from positions to sines and cosines."""
        turns = {n for n, node in enumerate(self._nodes) if node.op_type in _TURNS}
        angles, waiting = set(turns), turns
        while waiting:
            before = self._sources(waiting) - angles
            waiting = {n for n in before if self._nodes[n].op_type not in _NO_NUMBERS}
            angles |= waiting
        self._kept |= angles
        self._exits |= {name for n in turns for name in self._nodes[n].output}

    def add_norms(self) -> None:
        """Keep each mean of squares, from the states to the scaled states."""
        for mean, node in enumerate(self._nodes):
            if node.op_type != "ReduceMean":
                continue
            for square in self._sources({mean}):
                if self._nodes[square].op_type in _SQUARES:
                    self._add_norm(square, mean)

    def part_from_the_rest(self) -> None:
        """Name the kept nodes, cast where they meet others, give them constants of their own.

        The converter leaves a node of such a name alone, and turns every other cast to float32
        into one to half precision.
        """
        from onnx import helper

        entering = {name: f"{_KEPT}in_{name}" for name in sorted(self._entries)}
        leaving = {name: f"{_KEPT}out_{name}" for name in sorted(self._exits)}
        copies = self._copied_constants()
        for number in sorted(self._kept):
            node = self._nodes[number]
            node.name = f"{_KEPT}{number}"
            for renamed in (entering, leaving, copies):
                node.input[:] = [renamed.get(name, name) for name in node.input]
            node.output[:] = [leaving.get(name, name) for name in node.output]
        for name, own in entering.items():
            cast = helper.make_node("Cast", [name], [own], to=_FLOAT, name=f"{own}_cast")
            self._graph.node.append(cast)
        for name, own in leaving.items():
            self._graph.node.append(helper.make_node("Cast", [own], [name], to=_FLOAT))

    def _copied_constants(self) -> dict[str, str]:
        """Copy the floating-point constants that kept nodes read; return the copies' names."""
        copies = {}
        tensors = {tensor.name: tensor for tensor in self._graph.initializer}
        for name in sorted({name for number in self._kept for name in self._nodes[number].input}):
            own = f"{_KEPT}constant_{name}"
            number = self._producer.get(name)
            if number is not None and self._nodes[number].op_type == "Constant":
                copy = self._graph.node.add()
                copy.CopyFrom(self._nodes[number])
                copy.name, copy.output[:] = own, [own]
            elif name in tensors and tensors[name].data_type == _FLOAT:
                tensor = self._graph.initializer.add()
                tensor.CopyFrom(tensors[name])
                tensor.name = own
            else:
                continue
            copies[name] = own
        return copies

    def _sources(self, places: set[int]) -> set[int]:
        """Return the nodes whose outputs these nodes read."""
        read = (name for number in places for name in self._nodes[number].input)
        return {self._producer[name] for name in read if name in self._producer}

    def _add_norm(self, square: int, mean: int) -> None:
        """Follow `x² → mean → + ε → √ → 1/… → · x`; leave it where a step is another."""
        states, nodes, last = self._nodes[square].input[0], {square, mean}, mean
        for _ in range(5):
            following = self._readers.get(self._nodes[last].output[0], [])
            if len(following) != 1:
                return
            last = following[0]
            nodes.add(last)
            if states in self._nodes[last].input:
                self._kept |= nodes
                self._entries.add(states)
                self._exits.add(self._nodes[last].output[0])
                return


def change_precision(graph: Path, precision: Precision, *, terms: Terms = 2) -> None:
    """Rewrite the fp32 graph at `graph` in place. Raises UsageError where a package is missing.

    `fp16` stores weights and computes in half precision, with caches in half precision. `int8`
    and `int4` store the matrices in blocks of 32 numbers with a scale each and round nothing else.
    `int8-rows` multiplies 8-bit integers, `terms` of them for each activation; the folder's
    tokenizer reads the prompts that channels are measured on.
    """
    if precision == "fp32":
        return
    import onnx

    model = onnx.load(str(graph))
    if precision == "fp16":
        changed = halve(model)
    elif precision == "int8-rows":
        changed = to_int8_rows(model, sample_activations(ModelFolder.find(graph.parent)), terms)
    else:
        changed = _quantise(model, _BITS[precision])
    for file in graph.parent.glob(f"{graph.name}*"):
        file.unlink()
    size = sum(len(tensor.raw_data) for tensor in changed.graph.initializer)
    onnx.save(
        changed, str(graph), save_as_external_data=size > _EXTERNAL_ABOVE,
        location=f"{graph.name}_data",
    )  # fmt: skip


def _quantise(model: Any, bits: int) -> Any:
    try:
        from onnxruntime.quantization.matmul_nbits_quantizer import (
            DefaultWeightOnlyQuantConfig,
            MatMulNBitsQuantizer,
        )
    except ImportError as error:
        raise UsageError(
            f"quantising weights needs the package {error.name!r}. Install it in the export "
            "environment: pip install onnx-ir"
        ) from error
    config = DefaultWeightOnlyQuantConfig(
        block_size=_BLOCK, is_symmetric=True, accuracy_level=0, bits=bits
    )
    quantiser = MatMulNBitsQuantizer(model, algo_config=config)
    quantiser.process()
    return quantiser.model.model
