"""`--workers`: a run's models on actors of a Ray cluster, and what a lost actor costs.

The run (`RayTeam`) hands its questions to a process that speaks to Ray (`drive`): Ray ends a
program whose cluster is gone with the status of a red gate. That process gives each actor
(`Worker`) sources, whole, with all that is asked about them at a time. Answers count as they come,
so a lost actor costs what it had not answered yet: that is given to another. Which actor answers,
when, and how often one is lost changes no answer.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import platform
import secrets
import socket
import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from fairgate import __version__
from fairgate.domain.errors import ExitCode, FairGateError, ModelError, UsageError, WorkerError
from fairgate.domain.executions import Execution, GenerationRequest
from fairgate.domain.ports import SILENT, Generator, OptionScorer, Runtime, Workers
from fairgate.domain.wording import harmless, quoted
from fairgate.io.machine import OPTIONAL, describe_environment, libraries_of_answers
from fairgate.systems.execute import answer_fields, answer_from, scores_from
from fairgate.terminal.options import extended

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from fairgate.gate.loaded_policy import LoadedPolicy
    from fairgate.onnx.decoder import OnnxDecoder

T = TypeVar("T")

LOCAL = "local"
"""The address that stands for a cluster of the run's own."""
_MOST_TRIES = 3
"""How often a source is begun whose actor is lost, and how many actors in a row fail to start."""
_MOST_AT_ONCE = 512
"""Most questions that an actor is given at once, unless one source has more."""
_SECONDS_TO_REACH = 5.0
_SECONDS_TO_JOIN = 90.0
_SECONDS_TO_LEAVE = 60.0
_SECONDS_A_LOOK = 0.1
_MOST_NOTICES = 20
"""Most that one task may add: a batch of 1024 is halved ten times."""
_MOST_CHARACTERS = 300
_NEXT = (
    "what was answered is stored: run again to go on, with fewer --workers where memory is short, "
    "or without --workers to see the error in one process"
)


def with_workers(command: click.Command) -> click.Command:
    """Return a command that asks a policy's models with the options of workers."""
    callback: Any = command.callback

    @click.option(
        "--workers",
        type=click.IntRange(1, 1000),
        metavar="N",
        help="Ask models by N actors of a Ray cluster; never changes a result.",
    )
    @click.option(
        "--ray-address",
        metavar="ADDRESS",
        help="Ray's head as HOST:PORT; `local` starts a cluster of its own for the run.",
    )
    def with_workers_(workers: int | None, ray_address: str | None, **options: Any) -> int:
        if workers is None and ray_address is None:
            return int(callback(workers=None, **options))
        if workers is None or ray_address is None:
            raise UsageError(
                "--workers N are actors of a Ray cluster: give it together with --ray-address "
                "HOST:PORT of its head, or --ray-address local for a cluster of this machine. "
                "Without Ray a run is asked in parts (--shard i/n and `fairgate merge`)"
            )
        team = partial(team_for, address=ray_address)
        return int(callback(workers=Workers(count=workers, team=team), **options))

    return extended(command, with_workers_)


def team_for(loaded: LoadedPolicy, runtime: Runtime, address: str) -> RayTeam:
    """Return the workers that a run asks for, none started yet.

    Raises UsageError where they would have nothing to do, Ray is not installed, or the address is
    none.
    """
    from fairgate.systems.catalogue import kind_of
    from fairgate.systems.generator import GeneratorPolicy
    from fairgate.systems.judges import JudgePolicy

    assert runtime.workers is not None  # noqa: S101 - whoever asks for a team has some
    policy = loaded.policy
    judges = policy.judge.generators if isinstance(policy.judge, JudgePolicy) else ()
    if not kind_of(policy.system).capabilities().runs_a_model and not any(
        isinstance(judge, GeneratorPolicy) for judge in judges
    ):
        raise UsageError(
            f"--workers ask models that FairGate runs itself, and {loaded.parsed.path} has none: "
            "its answers are recorded, or asked from outside by one process, so that `budget` "
            "and `concurrency` hold for the whole run. Leave out --workers; more "
            "questions at once are asked with `concurrency`, on several machines with --shard"
        )
    if runtime.device != "cpu":
        raise UsageError(
            f"--workers are for --device cpu, and --device is {runtime.device}: one process keeps "
            "a GPU busy. Leave out one of them; several GPUs take a part each with --shard"
        )
    return RayTeam(Cluster(address, runtime.workers.count, runtime.threads))


