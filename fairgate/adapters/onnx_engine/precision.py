"""Stores an exported graph in fewer bits: half precision, or integers.

Never dynamic int8: it scales over the whole batch, so an answer would depend on its companions.
Weights in blocks (`MatMulNBits`) and products on scales of single tokens do not have that flaw.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from fairgate.adapters.onnx_engine.half_precision import halve
from fairgate.adapters.onnx_engine.token_products import with_token_products
from fairgate.domain.errors import UsageError

Precision = Literal["fp32", "fp16", "int8", "int4", "w8a8"]

_BITS = {"int8": 8, "int4": 4}
_BLOCK = 32
_EXTERNAL_ABOVE = 1_800_000_000
"""Bytes; a protobuf file may hold 2 GiB."""


def change_precision(graph: Path, precision: Precision, *, decoder: bool) -> None:
    """Rewrite the fp32 graph at `graph` in place. Raises UsageError where a package is missing.

    `fp16` stores weights and computes in half precision, with caches in half precision. `int8`
    and `int4` store the matrices only; a decoder also multiplies in 8-bit integers, scaled per
    row and block of 32 numbers, because it would be slower than fp32 otherwise. `w8a8` has one
    scale for each output of a matrix and one for each token: less exact, and much faster. Raises
    ModelError for a graph that has no such products.
    """
    if precision == "fp32":
        return
    import onnx

    model = onnx.load(str(graph))
    if precision == "fp16":
        changed = halve(model)
    elif precision == "w8a8":
        changed = with_token_products(model)
    else:
        changed = _quantise(model, _BITS[precision], decoder)
    for file in graph.parent.glob(f"{graph.name}*"):
        file.unlink()
    size = sum(len(tensor.raw_data) for tensor in changed.graph.initializer)
    onnx.save(
        changed,
        str(graph),
        save_as_external_data=size > _EXTERNAL_ABOVE,
        location=f"{graph.name}_data",
    )


def _quantise(model: Any, bits: int, decoder: bool) -> Any:  # noqa: FBT001 private
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
        block_size=_BLOCK, is_symmetric=True, accuracy_level=4 if decoder else 0, bits=bits
    )
    quantiser = MatMulNBitsQuantizer(model, algo_config=config)
    quantiser.process()
    return quantiser.model.model
