"""How an ONNX graph becomes a running session, on the CPU or on a CUDA device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import harmless

Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = ("cpu", "cuda")


def open_session(
    graph: Path, *, device: Device, threads: int = 0, content: bytes | None = None
) -> Any:
    """Return an `onnxruntime.InferenceSession` set up for repeatable results.

    `threads` 0 leaves the number to ONNX Runtime. `content` is a changed graph that stands for
    the file `graph`; its external data are looked up beside that file. Raises ModelError.
    """
    onnxruntime = _onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.log_severity_level = 4  # failures arrive as exceptions, with a next step
    if content is not None:
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(graph.parent)
        )
    providers = _providers(onnxruntime, device)
    with mapped_errors(f"the ONNX graph {str(graph)!r} cannot be loaded", _BROKEN):
        session = onnxruntime.InferenceSession(
            content if content is not None else str(graph), options, providers=providers
        )
    if device == "cuda" and session.get_providers()[0] != "CUDAExecutionProvider":
        raise ModelError(
            "device 'cuda' was asked for, but ONNX Runtime could not start it (driver, CUDA or "
            "cuDNN libraries missing). Install `fairgate[cuda]` on a machine with an NVIDIA "
            "driver, or use device: cpu."
        )
    return session


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError(
            f"models run on ONNX Runtime, which cannot be imported ({harmless(str(error)[:200])}). "
            "Install `fairgate[cpu]`, or `fairgate[cuda]` for an NVIDIA GPU."
        ) from error
    return onnxruntime


_BROKEN = (
    "The file may be truncated, or its external data (*.onnx_data, *.data) may be missing or "
    "incomplete: fetch the model again, or export it again with `fairgate export MODEL`."
)


def _providers(onnxruntime: Any, device: Device) -> list[Any]:
    if device not in DEVICES:
        raise ModelError(f"device {device!r} is not known; expected one of {', '.join(DEVICES)}.")
    if device == "cpu":
        return ["CPUExecutionProvider"]
    available = onnxruntime.get_available_providers()
    if "CUDAExecutionProvider" not in available:
        raise ModelError(
            "device 'cuda' was asked for, but this ONNX Runtime has no CUDA support (it has "
            f"{', '.join(available)}). Install `fairgate[cuda]` instead of `fairgate[cpu]`, or "
            "use device: cpu."
        )
    if hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()  # CUDA and cuDNN from the nvidia-* wheels
    # TF32 rounds the inputs of float32 products to 10 bits: answers would depend on the card.
    return [("CUDAExecutionProvider", {"use_tf32": "0"}), "CPUExecutionProvider"]


@contextmanager
def mapped_errors(what: str, next_step: str) -> Iterator[None]:
    """Turn whatever ONNX Runtime raises in the block into a ModelError with a next step."""
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
        RuntimeError,
        ValueError,
    )
    try:
        yield
    except raised as error:
        reason = harmless(" ".join(str(error).split())[:400])
        raise ModelError(f"{what}: {reason}. {next_step}") from error
