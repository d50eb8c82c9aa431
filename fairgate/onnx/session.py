"""How an ONNX graph becomes a session with sound results, on the CPU or on a CUDA device."""

from __future__ import annotations

import contextlib
import ctypes
import io
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import harmless
from fairgate.onnx.graph_file import DamagedGraphError, Graph, mapped, messages, read_graph
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
_BATCH_SCALED = frozenset(
    {
        "ConvInteger",
        "ConvIntegerToFloat",
        "DynamicQuantizeLSTM",
        "DynamicQuantizeLinear",
        "DynamicQuantizeMatMul",
        "MatMulInteger",
        "MatMulInteger16",
        "MatMulIntegerToFloat",
        "QAttention",
    }
)
"""`DynamicQuantizeLinear`, what is fused from it, and what computes with its results."""
_CHILDREN: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node"},
    "function": {7: "node"},
    "node": {4: "operator", 5: "attribute"},
    "attribute": {6: "graph", 11: "graph"},
}
_TURNS = frozenset({"Cos", "Sin"})
_NO_NUMBERS = frozenset({"Shape", "Size"})
_HALF = frozenset({10, 16})
"""TensorProto.FLOAT16 and BFLOAT16."""
CUDA = "CUDAExecutionProvider"
OPTIONS = {
    # TF32 rounds the inputs of float32 products to 10 bits: answers would depend on the card.
    "use_tf32": "0",
    # The default doubles the arena at every growth: half of the card would be reserved, unused.
    "arena_extend_strategy": "kSameAsRequested",
}
_LIBRARY = "libonnxruntime_providers_cuda.so"
_DRIVER = "libcuda.so.1"
_BUILDS = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-rocm")
_QUIET, _WARNINGS = 4, 2
_ATTENTION = (
    "GroupQueryAttention computes on CUDA in fp16 or bf16 only: build the model again with "
    "`--precision fp16 --execution_provider cuda`, or export it with `fairgate export MODEL`"
)
_INSTEAD = (
    "Both builds are the same package to Python: uninstall `onnxruntime`, then install "
    "`fairgate[cuda]` instead of `fairgate[cpu]`"
)
_SUPPORTED = "Export the model in fp16 or fp32 with `fairgate export MODEL`"


def operator_types(graph: Path) -> frozenset[str]:
    """Return the types of all nodes of a graph, its subgraphs and functions.

    Raises DamagedGraphError, and OSError where the file cannot be read.
    """
    with mapped(graph) as content:
        found = messages(content, _CHILDREN, "operator")
        return frozenset(content[begin:end].decode("utf-8", "replace") for begin, end in found)


def refuse_batch_scaling(graph: Path) -> None:
    """Raise ModelError for a graph that quantises activations over the whole batch.

    A graph that cannot be read passes: the session that opens it reports the error.

    Dynamic quantisation rounds activations to 8 bits on a scale taken from the whole tensor, so
    from all rows of the batch: an answer or a vector would depend on its companions (measured on
    random weights of real architectures: 32 of 40 answers changed with the batch, 20 of 21
    vectors).
    """
    try:
        scaled = sorted(operator_types(graph) & _BATCH_SCALED)
    except (DamagedGraphError, OSError):
        return
    if scaled:
        raise ModelError(
            f"the ONNX graph {str(graph)!r} is quantised dynamically ({', '.join(scaled)}): it "
            "rounds on a scale taken from the whole batch, so a result would depend on what else "
            "is asked. Use the fp32 or fp16 graph of the model (onnx-community: `model.onnx`, "
            "`model_fp16.onnx`), a graph with block-wise weights (`model_q4.onnx`), or make one "
            "with `fairgate export MODEL --precision int8`."
        )


def has_half_angles(graph: Graph) -> bool:
    """Return whether anything between positions and sines or cosines is in half precision."""
    producer = {name: node for node in graph.nodes for name in node.outputs}
    waiting = [name for node in graph.nodes if node.operator in _TURNS for name in node.inputs]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if graph.formats.get(name) in _HALF:
            return True
        node = producer.get(name)
        if node is None or node.operator in _NO_NUMBERS:
            continue
        if node.format in _HALF:
            return True
        waiting += node.inputs
    return False