# The run's side.


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where actors run, how many, and what each is."""

    address: str
    most: int
    threads: int
    """0: as many as fit."""
    worker: type[Worker] | None = None
    """A class of an importable module; None: `Worker`."""
    seconds_to_begin: float = 120.0
    """How long an actor may take to be placed and started: a busy cluster has room later."""


class RayTeam:
    """Actors that are started when something is asked, and stay until the run ends.

    FairGate is not sent to them: every machine has it installed, in the same version, and the
    models where the run has them.
    """

    def __init__(self, cluster: Cluster) -> None:
        """Take the cluster, which is not joined yet.

        Raises UsageError where Ray is not installed, or the address is none.
        """
        self.cluster = cluster
        self._place = None if cluster.address == LOCAL else _parsed(cluster.address)
        self._driver: tuple[SpawnProcess, Connection] | None = None
        self.notices: list[str] = []
        """Which actors were lost, and what their models say of how they ran. Not part of a
        result."""
        self.machines: list[Mapping[str, str]] = []
        """What each actor says about its libraries and processor."""
        if importlib.util.find_spec("ray") is None:
            raise UsageError(
                "--workers need Ray, which is not installed: pip install 'fairgate[ray]', in the "
                "version that the cluster has. Without Ray a run is asked in parts (--shard i/n "
                "and `fairgate merge`)"
            )

    def generator(self, inner: Generator, model: str) -> SpreadGenerator:
        """Return a model that these actors have, each its own, asked as if it were one."""
        return SpreadGenerator(inner, model, self)

    def ask(
        self, model: str, fingerprint: str, way: str, requests: Sequence[GenerationRequest]
    ) -> Iterator[tuple[int, object]]:
        """Yield `(position in requests, answer or scores as JSON values)`, each once, as they come.

        `model` names it and how it runs, for whoever opens it in an actor; one with another
        `fingerprint` answers nothing. `way` is `generate` or `score`.

        Raises what a model raises in an actor, and WorkerError where actors cannot be started or
        one is lost again and again over the same source.
        """
        if not requests:
            return
        pipe = self._joined()
        is_done = False
        try:
            with contextlib.suppress(OSError):  # it has ended: `_heard` finds its pipe closed
                pipe.send(((model, fingerprint, way), requests))
            while not is_done:
                match self._heard(pipe):
                    case {"position": position, "value": value}:
                        yield position, value
                    case {"machine": machine}:
                        self.machines.append(machine)
                    case {"notice": notice}:
                        if notice not in self.notices:  # several actors say the same
                            self.notices.append(notice)
                    case _:
                        is_done = True
        finally:
            if not is_done:  # an error, or nobody wants the rest: what actors do is of no use
                self.close()

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

    def _joined(self) -> Connection:
        """Return the pipe to the process that has joined the cluster."""
        import multiprocessing

        from fairgate.io.machine import no_interrupts

        if self._driver is not None:
            return self._driver[1]
        if self._place is not None:
            try:  # Ray itself would try for minutes
                socket.create_connection(self._place, _SECONDS_TO_REACH).close()
            except (OSError, UnicodeError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                host, port = self._place
                raise WorkerError(
                    f"--ray-address {quoted(f'{host}:{port}')}: nothing can be reached there "
                    f"({harmless(reason)}); expected the head of a Ray cluster: start one with "
                    "`ray start --head --port=6379`, check name, port and firewall, or take `local`"
                ) from error
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=drive, args=(there, self.cluster))
        try:
            with no_interrupts():
                process.start()
        finally:
            there.close()
        self._driver = process, here
        if not here.poll(_SECONDS_TO_JOIN):
            process.kill()
            raise WorkerError(
                f"--ray-address {quoted(self.cluster.address)}: what is there did not answer as a "
                f"Ray cluster within {_SECONDS_TO_JOIN:.0f} s; expected the port of its head "
                "(6379), and the same versions of Ray and Python as here"
            )
        self._heard(here)
        return here

    def _heard(self, pipe: Connection) -> dict[str, Any]:
        """Return the next message of the process; raise the error that it tells."""
        try:
            message: dict[str, Any] = json.loads(pipe.recv_bytes())
        except (EOFError, OSError) as error:
            raise WorkerError(
                f"--ray-address {quoted(self.cluster.address)}: the connection to the cluster is "
                "lost; answers are stored: run again once it is back, or without --workers"
            ) from error
        if "error" in message:
            kind = {"UsageError": UsageError, "ModelError": ModelError}.get(message["kind"])
            raise (kind or WorkerError)(message["error"])
        return message


def _parsed(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 1 << 16
    if not host or not is_port or "/" in host:
        raise UsageError(
            f"--ray-address is {quoted(address)}; expected HOST:PORT of the cluster's head, as "
            "`ray start --head` prints it (head:6379, no ray://), or `local` for one of its own"
        )
    return host.strip("[]"), int(port)


@dataclass(frozen=True, slots=True)
class SpreadGenerator:
    """The ports `Generator` and `OptionScorer` over the actors of a run.

    An answer depends on its request alone, so it is the same whichever actor gives it.
    """

    inner: Generator
    """The model as it would be asked here; gives the fingerprint alone."""
    model: str
    """Its name for workers."""
    team: RayTeam

    @property
    def fingerprint(self) -> str:
        """Identify the model: who asks it changes no answer."""
        return self.inner.fingerprint

    @property
    def side_by_side(self) -> int:
        """Return how many times as many requests are best scored at once."""
        return self.team.cluster.most

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Execution]]:
        """Yield `(position in requests, answer)` as workers send them. Raises WorkerError."""
        return self._asked("generate", requests, lambda value, _: answer_from(value))

    def score_options(self, requests: Sequence[GenerationRequest]) -> list[list[float]]:
        """Return the log-probability (nats) of each option of each request."""
        scored = self._asked(
            "score", requests, lambda one, request: scores_from(one, len(request.options))
        )
        scores = dict(scored)  # by position: one that is missing is an error, not the next one's
        return [scores[position] for position in range(len(requests))]

    def _asked(
        self,
        way: str,
        requests: Sequence[GenerationRequest],
        read: Callable[[object, GenerationRequest], T | None],
    ) -> Iterator[tuple[int, T]]:
        for position, value in self.team.ask(self.model, self.fingerprint, way, requests):
            answer = read(value, requests[position])
            if answer is None:
                raise WorkerError(
                    "a worker sent no sound answer to a question about source "
                    f"{quoted(requests[position].source)}; expected a text, or a score of every "
                    "option: run again without --workers"
                )
            yield position, answer


# The process that speaks to Ray.


def drive(pipe: Connection, cluster: Cluster) -> None:
    """Join the cluster, and have actors answer what the run asks until it closes the pipe.

    `(model, fingerprint, way), requests` come in, one after the other. JSON goes out: `{joined}`,
    then for what is asked `{position, value}`, `{machine}` and `{notice}`, `{done}` at its end, or
    `{error, kind}`.
    """
    # Ray reports usage to its makers, unless it is told not to before it is imported.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    how: dict[str, Any] = {"address": cluster.address}
    if cluster.address == LOCAL:
        # Ray 2.60 would make one, and leave it in the user's home.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        cores = max(len(os.sched_getaffinity(0)), cluster.most * max(1, cluster.threads))
        how |= {"num_cpus": cores, "include_dashboard": False, "object_store_memory": 128 * 2**20}
    # What Ray prints about a lost machine belongs to no report.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            import ray

            ray.init(**how, logging_level="ERROR", log_to_driver=False)
            actors = _Actors(ray, cluster)
            message: dict[str, object] = {"joined": True}
            while True:
                pipe.send_bytes(json.dumps(message).encode())
                for message in actors.answer(*pipe.recv()):
                    if pipe.poll():  # the run asks nothing before it has its answers: it has left
                        return
                    if message:
                        pipe.send_bytes(json.dumps(message).encode())
                message = {"done": True}
        except Exception as error:  # noqa: BLE001 - whatever Ray raises, OSError among it
            says, kind = str(error), type(error).__name__
            if not isinstance(error, FairGateError):
                says = (
                    f"the Ray cluster at {cluster.address} cannot be used ({_first_line(error)}); "
                    "expected the port of its head (6379), equal versions of Ray and Python, and "
                    "its token where it asks for one (RAY_AUTH_MODE=token, ~/.ray/auth_token)"
                )
            with contextlib.suppress(OSError):  # the run has ended
                pipe.send_bytes(json.dumps({"error": says, "kind": kind}).encode())
        finally:
            # Ends the actors, and the cluster itself where it is the run's.
            with contextlib.suppress(Exception):  # nobody is left to be told
                ray.shutdown()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or ["no reason is known"]
    return harmless(f"{type(error).__name__}: {lines[0][:_MOST_CHARACTERS]}")


_Unit = dict[int, GenerationRequest]
"""What is asked about one source, by position."""


def _by_source(requests: Iterable[tuple[int, GenerationRequest]]) -> Iterable[_Unit]:
    units: dict[str, _Unit] = {}
    for position, request in requests:
        units.setdefault(request.source, {})[position] = request
    return units.values()


def _source(unit: _Unit) -> str:
    return next(iter(unit.values())).source


@dataclass(slots=True, eq=False)
class _Actor:
    """An actor, and what it was given and has not answered."""

    handle: Any
    started: float
    has_begun: bool = False
    """Whether it has ever sent anything."""
    replies: Any = None
    """What it is sending; None: it has nothing to do."""
    left: dict[int, GenerationRequest] = field(default_factory=dict)


class _Actors:
    """The actors of a run: who asks about which source."""

    def __init__(self, ray: Any, cluster: Cluster) -> None:
        self._ray = ray
        self._cluster = cluster
        self._threads = cluster.threads or self._that_fit()
        self._actors: list[_Actor] = []
        self._failed_starts = 0
        self._waiting: deque[_Unit] = deque()
        self._tries: Counter[str] = Counter()
        """How often an actor was lost over a source, which is asked alone then."""

    def answer(
        self, asks: tuple[str, str, str], requests: Sequence[GenerationRequest]
    ) -> Iterator[dict[str, object]]:
        """Yield what the run is told, and nothing (an empty dict) while all wait."""
        self._waiting, self._tries = deque(_by_source(enumerate(requests))), Counter()
        while self._waiting or any(actor_asked.replies is not None for actor_asked in self._actors):
            self._hand_out(asks)
            busy = [actor_asked for actor_asked in self._actors if actor_asked.replies is not None]
            replies = [actor_asked.replies for actor_asked in busy]
            ready, _ = self._ray.wait(replies, num_returns=1, timeout=_SECONDS_A_LOOK)
            for actor in busy:
                if any(actor.replies is reply for reply in ready):
                    yield from self._next(actor)
            patience = self._cluster.seconds_to_begin
            latest = time.monotonic() - patience
            late = [
                actor_asked
                for actor_asked in busy
                if not actor_asked.has_begun and actor_asked.started < latest
            ]
            if late:
                raise WorkerError(
                    f"{len(late)} of {self._cluster.most} Ray actors have not begun after "
                    f"{patience:.0f} s; each waits for {self._threads} free CPUs of one machine, "
                    f"and the cluster has {len(self._machines())} machines: lower --workers or "
                    "--threads, wait until it is free, or start what it lost (`ray status`)"
                )
            yield {}

    def _hand_out(self, asks: tuple[str, str, str]) -> None:
        idle = [actor for actor in self._actors if actor.replies is None]
        room = min(self._cluster.most - len(self._actors), len(self._waiting) - len(idle))
        for _ in range(room):
            kind = self._ray.remote(self._cluster.worker or Worker)
            placed = kind.options(num_cpus=self._threads, max_restarts=0)
            idle.append(_Actor(placed.remote(self._threads), time.monotonic()))
            self._actors.append(idle[-1])
        while idle and self._waiting:
            actor = idle.pop()
            actor.left = self._share()
            method = actor.handle.answer.options(num_returns="streaming")
            actor.replies = method.remote(*asks, dict(actor.left))

    def _share(self) -> _Unit:
        """Take what one actor is given: large shares first, small ones towards the end."""
        left, most = sum(map(len, self._waiting)), self._cluster.most
        aim = min(_MOST_AT_ONCE, max(min(16, math.ceil(left / most)), left // (2 * most)))
        taken = dict(self._waiting.popleft())
        is_alone = self._tries[_source(taken)]
        while self._waiting and not is_alone and not self._tries[_source(self._waiting[0])]:
            if len(taken) + len(self._waiting[0]) > aim:
                break
            taken |= self._waiting.popleft()
        return taken

    def _next(self, actor: _Actor) -> Iterator[dict[str, object]]:
        """Yield what the run is told of an actor's next reply, or of its loss."""
        try:
            reply = self._ray.get(next(actor.replies))
        except self._ray.exceptions.RayError as error:
            reply = {"lost": _first_line(error)}
        except StopIteration:
            reply = None
        match reply:
            case {"machine": dict(found)} if all(
                isinstance(library, str) for library in found.values()
            ):
                actor.has_begun, self._failed_starts = True, 0
                yield {"machine": found}
            case {"position": int(position), "value": value} if position in actor.left:
                del actor.left[position]
                yield {"position": position, "value": value}
            case {"done": list(notices)} if not actor.left:
                actor.replies = None
                for text in notices[:_MOST_NOTICES]:
                    yield {"notice": harmless(str(text)[:_MOST_CHARACTERS])}
            case {"lost": str(why)}:
                self._ray.kill(actor.handle)
                yield self._lose(actor, why)
            case {"failed": str(why), "is_usage": bool(is_usage)}:
                raise (UsageError if is_usage else ModelError)(why)
            case _:
                raise WorkerError(
                    f"a worker sent {quoted(str(reply))}, which answers no question that it was "
                    f"asked, or ended before all were answered ({len(actor.left):,} are left); "
                    f"expected FairGate of the same version in every worker; {_NEXT}"
                )

    def _lose(self, actor: _Actor, why: str) -> dict[str, object]:
        """Give what a lost actor had not answered to others. Raises WorkerError after some."""
        self._actors.remove(actor)
        units = list(_by_source(actor.left.items()))
        if not actor.has_begun:
            self._failed_starts += 1
            if self._failed_starts >= _MOST_TRIES:
                raise WorkerError(
                    f"{self._failed_starts} workers in a row ended before their first answer "
                    f"({why}); expected that they can be started; {_NEXT}"
                )
        for source in map(_source, units):
            self._tries[source] += 1
            if self._tries[source] >= _MOST_TRIES:
                raise WorkerError(
                    f"the worker that was asked about source {quoted(source)} was lost "
                    f"{_MOST_TRIES} times, at last: {why}; {_NEXT}"
                )
        self._waiting.extendleft(reversed(units))
        many = "1 source" if len(units) == 1 else f"{len(units):,} sources"
        return {
            "notice": f"a worker was lost ({why}); {many} that it had not answered whole were "
            "given to others, and no answer changes by that"
        }

    def _that_fit(self) -> int:
        """Return the most threads with which all actors have a place."""
        cpus = [int(machine["Resources"].get("CPU", 0)) for machine in self._machines()]
        for threads in range(max(cpus, default=0), 0, -1):
            if sum(number // threads for number in cpus) >= self._cluster.most:
                return threads
        raise WorkerError(
            f"the Ray cluster has {sum(cpus)} CPUs on {len(cpus)} machines, too few for "
            f"{self._cluster.most} workers: lower --workers"
        )

    def _machines(self) -> list[Any]:
        return [node for node in self._ray.nodes() if node["Alive"]]


# An actor.


class Worker:
    """Answers tasks one after the other; keeps every model that it has opened."""

    def __init__(self, threads: int) -> None:
        """Take the threads of its models."""
        self.threads = threads
        self._models: dict[str, OnnxDecoder] = {}
        self._reported: Counter[str] = Counter()
        """How many notices of each model the run has."""
        self._has_greeted = False

    def answer(
        self, name: str, fingerprint: str, way: str, requests: Mapping[int, GenerationRequest]
    ) -> Iterator[dict[str, object]]:
        """Yield replies to questions by their position; the last is `done`, `failed` or `lost`.

        The first one ever is `machine`. Raises nothing but what ends the process.
        """
        try:
            if not self._has_greeted:
                self._has_greeted = True
                yield {"machine": self.machine()}
            model = self._model(name, fingerprint)
            positions, questions = list(requests), list(requests.values())
            if way == "generate":
                for number, answer in model.generate(questions):
                    yield {"position": positions[number], "value": answer_fields(answer)}
            else:
                scores = cast("OptionScorer", model).score_options(questions)
                for position, value in zip(positions, scores, strict=True):
                    yield {"position": position, "value": value}
            notices = list(model.notices)[self._reported[name] :]
            self._reported[name] += len(notices)
            yield {"done": notices}
        except GeneratorExit:
            raise
        except FairGateError as error:
            yield {"failed": str(error), "is_usage": error.exit_code == ExitCode.USAGE}
        except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
            # What it was and where: no values of variables, no folders.
            frames = traceback.extract_tb(error.__traceback__)[-3:]
            places = (
                f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames
            )
            what = f"{type(error).__name__}: {str(error)[:200]}; at {', '.join(places)}"
            yield {"lost": harmless(what)}

    def machine(self) -> Mapping[str, str]:
        """Return this machine's libraries and processor."""
        return describe_environment("cpu")

    def opened(self, name: str) -> OnnxDecoder:
        """Open what `named_for_workers` names: a folder of a model, and never code."""
        from fairgate.systems.generator import GeneratorPolicy, open_here
        from fairgate.systems.resources import Resources

        definition = json.loads(name)
        _require_alike({"fairgate": definition["fairgate"], **definition.get("libraries", {})})
        how = definition["runtime"]
        root, cache = Path(how.pop("root")), Path(how.pop("cache"))
        runtime = Runtime(**how, root=root, cache=cache, threads=self.threads)
        chosen = GeneratorPolicy.model_validate(definition["generator"])
        return open_here(chosen, Resources(runtime, SILENT))

    def _model(self, name: str, fingerprint: str) -> OnnxDecoder:
        if name not in self._models:
            self._models[name] = self.opened(name)
        model = self._models[name]
        if model.fingerprint != fingerprint:
            raise ModelError(
                f"the worker on {platform.node()} has the model {quoted(model.fingerprint)}, this "
                f"run has {quoted(fingerprint)}; expected the same files everywhere, on the same "
                "build of FairGate: copy them, or name a folder that all machines share"
            )
        return model


def _require_alike(run: Mapping[str, str]) -> None:
    """Raise UsageError where what computes answers has another version here than in the run.

    What is optional is compared where both have it: a model that needs it says so itself. What else
    decides an answer is in the model's fingerprint. The processor is not compared: machines that
    are not alike are named in the record.
    """
    here = {"fairgate": __version__, **libraries_of_answers()}
    on_one_side = here.keys() ^ run.keys()
    differing = [
        f"{name} {here.get(name, 'is not installed')} (the run: {run.get(name, 'not installed')})"
        for name in sorted({*here, *run} - (OPTIONAL & on_one_side))
        if here.get(name) != run.get(name)
    ]
    if differing:
        raise UsageError(
            f"the worker on {platform.node()} has other versions than the run: "
            f"{', '.join(differing)}; answers may depend on them: install the same versions on "
            "every machine"
        )
