"""Ask models in several workers at once: who asks about which source, and what a lost one costs.

A source, with all that is asked about it at a time, is given to a worker whole. Answers count as
they come, so a lost worker costs what it had not answered yet: that is given to another. Which
worker answers, when, and how often one is lost changes no answer.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fairgate.domain.errors import ModelError, UsageError, WorkerError
from fairgate.domain.executions import Answer, GenerationRequest
from fairgate.domain.ports import Generator
from fairgate.domain.wording import harmless, quoted
from fairgate.features.ray.worker_messages import Asks, Reply, Way, reply_from, task_to
from fairgate.systems.stored import answer_from, scores_from

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
