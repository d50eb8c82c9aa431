"""The machine and libraries of a run: reported beside the results, never compared."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable
from pathlib import Path

_LIBRARIES = ("onnxruntime", "onnxruntime-gpu", "transformers", "tokenizers", "numpy", "faiss-cpu")
_OF_ANSWERS = ("jinja2", "numpy", "tokenizers", "transformers")
_RUNTIMES = ("onnxruntime", "onnxruntime-gpu")
_ENDING = ".dist-info"
_CPU_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimd", "i8mm")


def describe_environment(device: str) -> dict[str, str]:
    """Return processor features, device and library versions; imports none of the libraries."""
    found = {
        "cpu": " ".join([platform.machine(), *_cpu_flags()]),
        "device": device,
        "python": platform.python_version(),
        "system": platform.system(),
    }
    return found | installed_versions(_LIBRARIES)


def libraries_of_answers() -> dict[str, str]:
    """Return the versions of what a model's answer is computed with, which no fingerprint holds.

    ONNX Runtime has one name here, whichever of its packages is installed.
    """
    found = installed_versions(_OF_ANSWERS)
    if runtimes := installed_versions(_RUNTIMES):
        found["onnxruntime"] = ", ".join(sorted(set(runtimes.values())))
    return found


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed; the first on `sys.path` counts.

    By the names of the folders that installers leave, `<name>-<version>.dist-info`
    (https://packaging.python.org/en/latest/specifications/recording-installed-packages/).
    `importlib.metadata` also reads each package's description with an e-mail parser: 20 ms of
    every run, a fiftieth of one whose answers are stored.
    """
    found: dict[str, str] = {}
    for place in sys.path:
        try:
            entries = os.listdir(place or os.curdir)  # noqa: PTH208 (of a path that Python searches)
        except OSError:  # an archive, or a place that does not exist
            continue
        for entry in entries:
            name, _, version = entry.removesuffix(_ENDING).partition("-")
            if entry.endswith(_ENDING) and version:
                found.setdefault(_normal(name), version)
    return {name: found[_normal(name)] for name in names if _normal(name) in found}


def _normal(name: str) -> str:
    """Return one spelling of a package's name, as PEP 503 has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


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
