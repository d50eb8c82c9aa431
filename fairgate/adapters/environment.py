"""The machine and libraries of a run: reported beside the results, never compared."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

_LIBRARIES = ("onnxruntime", "onnxruntime-gpu", "transformers", "tokenizers", "numpy", "faiss-cpu")
_CPU_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimd", "i8mm")


def describe_environment(device: str) -> dict[str, str]:
    """Return processor features, device and library versions; imports none of the libraries."""
    found = {
        "cpu": " ".join([platform.machine(), *_cpu_flags()]),
        "device": device,
        "python": platform.python_version(),
        "system": platform.system(),
    }
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
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
