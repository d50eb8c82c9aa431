"""The machine of a run: what it is, and the processes on it, what they can see and have shown."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import IO

from fairgate.domain.errors import ApplicationError, UsageError
from fairgate.domain.plugins import distributions
from fairgate.domain.wording import concealed, harmless, quoted

_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_SECONDS_TO_END, _BETWEEN = 10.0, 0.01
_EVERY_PROGRAM = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "VIRTUAL_ENV",
    "PYTHONPATH", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
_SHOWN = 400
_LIBRARIES = ("onnxruntime", "onnxruntime-gpu", "tokenizers", "numpy", "faiss-cpu")
_CPU_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimd", "i8mm")


def close_to_others() -> None:
    """Keep this process's environment and memory from other processes of the same user (Linux).

    `/proc/<pid>/environ` keeps what a process was started with, whatever it does to its variables.
    It, the memory and tracing are root's alone afterwards; see prctl(2), PR_SET_DUMPABLE.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


@contextlib.contextmanager
def nothing_left_behind() -> Iterator[None]:
    """Let no process outlive the block that a program in it has left, in whatever session (Linux).

    One that loses its parent is given to this process; see prctl(2), PR_SET_CHILD_SUBREAPER. Raises
    ApplicationError where one cannot be ended.
    """
    if sys.platform != "linux":
        yield
        return
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = {*_children()}
    try:
        yield
    finally:
        latest = time.monotonic() + _SECONDS_TO_END
        while left := {*_children()} - before:
            if time.monotonic() > latest:
                raise ApplicationError(
                    f"process {min(left)}, which a program under test has left behind, cannot be "
                    "ended; it could still change what the run has written"
                )
            for child in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(child, os.WNOHANG)
            time.sleep(_BETWEEN)


def _children() -> Iterator[int]:
    """Yield this process's children in other sessions than its own: it starts programs so."""
    own = os.getsid(0)
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                if int(fields[1]) == os.getpid() and int(fields[3]) != own:
                    yield int(entry.name)


def program_environment(names: Sequence[str]) -> dict[str, str]:
    """Return the variables of every program and those that `env` names; all others are kept back.

    From here on programs of the same user cannot read them from this process either. Raises
    UsageError where a named one is not set.
    """
    missing = [name for name in names if name not in os.environ]
    if missing:
        raise UsageError(
            f"the environment variable {quoted(missing[0])}, which `env` names, is not set"
        )
    close_to_others()
    return {name: os.environ[name] for name in (*_EVERY_PROGRAM, *names) if name in os.environ}


def last_words(messages: IO[bytes], secrets: Sequence[str]) -> str:
    """Return the end of what a program wrote, on one line and without secrets; empty for none."""
    size = messages.seek(0, os.SEEK_END)
    messages.seek(max(0, size - 10 * _SHOWN))
    text = concealed(messages.read().decode("utf-8", "replace"), secrets).strip()
    return harmless(text[-_SHOWN:])


def describe_environment(device: str) -> dict[str, str]:
    """Return processor features, device, versions of libraries and plugins; imports none."""
    facts = {
        "cpu": " ".join([platform.machine(), *_cpu_flags()]),
        "device": device,
        "python": platform.python_version(),
        "system": platform.system(),
    }
    brought = {f"plugin {name}": version for name, version in distributions().items()}
    return facts | _versions(_LIBRARIES) | brought


def _versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    versions = {}
    for name in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


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
