"""The process that speaks to a Ray cluster for a run: it starts actors and passes texts on."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from fairgate.io.spawn import Side

LOCAL = "local"
"""The address that stands for a cluster of the run's own."""
_SECONDS_A_LOOK = 0.1
_OBJECTS_BYTES = 128 * 2**20
_MOST_CHARACTERS = 300


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
