"""Ask models in several workers at once: who asks about which source, and what a lost one costs.

A source, with all that is asked about it at a time, is given to a worker whole. Answers count as
they come, so a lost worker costs what it had not answered yet: that is given to another. Which
worker answers, when, and how often one is lost changes no answer.
"""

from __future__ import annotations

import json
import math
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Protocol

from fairgate.domain.errors import ModelError, UsageError, WorkerError
from fairgate.domain.executions import Answer, GenerationRequest, Stop
from fairgate.domain.json_text import flat, read_json
from fairgate.domain.ports import Generator
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import harmless, quoted
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.systems.catalogue import kind_of
from fairgate.systems.execute import answer_from, scores_from

MOST_TRIES = 3
"""How often a source is begun whose worker is lost, and how many workers in a row fail to start."""
_MOST_AT_ONCE = 512
"""Most questions that a worker is given at once, unless one source has more."""
_FEWEST_AT_ONCE = 16
_MOST_NOTICES = 20
"""Most that one task may add: a batch of 1024 is halved ten times."""
_MOST_CHARACTERS = 300
_NEXT = (
    "what was answered is stored: run again to go on, with fewer --workers where memory is short, "
    "or without --workers to see the error in one process"
)


@dataclass(frozen=True, slots=True)
class Received:
    """What came from a worker: a text, or why it is lost."""

    worker: int
    text: str | None
    lost: str = ""
    """How it ended, where there is no text: `ended by signal 9`."""


class Executor(Protocol):
    """Starts workers and carries texts to and from them: processes here, or actors elsewhere."""

    @property
    def most(self) -> int:
        """How many workers there are at once."""
        ...

    def start(self) -> int:
        """Start a worker and return its number, which no other has. Raises WorkerError."""
        ...

    def send(self, worker: int, task: str) -> None:
        """Give a task to a worker that has none; one that is lost is reported by `receive`."""
        ...

    def receive(self) -> Received:
        """Wait for a text of any worker that has a task, or until one is lost.

        Texts of one worker come in their order. Raises WorkerError.
        """
        ...

    def stop(self, worker: int) -> None:
        """End a worker, whatever it does."""
        ...

    def close(self) -> None:
        """End all workers; a later `start` is allowed."""
        ...


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is asked about one source: positions of its questions."""

    source: str
    positions: tuple[int, ...]
    is_suspect: bool = False
    """Whether a worker was lost over it: it is asked alone then."""


@dataclass(slots=True)
class _Task:
    units: Sequence[_Unit]
    left: set[int]

    def unfinished(self) -> Iterator[_Unit]:
        for unit in self.units:
            positions = tuple(place for place in unit.positions if place in self.left)
            if positions:
                yield _Unit(unit.source, positions, is_suspect=True)


class Way(StrEnum):
    """How a model is asked."""

    GENERATE = "generate"
    SCORE = "score"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """Which model is asked, and how."""

    model: str
    """Names the model and how it runs, for whoever opens it in a worker."""
    fingerprint: str
    """That of the model here: a worker with another one answers nothing."""
    way: Way


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One text of a worker: exactly one of its parts is set."""

    machine: Mapping[str, str] | None = None
    position: int | None = None
    value: object = None
    """With `position`: an answer's fields, or scores."""
    failed: str | None = None
    """An error that another worker would have, too, in words."""
    is_usage: bool = False
    crashed: str | None = None
    """An error that nobody expected."""
    is_done: bool = False
    notices: Sequence[str] = ()
    """With `is_done`: what users should know of how the model ran, each once."""


def task_to(asks: Asks, requests: Mapping[int, GenerationRequest]) -> str:
    """Return the text of a task: questions by their position."""
    rows = [
        {**flat(request), "stop": None if request.stop is None else asdict(request.stop)}
        for request in requests.values()
    ]
    return json.dumps({**asdict(asks), "positions": list(requests), "requests": rows})


def task_from(text: str) -> tuple[Asks, dict[int, GenerationRequest]]:
    """Return a task that the run has sent."""
    found = json.loads(text)
    asks = Asks(model=found["model"], fingerprint=found["fingerprint"], way=Way(found["way"]))
    rows = [_request(row) for row in found["requests"]]
    return asks, dict(zip(found["positions"], rows, strict=True))


def _request(row: dict[str, object]) -> GenerationRequest:
    stop = row["stop"]
    if isinstance(stop, dict):
        row["stop"] = Stop(**{**stop, "phrases": tuple(stop["phrases"])})
    lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
    return GenerationRequest(**{**row, **lists})  # type: ignore[arg-type]


def reply_to(reply: Reply) -> str:
    """Return the text of a reply."""
    return json.dumps(flat(reply))


def reply_from(text: str) -> Reply:
    """Return what a worker sent. Raises WorkerError where it is no reply."""
    try:
        found = read_json(text, strict=False)
        reply = Reply(**found)
    except (ValueError, TypeError) as error:
        raise _unreadable(text) from error
    if not _is_sound(reply):
        raise _unreadable(text)
    return reply


