"""What all that starts workers shares: what a worker does, and how its process is started."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import Protocol


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