def refuse_half_angles(file: Path) -> None:
    """Raise ModelError for a graph whose rotary embeddings are computed in half precision.

    A graph that cannot be read passes: the session that opens it reports the error.

    An angle is a position times a frequency. Half precision has 11 bits: beyond 128 tokens it is
    off by up to a sixteenth of a radian, beyond a thousand by half a one, and a rotary embedding
    turns late tokens elsewhere (`tests/unit/features/onnx_export/test_half_precision.py` compares
    both). Converters of whole graphs to half precision do this; so did `fairgate export --precision
    fp16` before.
    """
    try:
        half = has_half_angles(read_graph(file))
    except (DamagedGraphError, OSError):
        return
    if half:
        raise ModelError(
            f"the ONNX graph {str(file)!r} turns positions into angles in half precision, which "
            "is off by up to half a radian after a thousand tokens. Use the fp32 graph of the "
            "model (onnx-community: `model.onnx`) or one with block-wise weights "
            "(`model_q4.onnx`), or make one with `fairgate export MODEL --precision fp16`, which "
            "keeps angles in float32."
        )


def refuse_unsound_graph(graph: Path) -> None:
    """Raise ModelError for a graph whose results depend on a batch or are wrong for late tokens."""
    refuse_batch_scaling(graph)
    refuse_half_angles(graph)


@contextlib.contextmanager
def quiet_start(onnxruntime: Any) -> Iterator[None]:
    """Load CUDA and cuDNN from the nvidia-* wheels and keep the attempt's own prints back.

    ONNX Runtime prints errors instead of raising them; `obstacle` reads them.
    """
    quieten = getattr(onnxruntime, "set_default_logger_severity", lambda _severity: None)
    quieten(_QUIET)
    try:
        if hasattr(onnxruntime, "preload_dlls"):
            with contextlib.redirect_stdout(io.StringIO()):
                onnxruntime.preload_dlls()
        yield
    finally:
        quieten(_WARNINGS)


def obstacle(onnxruntime: Any) -> str:
    """Return why CUDA does not start, with the next step: the library that cannot be loaded."""
    library = Path(onnxruntime.__file__).parent / "capi" / _LIBRARY
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        reason = harmless(str(error)[:200])
        if "libcuda.so" in reason:
            return f"{reason}: no NVIDIA driver. Install one, or use --device cpu"
        return (
            f"{reason}. Install `fairgate[cuda]`, whose wheels bring CUDA and cuDNN, and an NVIDIA "
            "driver for that CUDA version (`nvidia-smi` shows the newest it serves), or use "
            "--device cpu"
        )
    served, needed = _served_by_driver(), _needed_by(onnxruntime)
    if served and needed and served[0] < needed[0]:
        return (
            f"the NVIDIA driver serves CUDA {served[0]}.{served[1]}, and this ONNX Runtime needs "
            f"CUDA {needed[0]}. Install a newer driver (580 or later for CUDA 13), or the last "
            "onnxruntime-gpu for CUDA 12 (`pip install 'onnxruntime-gpu[cuda,cudnn]<1.27'`), or "
            "use --device cpu"
        )
    return "its libraries are there; check `nvidia-smi` for the driver and the card"


def installed_builds() -> str:
    """Return the builds of ONNX Runtime that are installed, with versions; `none` without any."""
    named = []
    for name in _BUILDS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            named.append(f"{name} {metadata.version(name)}")
    return " and ".join(named) or "none"


def _served_by_driver() -> tuple[int, int] | None:
    """Return the newest CUDA that the driver serves; None where it does not tell."""
    number = ctypes.c_int()
    try:
        failed = ctypes.CDLL(_DRIVER).cuDriverGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):
        return None
    return None if failed else (number.value // 1000, number.value % 1000 // 10)


def _needed_by(onnxruntime: Any) -> tuple[int, int] | None:
    """Return the CUDA that a build of ONNX Runtime was made for; None where it does not tell."""
    major, _, rest = str(getattr(onnxruntime, "cuda_version", "") or "").partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor) if minor.isdigit() else 0) if major.isdigit() else None


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