def _is_sound(reply: Reply) -> bool:
    machine, position = reply.machine, reply.position
    is_table = isinstance(machine, dict) and all(isinstance(one, str) for one in machine.values())
    return (
        (machine is None or is_table)
        and isinstance(reply.notices, list | tuple)
        and all(isinstance(one, str) for one in reply.notices)
        and (position is None or type(position) is int)
        and all(part is None or isinstance(part, str) for part in (reply.failed, reply.crashed))
    )


def _unreadable(text: str) -> WorkerError:
    return WorkerError(
        f"a worker sent {quoted(text)}, which is no reply; expected FairGate of the same version "
        "in every worker"
    )


@dataclass(slots=True)
class _Wanted:
    """What is asked for at a time, and how far it is."""

    asks: Asks
    requests: Sequence[GenerationRequest]
    waiting: deque[_Unit]
    tries: Counter[str] = field(default_factory=Counter)

    def next_units(self, workers: int) -> list[_Unit]:
        """Take what one worker is given: large shares first, small ones towards the end."""
        left = sum(len(unit.positions) for unit in self.waiting)
        fewest = min(_FEWEST_AT_ONCE, math.ceil(left / workers))
        aim = min(_MOST_AT_ONCE, max(fewest, left // (2 * workers)))
        taken = [self.waiting.popleft()]
        size = len(taken[0].positions)
        while self.waiting and not (taken[0].is_suspect or self.waiting[0].is_suspect):
            size += len(self.waiting[0].positions)
            if size > aim:
                break
            taken.append(self.waiting.popleft())
        return taken


class Team:
    """Workers that are started when something is asked, and stay until the run ends."""

    def __init__(self, executor: Executor) -> None:
        """Take what starts workers; none is started yet."""
        self._executor = executor
        self._idle: list[int] = []
        self._busy: dict[int, _Task] = {}
        self._greeted: set[int] = set()
        self._failed_starts = 0
        self.notices: list[str] = []
        """Which workers were lost, and what their models say of how they ran. Not part of a
        result."""
        self.machines: list[Mapping[str, str]] = []
        """What each worker says about its libraries and processor."""

    @property
    def most(self) -> int:
        """Return how many workers there are at once."""
        return self._executor.most

    def generator(self, inner: Generator, model: str) -> SpreadGenerator:
        """Return a model that these workers have, each its own, asked as if it were one."""
        return SpreadGenerator(inner, model, self)

    def close(self) -> None:
        """End all workers."""
        self._idle, self._busy = [], {}
        self._executor.close()

    def ask(
        self, asks: Asks, requests: Sequence[GenerationRequest]
    ) -> Iterator[tuple[int, object]]:
        """Yield `(position in requests, answer or scores as JSON values)`, each once, as they come.

        Raises what a model raises in a worker, and WorkerError where workers cannot be started or
        one is lost again and again over the same source.
        """
        wanted = _Wanted(asks, requests, deque(_units(requests)))
        try:
            while wanted.waiting or self._busy:
                self._hand_out(wanted)
                received = self._executor.receive()
                if received.text is None:
                    self._lose(received.worker, received.lost, wanted)
                else:
                    yield from self._read(received.worker, reply_from(received.text), wanted)
        finally:
            if self._busy:  # an error, or nobody wants the rest: what they do is of no use
                self.close()

    def _hand_out(self, wanted: _Wanted) -> None:
        room = self._executor.most - len(self._busy) - len(self._idle)
        new = min(room, len(wanted.waiting) - len(self._idle))
        self._idle += [self._executor.start() for _ in range(new)]
        while self._idle and wanted.waiting:
            units = wanted.next_units(self._executor.most)
            worker = self._idle.pop()
            asked = [place for unit in units for place in unit.positions]
            self._busy[worker] = _Task(units, set(asked))
            self._executor.send(
                worker, task_to(wanted.asks, {place: wanted.requests[place] for place in asked})
            )

    def _read(self, worker: int, reply: Reply, wanted: _Wanted) -> Iterator[tuple[int, object]]:
        task = self._busy[worker]
        if reply.machine is not None:
            self._greeted.add(worker)
            self._failed_starts = 0
            self.machines.append(reply.machine)
        elif reply.failed is not None:
            kind = UsageError if reply.is_usage else ModelError
            raise kind(reply.failed)
        elif reply.crashed is not None:
            self._executor.stop(worker)
            self._lose(worker, reply.crashed, wanted)
        elif reply.position is not None and reply.position in task.left:
            task.left.remove(reply.position)
            yield reply.position, reply.value
        elif reply.is_done and not task.left:
            del self._busy[worker]
            self._idle.append(worker)
            self._note(reply.notices)
        else:
            raise WorkerError(
                "a worker sent an answer to a question that it was not asked, or ended before all "
                f"were answered ({len(task.left):,} are left); {_NEXT}"
            )

    def _note(self, notices: Sequence[str]) -> None:
        """Keep what models of workers say of how they ran: several say the same."""
        texts = [harmless(text[:_MOST_CHARACTERS]) for text in notices[:_MOST_NOTICES]]
        self.notices += [text for text in dict.fromkeys(texts) if text not in self.notices]

    def _lose(self, worker: int, why: str, wanted: _Wanted) -> None:
        """Give what a lost worker had not answered to others. Raises WorkerError after some."""
        why = harmless(why)
        units = list(self._busy.pop(worker).unfinished())
        if worker not in self._greeted:
            self._failed_starts += 1
            if self._failed_starts >= MOST_TRIES:
                raise WorkerError(
                    f"{self._failed_starts} workers in a row ended before their first answer "
                    f"({why}); expected that they can be started; {_NEXT}"
                )
        for unit in units:
            wanted.tries[unit.source] += 1
            if wanted.tries[unit.source] >= MOST_TRIES:
                raise WorkerError(
                    f"the worker that was asked about source {quoted(unit.source)} was lost "
                    f"{MOST_TRIES} times, at last: {why}; {_NEXT}"
                )
        wanted.waiting.extendleft(reversed(units))
        many = "1 source" if len(units) == 1 else f"{len(units):,} sources"
        self.notices.append(
            f"a worker was lost ({why}); {many} that it had not answered whole were given to "
            "others, and no answer changes by that"
        )


class SpreadGenerator:
    """The ports `Generator` and `OptionScorer` over the workers of a run.

    An answer depends on its request alone, so it is the same whichever worker gives it.
    """

    def __init__(self, inner: Generator, model: str, team: Team) -> None:
        """Take the model as it would be asked here, its name for workers, and the workers.

        `inner` gives the fingerprint alone.
        """
        self._inner = inner
        self._model = model
        self._team = team

    @property
    def fingerprint(self) -> str:
        """Identify the model: who asks it changes no answer."""
        return self._inner.fingerprint

    @property
    def side_by_side(self) -> int:
        """Return how many times as many requests are best scored at once."""
        return self._team.most

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Answer]]:
        """Yield `(position in requests, answer)` as workers send them. Raises WorkerError."""
        for position, value in self._team.ask(self._asks(Way.GENERATE), requests):
            answer = answer_from(value)
            if answer is None:
                raise _unsound(requests[position])
            yield position, answer

    def score_options(self, requests: Sequence[GenerationRequest]) -> list[list[float]]:
        """Return the log-probability (nats) of each option of each request."""
        found: dict[int, list[float]] = {}
        for position, value in self._team.ask(self._asks(Way.SCORE), requests):
            scores = scores_from(value, len(requests[position].options))
            if scores is None:
                raise _unsound(requests[position])
            found[position] = scores
        return [found[position] for position in range(len(requests))]

    def _asks(self, way: Way) -> Asks:
        return Asks(model=self._model, fingerprint=self.fingerprint, way=way)


