"""Stores an exported graph in fewer bits: half precision, or integers.

Never dynamic int8: it scales over the whole batch, so an answer would depend on its companions.
Weights in blocks (`MatMulNBits`) do not have that flaw.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from fairgate.domain.errors import UsageError
from fairgate.features.onnx_export.half_precision import halve

Precision = Literal["fp32", "fp16", "int8", "int4"]

_BITS = {"int8": 8, "int4": 4}
_BLOCK = 32
_EXTERNAL_ABOVE = 1_800_000_000
"""Bytes; a protobuf file may hold 2 GiB."""


def change_precision(graph: Path, precision: Precision) -> None:
    """Rewrite the fp32 graph at `graph` in place. Raises UsageError where a package is missing.

    `fp16` stores weights and computes in half precision, with caches in half precision. `int8`
    and `int4` store the matrices in blocks of 32 numbers with a scale each and round nothing else:
    products in 8-bit integers would take less time, but SmolLM2-135M-Instruct then begins another
    label for 3 of 28 prompts, and for none of them with its weights alone in 8 bits.
    """
    if precision == "fp32":
        return
    import onnx

    model = onnx.load(str(graph))
    half = precision == "fp16"
    changed = halve(model) if half else _quantise(model, _BITS[precision])
    for file in graph.parent.glob(f"{graph.name}*"):
        file.unlink()
    size = sum(len(tensor.raw_data) for tensor in changed.graph.initializer)
    onnx.save(
        changed,
        str(graph),
        save_as_external_data=size > _EXTERNAL_ABOVE,
        location=f"{graph.name}_data",
    )


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
