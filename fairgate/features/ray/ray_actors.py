"""Workers that are actors of a Ray cluster, as the run sees them."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import multiprocessing
import socket
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from fairgate.domain.errors import UsageError, WorkerError
from fairgate.domain.wording import harmless, quoted
from fairgate.features.ray.ray_driver import LOCAL, Cluster, drive
from fairgate.features.ray.workers import Received
from fairgate.io.spawn import Side, no_interrupts

_SECONDS_TO_REACH = 5.0
_SECONDS_TO_JOIN = 90.0
_SECONDS_TO_LEAVE = 60.0


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
