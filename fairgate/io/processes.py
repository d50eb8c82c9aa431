"""Processes that are started: what they do, what they can see, what is shown of them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from multiprocessing import resource_tracker
from typing import IO, Protocol

from fairgate.domain.errors import UsageError
from fairgate.domain.wording import concealed, harmless, quoted

_PR_SET_DUMPABLE = 4
_EVERY_PROGRAM = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "VIRTUAL_ENV",
    "PYTHONPATH", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
_SHOWN = 400


class Side(Protocol):
    """What a worker does with a task."""

    def answer(self, task: str) -> Iterator[str]:
        """Yield the replies to a task."""
        ...


@contextlib.contextmanager
def no_interrupts() -> Iterator[None]:
    """Start a process that never sees Ctrl-C, from its first instruction on."""
    # Where this process is not running yet, starting it would let interrupts through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def close_to_others() -> None:
    """Keep this process's environment and memory from other processes of the same user (Linux).

    `/proc/<pid>/environ` keeps what a process was started with, whatever it does to its variables.
    It, the memory and tracing are root's alone afterwards; see prctl(2), PR_SET_DUMPABLE.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def program_environment(named: Sequence[str]) -> dict[str, str]:
    """Return the variables of every program and those that `env` names; all others are kept back.

    From here on programs of the same user cannot read them from this process either. Raises
    UsageError where a named one is not set.
    """
    missing = [name for name in named if name not in os.environ]
    if missing:
        raise UsageError(
            f"the environment variable {quoted(missing[0])}, which `env` names, is not set"
        )
    close_to_others()
    return {name: os.environ[name] for name in (*_EVERY_PROGRAM, *named) if name in os.environ}


def last_words(messages: IO[bytes], secrets: Sequence[str]) -> str:
    """Return the end of what a program wrote, on one line and without secrets; empty for none."""
    size = messages.seek(0, os.SEEK_END)
    messages.seek(max(0, size - 10 * _SHOWN))
    text = concealed(messages.read().decode("utf-8", "replace"), secrets).strip()
    return harmless(text[-_SHOWN:])
