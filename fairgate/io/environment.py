"""The machine and libraries of a run: reported beside the results, never compared."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

_LIBRARIES = ("onnxruntime", "onnxruntime-gpu", "tokenizers", "numpy", "faiss-cpu")
_OF_ANSWERS = ("jinja2", "numpy", "tokenizers", "transformers")
OPTIONAL = frozenset({"transformers"})
"""Libraries of `libraries_of_answers` that need not be there: only models whose files leave out how
far they attend ask it, and say so where it is missing."""
_RUNTIMES = ("onnxruntime", "onnxruntime-gpu")
_CPU_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimd", "i8mm")


def describe_environment(device: str) -> dict[str, str]:
    """Return processor features, device and library versions; imports none of the libraries."""
    found = {
        "cpu": " ".join([platform.machine(), *_cpu_flags()]),
        "device": device,
        "python": platform.python_version(),
        "system": platform.system(),
    }
    return found | _versions(_LIBRARIES)


def libraries_of_answers() -> dict[str, str]:
    """Return the versions of what a model's answer is computed with, which no fingerprint holds.

    ONNX Runtime has one name here, whichever of its packages is installed.
    """
    found = _versions(_OF_ANSWERS)
    if runtimes := _versions(_RUNTIMES):
        found["onnxruntime"] = ", ".join(sorted(set(runtimes.values())))
    return found


def _versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    found = {}
    for name in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _cpu_flags() -> list[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in {"flags", "Features"}:
            present = set(value.split())
            return [flag for flag in _CPU_FLAGS if flag in present]
    return []
