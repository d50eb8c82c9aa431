"""How an ONNX graph becomes a running session, on the CPU or on a CUDA device."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

from fairgate.domain.errors import ModelError
from fairgate.onnx.batch_scaling import refuse_batch_scaling
from fairgate.onnx.cuda import CUDA, OPTIONS, installed_builds, obstacle, quiet_start
from fairgate.onnx.half_angles import refuse_half_angles
from fairgate.onnx.runtime_errors import imported_runtime, mapped_errors

Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = ("cpu", "cuda")

_WEIGHTY = frozenset(
    {"Attention", "BiasGelu", "Conv", "DecoderMaskedMultiHeadAttention", "DynamicQuantizeMatMul"}
    | {"EmbedLayerNormalization", "FastGelu", "Gelu", "GroupQueryAttention", "LayerNormalization"}
    | {"MatMulBnb4", "MatMulInteger", "MatMulIntegerToFloat", "MatMulNBits", "MoE"}
    | {"MultiHeadAttention", "PackedAttention", "QAttention", "QLinearMatMul", "QMoE"}
    | {"RMSNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization", "Softmax"}
    | {"SkipSimplifiedLayerNormalization"}
)
"""Operators that compute with weights or activations only."""
_PRODUCTS = frozenset({"Einsum", "FusedGemm", "FusedMatMul", "Gemm", "MatMul"})
_POSITION_PRODUCTS = 2
"""As many products may turn positions into angles: one for global, one for local attention."""
_BROKEN = "Fetch the model again, or export it again with `fairgate export MODEL`."


def refuse_unsound_graph(graph: Path) -> None:
    """Raise ModelError for a graph whose results depend on a batch or are wrong for late tokens."""
    refuse_batch_scaling(graph)
    refuse_half_angles(graph)


def open_session(
    graph: Path,
    *,
    device: Device,
    threads: int = 0,
    content: bytes | None = None,
    folder: Path | None = None,
) -> Any:
    """Return an `onnxruntime.InferenceSession` set up for repeatable results.

    `threads` 0 leaves the number to ONNX Runtime. `content` is a changed graph that replaces
    the file `graph`; its external data are looked up in `folder`, or beside that file. The file
    has passed `refuse_unsound_graph`. Raises ModelError.
    """
    onnxruntime = imported_runtime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.log_severity_level = 4  # failures arrive as exceptions, with a next step
    if content is not None:
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(folder or graph.parent)
        )
    if device == "cuda":
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    providers = _providers(onnxruntime, device)
    start = quiet_start(onnxruntime) if device == "cuda" else nullcontext()
    with start, mapped_errors(f"the ONNX graph {str(graph)!r} cannot be loaded", _BROKEN):
        session = onnxruntime.InferenceSession(
            content if content is not None else str(graph),
            options,
            providers=providers,
            enable_fallback=0,
        )
    # A failure on the GPU must not go on, on the CPU, under the fingerprint of the GPU.
    session.disable_fallback()
    if device == "cuda":
        _refuse_other_devices(onnxruntime, session, graph)
    return session


def _refuse_other_devices(onnxruntime: Any, session: Any, graph: Path) -> None:
    """Raise ModelError where anything that computes with weights does not run on the GPU.

    Handling shapes on the CPU is ONNX Runtime's own choice and changes no result.
    """
    ask = getattr(session, "get_provider_graph_assignment_info", None)
    if ask is None:
        raise ModelError(
            "device 'cuda' was asked for, but this ONNX Runtime cannot report which operators run "
            "on the GPU; expected version 1.24 or later: upgrade onnxruntime-gpu."
        )
    nodes = [(part.ep_name, node.op_type) for part in ask() for node in part.get_nodes()]
    if not any(place == CUDA for place, _ in nodes):
        raise ModelError(
            f"device 'cuda' was asked for, but ONNX Runtime runs all of {str(graph)!r} on the CPU: "
            f"{obstacle(onnxruntime)}."
        )
    elsewhere = Counter(op for place, op in nodes if place != CUDA)
    wrong = {op for op in elsewhere if op in _WEIGHTY}
    products = {op for op in elsewhere if op in _PRODUCTS}
    if sum(elsewhere[op] for op in products) > _POSITION_PRODUCTS:
        wrong |= products
    if wrong:
        raise ModelError(
            f"device 'cuda' was asked for, but ONNX Runtime runs a part of {str(graph)!r} on the "
            f"CPU ({', '.join(sorted(wrong))[:200]}): its results would pass for the GPU's. "
            f"{_ATTENTION if 'GroupQueryAttention' in wrong else _SUPPORTED}, or use --device cpu."
        )


_ATTENTION = (
    "GroupQueryAttention computes on CUDA in fp16 or bf16 only: build the model again with "
    "`--precision fp16 --execution_provider cuda`, or export it with `fairgate export MODEL`"
)
_INSTEAD = (
    "Both builds are the same package to Python: uninstall `onnxruntime`, then install "
    "`fairgate[cuda]` instead of `fairgate[cpu]`"
)
_SUPPORTED = "Export the model in fp16 or fp32 with `fairgate export MODEL`"


def _providers(onnxruntime: Any, device: Device) -> list[Any]:
    if device not in DEVICES:
        raise ModelError(f"device {device!r} is not known; expected one of {', '.join(DEVICES)}.")
    if device == "cpu":
        return ["CPUExecutionProvider"]
    available = onnxruntime.get_available_providers()
    if CUDA not in available:
        raise ModelError(
            "device 'cuda' was asked for, but this ONNX Runtime has no CUDA support (it has "
            f"{', '.join(available)}; installed: {installed_builds()}). {_INSTEAD}, or use "
            "--device cpu."
        )
    return [(CUDA, OPTIONS), "CPUExecutionProvider"]
