"""How much memory this process may still take, by what the system tells."""

from __future__ import annotations

import resource
from pathlib import Path

_SYSTEM = Path("/proc/meminfo")
_STATUS = Path("/proc/self/status")
_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)
"""Limit and use of a container, in version 2 and 1."""


def free_bytes(sharing: int = 1) -> int | None:
    """Return the least of what the machine, the container and `ulimit -v` leave; None: unknown.

    So many processes share machine and container, and each has its equal part; `ulimit -v` is each
    one's own.
    """
    found = [_in_kilobytes(_SYSTEM, "MemAvailable:")]
    found += [_difference(limit, used) for limit, used in _CGROUPS]
    parts = [None if each is None else each // sharing for each in found]
    known = [each for each in (*parts, _under_ulimit()) if each is not None]
    return min((max(0, each) for each in known), default=None)


def _under_ulimit() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _in_kilobytes(_STATUS, "VmSize:")
    return None if limit == resource.RLIM_INFINITY or used is None else limit - used


def _difference(limit: Path, used: Path) -> int | None:
    most, now = _number(limit), _number(used)
    return None if most is None or now is None else most - now


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max": without a limit
        return None


def _in_kilobytes(file: Path, name: str) -> int | None:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
