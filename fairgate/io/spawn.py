"""What all that starts processes shares: what a worker does, how it starts, what others see."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import Protocol

_PR_SET_DUMPABLE = 4


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
