"""How an ONNX graph becomes a session with sound results, on the CPU or on a CUDA device.

What ONNX Runtime raises becomes an error with a next step.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.domain.wording import harmless
from fairgate.onnx.graph_file import DamagedGraphError, external_locations, load_structure
from fairgate.onnx.integer_products import (
    PRODUCT,
    QuantisedRows,
    Sums,
    inexact_product,
    rounds_by_stored_scales,
)

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
_TURNS = frozenset({"Cos", "Sin"})
_NO_NUMBERS = frozenset({"Shape", "Size"})
_HALF = frozenset({10, 16})
"""TensorProto.FLOAT16 and BFLOAT16."""
CUDA = "CUDAExecutionProvider"
OPTIONS = {
    # TF32 rounds the inputs of float32 products to 10 bits: answers would depend on the GPU.
    "use_tf32": "0",
    # The default doubles the arena at every growth: half of the GPU would be reserved, unused.
    "arena_extend_strategy": "kSameAsRequested",
    # Flash, memory-efficient and plain attention (1 + 2 + 16), without cuDNN's. That one compiles a
    # plan for every number of rows and tokens, and on an H100 it gave other bits from run to run
    # and failed on a step of four rows.
    "sdpa_kernel": "19",
}
_LIBRARY = "libonnxruntime_providers_cuda.so"
_STARTING = (
    "Install `fairgate[cuda]`, whose wheels bring CUDA 13 and cuDNN, and NVIDIA's driver 580 or "
    "later (`nvidia-smi` shows yours); for an older driver take the last ONNX Runtime for CUDA 12 "
    "(`pip install 'onnxruntime-gpu[cuda,cudnn]<1.27'`), or use --device cpu"
)
_BUILDS = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-rocm")
_QUIET, _WARNINGS = 4, 2
_UNSIGNED_WEIGHTS = "session.x64quantprecision"
_SOURCE = "/onnxruntime_src/"
_CAUSE = re.compile(r"(?:\b[A-Z_]+ failure [^\s:]+:|Available memory of |Failed to allocate )[^;]*")
_ATTENTION = (
    "GroupQueryAttention computes on CUDA in fp16 or bf16 only: build the model again with "
    "`--precision fp16 --execution_provider cuda`, or export it with `fairgate export MODEL`"
)
_INSTEAD = (
    "Both builds are the same package to Python: uninstall `onnxruntime`, then install "
    "`fairgate[cuda]` instead of `fairgate[cpu]`"
)
_SUPPORTED = "Export the model in fp16 or fp32 with `fairgate export MODEL`"


@contextmanager
def sound_model(graph: Path) -> Iterator[tuple[Any, Path | None] | None]:
    """Yield a graph as `load_structure` returns it; None where it is damaged.

    Then the session that opens it reports the error. What runs out of memory in the block is an
    OutOfMemoryError. Raises ModelError without the package `onnx`, and for a graph that cannot be
    looked into, or whose results depend on a batch or are wrong for late tokens.
    """
    try:
        import onnx  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModelError(
            "models need the package 'onnx' beside ONNX Runtime: without it nothing shows what a "
            "graph computes. Install `fairgate[cpu]`, or `fairgate[cuda]`."
        ) from error
    with memory_errors(f"the ONNX graph {str(graph)!r} cannot be read"):
        try:
            structure = load_structure(graph)
        except Exception as error:
            if is_of_memory(error):
                raise
            with contextlib.suppress(DamagedGraphError, OSError):
                external_locations(graph)  # no damaged file, but one that nobody looks into
                raise ModelError(
                    f"the ONNX graph {str(graph)!r} cannot be read by the package 'onnx' "
                    f"({harmless(' '.join(str(error).split())[:200])}), so nothing shows what it "
                    f"computes. {_BROKEN}"
                ) from error
            structure = None
        if structure is not None:
            refuse_batch_scaling(structure[0], graph)
            refuse_inexact_products(structure[0], graph)
            refuse_half_angles(structure[0], graph)
        yield structure


def refuse_batch_scaling(model: Any, graph: Path) -> None:
    """Raise ModelError for an `onnx.ModelProto` that quantises activations over the whole batch.

    Dynamic quantisation rounds activations to 8 bits on a scale taken from the whole tensor, so
    from all rows of the batch: an answer or a vector would depend on its companions (measured on
    random weights of real architectures: 32 of 40 answers changed with the batch, 20 of 21
    vectors). Subgraphs and functions count. Integer products whose activations are rounded on a
    stored scale are none of these, see `integer_products`.
    """
    is_fixed = rounds_by_stored_scales(model)
    waiting = [node for node in model.graph.node if not (is_fixed and node.op_type == PRODUCT)]
    waiting += [node for function in model.functions for node in function.node]
    operators = set()
    while waiting:
        node = waiting.pop()
        operators.add(node.op_type)
        for attribute in node.attribute:
            waiting += [
                inner_node
                for inner in (attribute.g, *attribute.graphs)
                for inner_node in inner.node
            ]
    if scaled := sorted(operators & _BATCH_SCALED):
        raise ModelError(
            f"the ONNX graph {str(graph)!r} is quantised dynamically ({', '.join(scaled)}): it "
            "rounds on a scale taken from the whole batch, so a result would depend on what else "
            "is asked. Use the fp32 or fp16 graph of the model (onnx-community: `model.onnx`, "
            "`model_fp16.onnx`), a graph with block-wise weights (`model_q4.onnx`), or make one "
            "with `fairgate export MODEL --precision int8`."
        )


def refuse_inexact_products(model: Any, graph: Path) -> None:
    """Raise ModelError for a graph with integer products that this machine does not get right."""
    if has_integer_products(model) and (wrong := needs_unsigned_weights() and _inexact("1")):
        raise ModelError(
            f"the ONNX graph {str(graph)!r} multiplies 8-bit integers, which ONNX Runtime "
            f"{harmless(str(imported_runtime().__version__))} does not do exactly on this "
            f"processor ({wrong}). Use the model in fp32, or run it on another machine."
        )


def has_integer_products(model: Any) -> bool:
    """Return whether an `onnx.ModelProto` multiplies codes of 8 bits."""
    return any(node.op_type == PRODUCT for node in model.graph.node)


def needs_unsigned_weights() -> bool:
    """Return whether integer products overflow here as long as weights are signed.

    Without VNNI kernels for signed weights sum pairs of products in 16 bits. ONNX Runtime can store
    the same weights unsigned and take other kernels, which are slower where there is VNNI.
    """
    return bool(_inexact("0"))


@cache
def _inexact(unsigned: str) -> str:
    """Return how integer products are wrong here, with weights unsigned ("1") or signed ("0")."""
    onnxruntime = imported_runtime()

    def run(content: bytes, codes: QuantisedRows) -> Sums:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = _QUIET
        options.add_session_config_entry(_UNSIGNED_WEIGHTS, unsigned)
        with mapped_errors("a product of integers cannot be tried", _BROKEN):
            providers = ["CPUExecutionProvider"]
            session = onnxruntime.InferenceSession(content, options, providers=providers)
            sums: Sums = session.run(None, {"codes": codes})[0]
        return sums

    return inexact_product(run)


def has_half_angles(model: Any) -> bool:
    """Return whether anything between positions and sines or cosines is in half precision."""
    formats = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    producer = {name: node for node in model.graph.node for name in node.output}
    waiting = [name for node in model.graph.node if node.op_type in _TURNS for name in node.input]
    visited: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in visited:
            continue
        visited.add(name)
        node = producer.get(name)
        if node is not None and node.op_type not in _NO_NUMBERS:
            waiting += node.input
            for attribute in node.attribute:
                if attribute.name == "to":
                    formats[name] = attribute.i
                elif attribute.name == "value":
                    formats[name] = attribute.t.data_type
        if formats.get(name) in _HALF:
            return True
    return False


def refuse_half_angles(model: Any, graph: Path) -> None:
    """Raise ModelError for a graph whose rotary embeddings are computed in half precision.

    An angle is a position times a frequency. Half precision has 11 bits: beyond 128 tokens it is
    off by up to a sixteenth of a radian, beyond a thousand by half a one, and a rotary embedding
    turns late tokens elsewhere (`tests/unit/features/onnx_export/test_half_precision.py` compares
    both). Converters of whole graphs to half precision do this; so did `fairgate export --precision
    fp16` before.
    """
    if has_half_angles(model):
        raise ModelError(
            f"the ONNX graph {str(graph)!r} turns positions into angles in half precision, which "
            "is off by up to half a radian after a thousand tokens. Use the fp32 graph of the "
            "model (onnx-community: `model.onnx`) or one with block-wise weights "
            "(`model_q4.onnx`), or make one with `fairgate export MODEL --precision fp16`, which "
            "keeps angles in float32."
        )


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
    """Return why CUDA does not start, as far as the system says it, with the next step."""
    reason = "its libraries are there"
    try:
        ctypes.CDLL(str(Path(onnxruntime.__file__).parent / "capi" / _LIBRARY))
    except OSError as error:
        reason = harmless(str(error)[:200])
    return f"{reason}. {_STARTING}"


def installed_builds() -> str:
    """Return the builds of ONNX Runtime that are installed, with versions; `none` without any."""
    builds = []
    for name in _BUILDS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            builds.append(f"{name} {metadata.version(name)}")
    return " and ".join(builds) or "none"


def open_session(
    graph: Path,
    *,
    device: Device,
    threads: int = 0,
    content: bytes | None = None,
    folder: Path | None = None,
    multiplies_integers: bool = False,
) -> Any:
    """Return an `onnxruntime.InferenceSession` set up for repeatable results.

    `threads` 0 leaves the number to ONNX Runtime. `content` is a changed graph that replaces
    the file `graph`; its external data are looked up in `folder`, or beside that file. The graph
    is a `sound_model`; `multiplies_integers`: whether it has integer products. Raises ModelError.
    """
    onnxruntime = imported_runtime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    if multiplies_integers and needs_unsigned_weights():
        options.add_session_config_entry(_UNSIGNED_WEIGHTS, "1")
    options.log_severity_level = 4  # failures arrive as exceptions, with a next step
    if content is not None:
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(folder or graph.parent)
        )
    if device == "cuda":
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    start = quiet_start(onnxruntime) if device == "cuda" else nullcontext()
    with start, mapped_errors(f"the ONNX graph {str(graph)!r} cannot be loaded", _BROKEN):
        session = onnxruntime.InferenceSession(
            content if content is not None else str(graph),
            options,
            providers=_providers(onnxruntime, device),
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
    if (ask := getattr(session, "get_provider_graph_assignment_info", None)) is None:
        raise ModelError(
            "device 'cuda' was asked for, but this ONNX Runtime cannot report which operators run "
            "on the GPU; expected version 1.24 or later: upgrade onnxruntime-gpu."
        )
    nodes = [(part.ep_name, node.op_type) for part in ask() for node in part.get_nodes()]
    if not any(provider == CUDA for provider, _ in nodes):
        raise ModelError(
            f"device 'cuda' was asked for, but ONNX Runtime runs all of {str(graph)!r} on the CPU: "
            f"{obstacle(onnxruntime)}."
        )
    elsewhere = Counter(op for provider, op in nodes if provider != CUDA)
    wrong, products = _WEIGHTY & elsewhere.keys(), _PRODUCTS & elsewhere.keys()
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


_MEMORY = (
    "Memory ran out: use a machine or a GPU with more memory, raise the limit of the container or "
    "of `ulimit -v`, or export the model in a smaller precision "
    "(`fairgate export MODEL --precision int8`)."
)
_NO_KERNEL = (
    "This ONNX Runtime cannot compute with an operator or a number format of the graph (bfloat16 "
    "on the CPU is one): export the model again in fp32 with `fairgate export MODEL`."
)
_NEWER = "The graph is newer than this ONNX Runtime: upgrade onnxruntime, or export it again."
_EXTERNAL = (
    "Its external data (*.onnx_data, *.data) are missing, incomplete or outside its folder: fetch "
    "the model again, or export it again with `fairgate export MODEL`."
)
_CUT_OFF = (
    "The file is no ONNX graph or only a part of one: fetch the model again, or export it again "
    "with `fairgate export MODEL`."
)
_CUDA = (
    "CUDA failed: see `nvidia-smi` for the driver and for memory that other programs hold, or use "
    "--device cpu."
)
_OLD_DRIVER = (
    "NVIDIA's driver is older than the CUDA of this ONNX Runtime: install a newer one (CUDA 13 "
    "needs driver 580, `nvidia-smi` shows yours), or the last ONNX Runtime for CUDA 12 (`pip "
    "install 'onnxruntime-gpu[cuda,cudnn]<1.27'`), or use --device cpu."
)
_NO_CARD = (
    "No NVIDIA GPU can be used here: see `nvidia-smi`, CUDA_VISIBLE_DEVICES and whether the "
    "container was given the GPU (`--gpus all`), or use --device cpu."
)
_OTHER_CARD = (
    "This build of ONNX Runtime has no code for this GPU: install another version of "
    "onnxruntime-gpu, or use --device cpu."
)
_ADVICE: tuple[tuple[tuple[str, ...], str], ...] = (
    (("allocate memory", "bad allocation", "bad_alloc", "alloc_failed", "out of memory"), _MEMORY),
    (("is smaller than requested bytes",), _MEMORY),
    (("arena alloc failed",), _MEMORY),
    (("not_implemented", "bfloat16", "no op registered", "not a registered function"), _NO_KERNEL),
    (("unsupported model ir version", "onnx runtime only *guarantees*"), _NEWER),
    (("external data", "external initializer", "out of bounds or can not be read"), _EXTERNAL),
    (("protobuf parsing failed", "invalid_protobuf", "modelproto does not have"), _CUT_OFF),
    (("driver version is insufficient", "insufficientdriver", "cuda failure 35:"), _OLD_DRIVER),
    (("no cuda-capable device", "cuda failure 100:", "invalid device ordinal"), _NO_CARD),
    (("no kernel image", "unsupported toolchain", "cuda failure 209:"), _OTHER_CARD),
    (("cuda failure", "cudnn failure", "cudnn_fe failure", "cublas failure", "cuda error"), _CUDA),
)
"""Parts of messages, in lower case, and the next step for each; the first match wins."""


def imported_runtime() -> Any:
    """Return the module `onnxruntime`. Raises ModelError where it cannot be imported."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError(
            f"models run on ONNX Runtime, which cannot be imported ({harmless(str(error)[:200])}). "
            "Install `fairgate[cpu]`, or `fairgate[cuda]` for an NVIDIA GPU; where it is there, "
            "allow more memory (`ulimit -v`)."
        ) from error
    return onnxruntime


