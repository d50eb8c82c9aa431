"""What ONNX Runtime raises, as a ModelError whose advice fits what happened."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.domain.wording import harmless

_MEMORY = (
    "Memory ran out: use a machine or a card with more memory, raise the limit of the container or "
    "of `ulimit -v`, use fewer --workers, or export the model in a smaller precision "
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
_DRIVER = (
    "NVIDIA's driver is older than the CUDA of this ONNX Runtime: install a newer one (CUDA 13 "
    "needs driver 580, `nvidia-smi` shows yours), or the last ONNX Runtime for CUDA 12 (`pip "
    "install 'onnxruntime-gpu[cuda,cudnn]<1.27'`), or use --device cpu."
)
_NO_CARD = (
    "No NVIDIA card can be used here: see `nvidia-smi`, CUDA_VISIBLE_DEVICES and whether the "
    "container was given the card (`--gpus all`), or use --device cpu."
)
_OTHER_CARD = (
    "This build of ONNX Runtime has no code for this card: install another version of "
    "onnxruntime-gpu, or use --device cpu."
)
_ADVICE: tuple[tuple[tuple[str, ...], str], ...] = (
    (("allocate memory", "bad allocation", "bad_alloc", "alloc_failed", "out of memory"), _MEMORY),
    (("arena alloc failed",), _MEMORY),
    (("not_implemented", "bfloat16", "no op registered", "not a registered function"), _NO_KERNEL),
    (("unsupported model ir version", "onnx runtime only *guarantees*"), _NEWER),
    (("external data", "external initializer", "out of bounds or can not be read"), _EXTERNAL),
    (("protobuf parsing failed", "invalid_protobuf", "modelproto does not have"), _CUT_OFF),
    (("driver version is insufficient", "insufficientdriver", "cuda failure 35:"), _DRIVER),
    (("no cuda-capable device", "cuda failure 100:", "invalid device ordinal"), _NO_CARD),
    (("no kernel image", "unsupported toolchain", "cuda failure 209:"), _OTHER_CARD),
    (("cuda failure", "cudnn failure", "cublas failure", "cuda error"), _CUDA),
)
"""What a message contains, in lower case, and the next step that follows from it; first wins."""


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
def mapped_errors(what: str, next_step: str) -> Iterator[None]:
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
        message, advice = f"{what}: {harmless(reason[:400])}", _advice(reason, next_step)
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
def memory_errors(what: str) -> Iterator[None]:
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
        raise OutOfMemoryError(f"{what}: {harmless(reason[:400])}", _MEMORY) from error


def _advice(reason: str, otherwise: str) -> str:
    lower = reason.lower()
    return next(
        (step for signs, step in _ADVICE if any(sign in lower for sign in signs)), otherwise
    )