def _unsound(request: GenerationRequest) -> WorkerError:
    return WorkerError(
        f"a worker sent no sound answer to a question about source {quoted(request.source)}; "
        "expected a text, or a score of every option: run again without --workers"
    )


def _units(requests: Sequence[GenerationRequest]) -> list[_Unit]:
    """Return the questions by the source that asks first, in the order of the first question."""
    places: dict[str, list[int]] = {}
    for position, request in enumerate(requests):
        places.setdefault(request.source, []).append(position)
    return [_Unit(source, tuple(positions)) for source, positions in places.items()]


def team_for(loaded: LoadedPolicy, runtime: Runtime) -> Team | None:
    """Return the workers that a run asks for, none started yet; None where it asks for none.

    Raises UsageError where they would have nothing to do.
    """
    if runtime.workers is None:
        return None
    if not _runs_a_model(loaded):
        raise UsageError(
            f"--workers ask models that FairGate runs itself, and {loaded.parsed.path} has none: "
            "its answers are recorded, or asked from outside by one process, so that `budget`, "
            "`concurrency` and `per_second` hold for the whole run. Leave out --workers; more "
            "questions at once are asked with `concurrency`, on several machines with --shard"
        )
    if runtime.device != "cpu":
        raise UsageError(
            f"--workers are for --device cpu, and --device is {runtime.device}: one process keeps "
            "a GPU busy. Leave out one of them; several GPUs take a part of the run each with "
            "--shard"
        )
    return Team(_executor(runtime))


def _runs_a_model(loaded: LoadedPolicy) -> bool:
    from fairgate.systems.generator import GeneratorPolicy
    from fairgate.systems.judges import JudgePolicy

    policy = loaded.policy
    judges = policy.judge.generators if isinstance(policy.judge, JudgePolicy) else ()
    return kind_of(policy.system).runs_a_model(policy.system) or any(
        isinstance(one, GeneratorPolicy) for one in judges
    )


def _executor(runtime: Runtime) -> Executor:
    chosen = runtime.workers
    assert chosen is not None  # noqa: S101 - asked before
    from fairgate.features.ray.worker_side import worker_side

    if chosen.ray_address is not None:
        from fairgate.features.ray.executors import RayActors

        return RayActors(chosen.count, runtime.threads, worker_side, chosen.ray_address)
    from fairgate.features.ray.executors import WorkerProcesses

    return WorkerProcesses(chosen.count, runtime.threads, worker_side)