@contextmanager
def mapped_errors(failure: str, next_step: str) -> Iterator[None]:
    """Turn whatever ONNX Runtime raises in the block into a ModelError with a next step.

    `next_step` is the advice for errors that do not name their cause. A lack of memory is an
    OutOfMemoryError.
    """
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    raised = (
        state.EPFail,
        state.Fail,
        state.InvalidArgument,
        state.InvalidGraph,
        state.InvalidProtobuf,
        state.NoModel,
        state.NoSuchFile,
        state.NotImplemented,
        state.RuntimeException,
        MemoryError,
        RuntimeError,
        ValueError,
    )
    try:
        yield
    except raised as error:
        reason = " ".join(f"{type(error).__name__} {error}".split())
        reason_text = harmless(_without_source(reason)[:400])
        message, advice = f"{failure}: {reason_text}", _advice(reason, next_step)
        if isinstance(error, MemoryError) or advice is _MEMORY:
            raise OutOfMemoryError(message, _MEMORY) from error
        raise ModelError(f"{message}. {advice}") from error


def is_of_memory(error: Exception) -> bool:
    """Return whether an error is for a lack of memory, by its kind or a library's own words.

    A library that cannot be loaded is something else, and so is a file whose name has such words.
    """
    if isinstance(error, ImportError | OSError):
        return getattr(error, "errno", None) == errno.ENOMEM
    return isinstance(error, MemoryError) or _advice(str(error), "") is _MEMORY


@contextmanager
def memory_errors(failure: str) -> Iterator[None]:
    """Turn what reading or changing a graph raises for a lack of memory into OutOfMemoryError.

    protobuf says `Arena alloc failed` in an error of its own. All other errors pass.
    """
    try:
        yield
    except OutOfMemoryError:
        raise
    except Exception as error:
        if not is_of_memory(error):
            raise
        reason = " ".join(f"{type(error).__name__} {error}".split())
        raise OutOfMemoryError(f"{failure}: {harmless(reason[:400])}", _MEMORY) from error


def _without_source(reason: str) -> str:
    """Return ONNX Runtime's message without its own source code, and without the machine's name.

    In front of a failure of CUDA stand the file and the C++ signature of what noticed it (300
    characters and more), behind it the host's name and the expression.
    """
    cause = _CAUSE.search(reason)
    if cause is None or _SOURCE not in reason:
        return reason
    return f"{reason.split(_SOURCE, maxsplit=1)[0]}{cause[0].strip()}"


def _advice(reason: str, otherwise: str) -> str:
    lower = reason.lower()
    return next(
        (step for signs, step in _ADVICE if any(sign in lower for sign in signs)), otherwise
    )
