"""Workers as the run sees them: actors of a Ray cluster, or processes of this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import multiprocessing
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from typing import Any

from fairgate.domain.errors import UsageError, WorkerError
from fairgate.domain.wording import harmless, quoted
from fairgate.features.ray.workers import Received
from fairgate.io.processes import Side, close_to_others, no_interrupts

_SECONDS_TO_REACH = 5.0
_SECONDS_TO_JOIN = 90.0
_SECONDS_TO_LEAVE = 60.0
LOCAL = "local"
"""The address that stands for a cluster of the run's own."""
_SECONDS_A_LOOK = 0.1
_OBJECTS_BYTES = 128 * 2**20
_MOST_CHARACTERS = 300
_SECONDS_TO_END = 5.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where actors run, how many, and what each does."""

    address: str
    most: int
    threads: int
    """0: as many as fit."""
    side: Callable[[int], Side]
    seconds_to_begin: float = 120.0
    """How long an actor may take to be placed and started: a busy cluster has room later."""


class _Actor:
    """A worker in the cluster."""

    def __init__(self, side: Callable[[int], Side], threads: int) -> None:
        self._side = side(threads)

    def answer(self, task: str) -> Iterator[str]:
        yield from self._side.answer(task)


class _Refused(Exception):  # noqa: N818 - a sentence for the run
    """The cluster cannot do what the run needs."""


class _RunEnded(Exception):  # noqa: N818 - no error: the driver ends with its run
    """The run has closed its end of the pipe."""


class _Run:
    """The run, as the driver speaks with it.

    What it says is read at once, on a thread: were it read between two messages to the run, both
    could wait for ever for the other to read.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._heard: SimpleQueue[bytes | None] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._heard.put(self._pipe.recv_bytes())
        self._heard.put(None)

    @property
    def has_spoken(self) -> bool:
        """Return whether `hear` returns at once."""
        return not self._heard.empty()

    def hear(self) -> dict[str, Any]:
        """Wait for the next message."""
        found = self._heard.get()
        if found is None:
            raise _RunEnded
        message: dict[str, Any] = json.loads(found)
        return message

    def tell(self, **message: object) -> None:
        """Send a message."""
        try:
            self._pipe.send_bytes(json.dumps(message).encode())
        except OSError as error:
            raise _RunEnded from error


def drive(pipe: Connection, cluster: Cluster) -> None:
    """Join the cluster, and pass texts on until the run closes the pipe.

    Messages are JSON: `{start}`, `{worker, task}` and `{stop}` come in; `{joined}`, then
    `{worker, text}` and `{worker, lost}` go out, or `{error}` at the end.
    """
    # Ray reports usage to its makers, unless it is told not to before it is imported.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if cluster.address == LOCAL:
        # Ray 2.60 would make one, and leave it in the user's home.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    run = _Run(pipe)
    # What Ray prints about a lost machine belongs to no report.
    with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(_RunEnded):
        try:
            import ray

            _join(ray, cluster)
            actors = _Actors(ray, cluster)
            run.tell(joined=True)
            actors.serve(run)
        except _RunEnded:
            raise
        except _Refused as error:
            run.tell(error=str(error))
        except Exception as error:  # noqa: BLE001 - whatever Ray raises, OSError among it
            reason = f"{type(error).__name__}: {_first_line(error)}"
            run.tell(
                error=f"the Ray cluster at {cluster.address} cannot be used ({reason}); expected "
                "the port of its head (6379), the same versions of Ray and Python here as there, "
                "and its token where it asks for one (RAY_AUTH_MODE=token, ~/.ray/auth_token)",
            )
        finally:
            _leave()


def _join(ray: Any, cluster: Cluster) -> None:
    how: dict[str, Any] = {"address": cluster.address}
    if cluster.address == LOCAL:
        cores = max(len(os.sched_getaffinity(0)), cluster.most * max(1, cluster.threads))
        how |= {"num_cpus": cores, "include_dashboard": False}
        how |= {"object_store_memory": _OBJECTS_BYTES}
    ray.init(**how, logging_level="ERROR", log_to_driver=False)


