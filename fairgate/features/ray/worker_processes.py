"""Workers that are processes of this machine."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from fairgate.domain.errors import WorkerError
from fairgate.features.ray.workers import Received
from fairgate.io.spawn import Side, close_to_others, no_interrupts

_SECONDS_TO_END = 5.0


class WorkerProcesses:
    """A port `Executor`: processes that are spawned, not forked, and get texts over a pipe.

    A fork would copy the locks of the threads that ONNX Runtime has started. Nothing is pickled
    after the start; a process whose run has ended ends with its next answer.
    """

    def __init__(self, most: int, threads: int, side: Callable[[int], Side]) -> None:
        """Take how many processes, and the threads of each; 0 shares the cores among them.

        `side` is called with the threads in each: a function of an importable module.
        """
        self._most = most
        self._threads = threads or max(1, len(os.sched_getaffinity(0)) // most)
        self._side = side
        self._numbers = itertools.count(1)
        self._running: dict[int, tuple[SpawnProcess, Connection]] = {}

    @property
    def most(self) -> int:
        """Return how many processes there are at once."""
        return self._most

    def start(self) -> int:
        """Start a process; Ctrl-C reaches the run alone, which ends it. Raises WorkerError."""
        context = multiprocessing.get_context("spawn")
        number = next(self._numbers)
        here, there = context.Pipe()
        process = context.Process(
            target=_work, args=(there, self._side, self._threads), daemon=True
        )
        try:
            with no_interrupts():
                process.start()
        except OSError as error:
            here.close()
            raise WorkerError(
                f"worker {number} cannot be started ({error.strerror}); expected {self._most} "
                "processes: lower --workers"
            ) from error
        finally:
            there.close()
        self._running[number] = process, here
        return number

    def send(self, worker: int, task: str) -> None:
        """Give a process a task."""
        with contextlib.suppress(OSError):  # it has ended: `receive` finds its pipe closed
            self._running[worker][1].send_bytes(task.encode())

    def receive(self) -> Received:
        """Return the next text, or the next loss."""
        pipes = {pipe: number for number, (_, pipe) in self._running.items()}
        ready = wait(list(pipes))[0]
        assert isinstance(ready, Connection)  # noqa: S101 - only pipes are waited for
        number = pipes[ready]
        try:
            return Received(number, ready.recv_bytes().decode())
        except (EOFError, OSError):
            return Received(number, None, self._ended(number))

    def stop(self, worker: int) -> None:
        """End a process."""
        self._ended(worker)

    def close(self) -> None:
        """End all processes."""
        for process, _ in self._running.values():
            process.terminate()
        for number in list(self._running):
            self._ended(number)

    def _ended(self, number: int) -> str:
        """End a process, and return how it ended."""
        process, pipe = self._running.pop(number)
        pipe.close()
        process.join(_SECONDS_TO_END)
        if process.exitcode is None:
            process.kill()
            process.join()
        code = process.exitcode or 0
        process.close()
        if code >= 0:
            return f"ended with status {code}"
        memory = ", as where memory is short" if -code == signal.SIGKILL else ""
        return f"ended by signal {-code}{memory}"


def _work(pipe: Connection, side: Callable[[int], Side], threads: int) -> None:
    """Answer tasks until the run ends."""
    close_to_others()
    worker = side(threads)
    with contextlib.suppress(EOFError, OSError):
        while True:
            for text in worker.answer(pipe.recv_bytes().decode()):
                pipe.send_bytes(text.encode())
