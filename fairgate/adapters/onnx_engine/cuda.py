"""ONNX Runtime's settings for a CUDA device, and why it could not start one."""

from __future__ import annotations

import contextlib
import ctypes
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairgate.domain.wording import harmless

CUDA = "CUDAExecutionProvider"
OPTIONS = {
    # TF32 rounds the inputs of float32 products to 10 bits: answers would depend on the card.
    "use_tf32": "0",
    # The default doubles the arena at every growth: half of the card would be reserved, unused.
    "arena_extend_strategy": "kSameAsRequested",
}
_LIBRARY = "libonnxruntime_providers_cuda.so"
_QUIET, _WARNINGS = 4, 2


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
            return f"{reason}: no NVIDIA driver. Install one, or use device: cpu"
        return (
            f"{reason}. Install `fairgate[cuda]`, whose wheels bring CUDA and cuDNN, and an NVIDIA "
            "driver for that CUDA version (`nvidia-smi` shows the newest it serves), or use "
            "device: cpu"
        )
    return "its libraries are there; check `nvidia-smi` for the driver and the card"