def _leave() -> None:
    """Leave the cluster, which ends the actors, and the cluster itself where it is the run's."""
    with contextlib.suppress(Exception):  # nobody is left to be told
        import ray

        ray.shutdown()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or ["no reason is known"]
    return lines[0][:_MOST_CHARACTERS]


class _Actors:
    """The actors of a run, and what they are sending."""

    def __init__(self, ray: Any, cluster: Cluster) -> None:
        self._ray = ray
        self._most = cluster.most
        self._side = cluster.side
        self._patience = cluster.seconds_to_begin
        self._threads = cluster.threads or self._that_fit()
        self._actors: dict[int, Any] = {}
        self._replies: dict[int, Any] = {}
        self._silent_since: dict[int, float] = {}
        """Actors that have a task and have never sent anything, and since when."""

    def serve(self, run: _Run) -> None:
        """Do what the run says. Raises _RunEnded when it has ended."""
        while True:
            # With nothing to wait for, the run alone can go on.
            while run.has_spoken or not self._replies:
                self._obey(**run.hear())
            replies = list(self._replies.items())
            ready, _ = self._ray.wait(
                [reply for _, reply in replies], num_returns=1, timeout=_SECONDS_A_LOOK
            )
            for worker, reply in replies:
                if any(reply is one for one in ready):
                    self._pass_on(worker, run)
            self._require_beginning()

    def _obey(self, *, start: int = 0, worker: int = 0, task: str = "", stop: int = 0) -> None:
        if start:
            kind = self._ray.remote(_Actor).options(num_cpus=self._threads, max_restarts=0)
            self._actors[start] = kind.remote(self._side, self._threads)
            self._silent_since[start] = time.monotonic()
        elif stop:
            self._ray.kill(self._actors[stop])
            self._forget(stop)
        elif worker in self._actors:
            method = self._actors[worker].answer.options(num_returns="streaming")
            self._replies[worker] = method.remote(task)

    def _pass_on(self, worker: int, run: _Run) -> None:
        try:
            text = self._ray.get(next(self._replies[worker]))
        except StopIteration:  # all of its task is sent
            del self._replies[worker]
        except self._ray.exceptions.RayError as error:
            self._forget(worker)
            run.tell(worker=worker, lost=f"{type(error).__name__}: {_first_line(error)}")
        else:
            self._silent_since.pop(worker, None)
            run.tell(worker=worker, text=text)

    def _forget(self, worker: int) -> None:
        for table in (self._actors, self._replies, self._silent_since):
            table.pop(worker, None)

    def _require_beginning(self) -> None:
        """Raise where an actor has waited too long for a place."""
        now = time.monotonic()
        waiting = [n for n in self._replies if n in self._silent_since]
        late = [n for n in waiting if now - self._silent_since[n] > self._patience]
        if late:
            raise _Refused(
                f"{len(late)} of {self._most} Ray actors have not begun after "
                f"{self._patience:.0f} s; each waits for {self._threads} free CPUs of one machine, "
                f"and the cluster has {len(self._machines())} machines: lower --workers or "
                "--threads, wait until it is free, or start again what it has lost (`ray status`)"
            )

    def _that_fit(self) -> int:
        """Return the most threads with which all actors have a place."""
        machines = self._machines()
        cpus = [int(one["Resources"].get("CPU", 0)) for one in machines]
        for threads in range(max(cpus, default=0), 0, -1):
            if sum(each // threads for each in cpus) >= self._most:
                return threads
        raise _Refused(
            f"the Ray cluster has {sum(cpus)} CPUs on {len(cpus)} machines, too few for "
            f"{self._most} workers: lower --workers"
        )

    def _machines(self) -> list[Any]:
        return [one for one in self._ray.nodes() if one["Alive"]]


class RayActors:
    """A port `Executor`: actors on the machines of a cluster, each with models of its own.

    Texts alone go between them and the run. FairGate is not sent along: every machine has it
    installed, in the same version, and the models where the run has them. Ray ends a program whose
    cluster is gone with the status of a red gate; so a process of its own speaks to it.
    """

    def __init__(self, most: int, threads: int, side: Callable[[int], Side], address: str) -> None:
        """Take how many actors, the threads of each (0: as many as fit), and the cluster's address.

        `side` is called with the threads in each: a function of an importable module. Raises
        UsageError where Ray is not installed, or the address is none.
        """
        self._most = most
        self._place = None if address == LOCAL else _parsed(address)
        self._cluster = Cluster(address, most, threads, side)
        self._numbers = itertools.count(1)
        self._driver: tuple[SpawnProcess, Connection] | None = None
        if importlib.util.find_spec("ray") is None:
            raise UsageError(
                "--executor ray needs Ray, which is not installed: pip install 'fairgate[ray]', "
                "in the version that the cluster has"
            )

    @property
    def most(self) -> int:
        """Return how many actors there are at once."""
        return self._most

    def start(self) -> int:
        """Start an actor. Raises WorkerError where the cluster is not reached, or is too small."""
        if self._driver is None:
            self._join()
        number = next(self._numbers)
        self._tell(start=number)
        return number

    def send(self, worker: int, task: str) -> None:
        """Give an actor a task."""
        self._tell(worker=worker, task=task)

    def receive(self) -> Received:
        """Return the next text or loss. Raises WorkerError where an actor never begins."""
        found = self._heard()
        return Received(found["worker"], found.get("text"), found.get("lost", ""))

    def stop(self, worker: int) -> None:
        """End an actor."""
        self._tell(stop=worker)

    def close(self) -> None:
        """End all actors and leave the cluster; one that was started for the run ends with it."""
        if self._driver is None:
            return
        (process, pipe), self._driver = self._driver, None
        pipe.close()
        process.join(_SECONDS_TO_LEAVE)
        if process.exitcode is None:
            process.kill()
            process.join()
        process.close()

    def _join(self) -> None:
        if self._place is not None:
            _require_reachable(*self._place)
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=drive, args=(there, self._cluster))
        try:
            with no_interrupts():
                process.start()
        finally:
            there.close()
        self._driver = process, here
        if not here.poll(_SECONDS_TO_JOIN):
            process.kill()
            raise WorkerError(
                f"--ray-address {quoted(self._cluster.address)}: what is there did not answer as a "
                f"Ray cluster within {_SECONDS_TO_JOIN:.0f} s; expected the port of its head "
                "(6379), and the same versions of Ray and Python as here"
            )
        self._heard()

    def _tell(self, **message: object) -> None:
        if self._driver is not None:
            with contextlib.suppress(OSError):  # it has ended: `receive` finds its pipe closed
                self._driver[1].send_bytes(json.dumps(message).encode())

    def _heard(self) -> dict[str, Any]:
        assert self._driver is not None  # noqa: S101 - nobody listens before an actor is started
        try:
            found: dict[str, Any] = json.loads(self._driver[1].recv_bytes())
        except (EOFError, OSError) as error:
            raise WorkerError(
                f"--ray-address {quoted(self._cluster.address)}: the connection to the cluster is "
                "lost; what was answered is stored: run again once it is back, or without "
                "--executor ray"
            ) from error
        if "error" in found:
            raise WorkerError(harmless(found["error"]))
        return found


def _parsed(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 1 << 16
    if not host or not is_port or "/" in host:
        raise UsageError(
            f"--ray-address is {quoted(address)}; expected HOST:PORT of the cluster's head, as "
            "`ray start --head` prints it (head:6379, no ray://), or `local` for a cluster of this "
            "run's own"
        )
    return host.strip("[]"), int(port)


def _require_reachable(host: str, port: int) -> None:
    """Raise WorkerError where nothing listens: Ray itself would try for minutes."""
    try:
        socket.create_connection((host, port), _SECONDS_TO_REACH).close()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise WorkerError(
            f"--ray-address {quoted(f'{host}:{port}')}: nothing can be reached there "
            f"({harmless(reason)}); expected the head of a Ray cluster: start one with "
            "`ray start --head --port=6379`, check name, port and firewall, or take `local`"
        ) from error


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
