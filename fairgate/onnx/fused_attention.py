"""The operator Attention of ONNX 23, where the installed ONNX Runtime computes it on the CPU.

https://onnx.ai/onnx/operators/onnx__Attention.html
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from fairgate.onnx.runtime_errors import imported_runtime

_VERSION = 23
_IR_VERSION = 10
"""Of the format of files, the first that belongs to this version of ONNX and that all runtimes of
the operator read."""


def attention_node(inputs: Sequence[str], outputs: Sequence[str], *, scale: float) -> Any:
    """Return a node in which tokens attend.

    `inputs`: query, key and value `[rows, heads, tokens, size]`, what each query sees (empty: what
    stands before it, itself included), and the keys and values before them. `outputs`: what is
    found, all keys, all values.
    """
    from onnx import helper

    return helper.make_node("Attention", inputs, outputs, is_causal=not inputs[3], scale=scale)


@cache
def runs_fused_attention() -> bool:
    """Return whether ONNX Runtime can load the operator, with keys and values before a prompt."""
    from onnx import TensorProto, helper

    onnxruntime = imported_runtime()
    given, found = ["query", "key", "value", "keys", "values"], ["found", "all_keys", "all_values"]
    node = attention_node([*given[:3], "", *given[3:]], found, scale=1.0)
    shape = ["rows", "heads", None, "size"]
    values = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names]
        for names in (given, found)
    ]
    model = helper.make_model(
        helper.make_graph([node], "attention", *values),
        opset_imports=[helper.make_opsetid("", _VERSION)],
        ir_version=_IR_VERSION,
    )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # noqa: BLE001 an older runtime, which says so in one of many ways
        return False
    return True
