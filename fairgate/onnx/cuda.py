"""ONNX Runtime's settings for a CUDA device, and why it could not start one."""

from __future__ import annotations

import contextlib
import ctypes
import io
from collections.abc import Iterator
from importlib import metadata
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
_DRIVER = "libcuda.so.1"
_BUILDS = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-rocm")
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
