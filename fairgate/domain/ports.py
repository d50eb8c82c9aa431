"""What the engine needs from outside, as Protocols that adapters implement, and how it is to run.

Every `fingerprint` is a short stable string: two adapters with equal fingerprints give equal
results for equal inputs, so it is part of the key under which results are stored.
"""

from __future__ import annotations

import datetime as dt
from collections import abc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:  # every command imports this module, `--help` too
    import numpy as np
    import numpy.typing as npt

    from fairgate.domain.cases import Case
    from fairgate.domain.executions import (
        Document,
        Execution,
        GenerationRequest,
        Question,
    )
    from fairgate.domain.schema import SystemModel

Vectors: TypeAlias = "npt.NDArray[np.float32]"
Executed: TypeAlias = "Mapping[tuple[str, str], Execution]"
"""(suite, key) to what happened; a case without an entry has no answer."""
NOTHING: Executed = MappingProxyType({})


class Embedder(Protocol):
    """Texts to unit vectors."""

    @property
    def fingerprint(self) -> str:
        """Identify model, pooling and precision."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 `[len(texts), dimensions]`, L2-normalised, independent of batching."""
        ...


class Retriever(Protocol):
    """A query to documents in rank order."""

    @property
    def fingerprint(self) -> str:
        """Identify corpus, embedder, index kind and scoring."""
        ...

    @property
    def at_once(self) -> int:
        """How many queries it is best handed in one call; a killed run loses as many results.

        What is found for a query does not depend on it.
        """
        ...

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        """Return for each query its `top_k` documents by (-score, document order)."""
        ...

    def vectors(self, document_ids: Sequence[str]) -> Vectors | None:
        """Return float32 `[n, d]` unit vectors of known documents; None where there are none."""
        ...


class Generator(Protocol):
    """Prompts to answers."""

    @property
    def fingerprint(self) -> str:
        """Identify model files, precision, decoding, chat template and stop rule."""
        ...

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Execution]]:
        """Yield `(position in requests, answer)` as they complete, in any order.

        An answer depends on its request alone, never on the batch it ran in. Raises ModelError.
        """
        ...


class Application(Protocol):
    """A whole system that is asked from outside: it retrieves, if it does, and answers."""

    @property
    def name(self) -> str:
        """Return, for messages, what is asked and where."""
        ...

    @property
    def fingerprint(self) -> str:
        """Identify the application's revision and how it is asked."""
        ...

    @property
    def revision(self) -> str | None:
        """Return a text that changes whenever the application does; None where it is not known."""
        ...

    def ask(
        self, questions: Sequence[Question]
    ) -> abc.Generator[tuple[int, Execution], None, None]:
        """Yield `(position in questions, reply)` as they come, in any order.

        Raises ApplicationError. Closing the iterator ends what is under way.
        """
        ...


class OptionScorer(Protocol):
    """A generator that also returns the probability of given answers."""

    def score_options(self, requests: Sequence[GenerationRequest]) -> list[list[float]]:
        """Return the log-probability (nats) of each option of each request. Raises ModelError."""
        ...


class ResultStore(Protocol):
    """Stores results by content, across runs and across a killed process."""

    def get_many(self, kind: str, keys: Sequence[str]) -> Mapping[str, str]:
        """Return the stored JSON texts of those keys that are there and undamaged."""
        ...

    def put_many(self, kind: str, items: Iterable[tuple[str, str]]) -> None:
        """Store JSON texts durably, all or none. Raises StoreError."""
        ...


class Progress:
    """Receives the progress of a run, and shows nothing of it. Never changes a result."""

    def start(self, stage: str, total: int, cached: int) -> None:
        """Begin a stage of `total` steps, `cached` of which the store answered."""

    def advance(self, steps: int) -> None:
        """Count steps as done."""

    def finish(self) -> None:
        """End the stage."""

    def note(self, text: str) -> None:
        """Say what the stages that follow are for and what they cost."""


SILENT = Progress()


class PassedOn(Progress):
    """Progress that another one receives, too; what adds something to it overrides a method."""

    def __init__(self, inner: Progress) -> None:
        """Take the one that receives everything."""
        self._inner = inner

    def start(self, stage: str, total: int, cached: int) -> None:
        """Pass on."""
        self._inner.start(stage, total, cached)

    def advance(self, steps: int) -> None:
        """Pass on."""
        self._inner.advance(steps)

    def finish(self) -> None:
        """Pass on."""
        self._inner.finish()

    def note(self, text: str) -> None:
        """Pass on."""
        self._inner.note(text)


class Staged(PassedOn):
    """Progress of a part of a run: its stages are named after it."""

    def __init__(self, inner: Progress, part: str, price: str = "") -> None:
        """Take the part's name, and what it costs, which is told once."""
        super().__init__(inner)
        self._part, self._price = part, price

    def start(self, stage: str, total: int, cached: int) -> None:
        """Begin a stage of the part: `attribution: generate`; the first with work tells the price.

        A recorded system has no stages: it is asked nothing.
        """
        if self._price and cached < total:
            self.note(self._price)
            self._price = ""
        self._inner.start(f"{self._part}: {stage}", total, cached)

    def note(self, text: str) -> None:
        """Pass the words on, after the name of the part."""
        self._inner.note(f"{self._part}: {text}")


class SystemUnderTest(Protocol):
    """The system that the gate examines: it answers cases, live or from a recording."""

    def execute(
        self, cases: Sequence[Case], progress: Progress, earlier: Executed = NOTHING
    ) -> Executed:
        """Return executions by (suite, key) in the order of the cases; unanswered ones lack one.

        `earlier` holds the executions of cases whose documents these cases are shown.
        """
        ...

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return float32 `[n, d]` embeddings of the documents; None where they cannot be had."""
        ...


class OpenSystem(SystemUnderTest, Protocol):
    """A policy's system, opened for a run; nothing is loaded before it is asked."""

    def under_test(self) -> Mapping[str, str]:
        """Return by name, with fingerprints, what a change of the results may come from."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseSystem:
    """What `reference: base` means in a run: the base commit's system, or why there is none."""

    system: SystemModel | None = None
    runtime: Runtime | None = None
    """Where the base's version of the system's files is read."""
    is_recorded: bool = False
    """Its answers lie beside those of the run that is judged again; nothing is opened."""
    lacking: str = ""
    """Why there is none, as the end of a sentence."""

    @property
    def answers(self) -> bool:
        """Whether its answers can be compared with."""
        return self.is_recorded or self.system is not None


NO_BASE = BaseSystem(
    lacking="no base commit is known here (a pull request has one, and `--base REF` names one)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Where a run reads and stores, and how much of the machine it uses."""

    root: Path = field(default_factory=Path)
    """Where relative paths start. On a pull request, for the base's policy: the folder into which
    the base's version of all that decides is brought."""
    tested: Path | None = None
    """Where what is under test is read then; None: at `root`."""
    cache: Path = Path(".fairgate")
    batch_size: int | None = None
    """Rows that models run together; None: as many as memory holds."""
    threads: int = 0
    device: str = "cpu"
    allow_python: bool = False
    """Import the code that a policy names (`--allow-python`); a policy cannot set it."""
    confined: bool = False
    """Untrusted authors: refuse paths that lead out of `root`, and ignore the revision that an
    application names (the action; `--root`)."""
    today: dt.date | None = None
    """The day that waivers are compared with; None: with none. What judges a
    finished run again takes the day that its record names then."""
    meters: dict[str, Any] | None = field(default=None, compare=False)
    """What counts the questions of several runs together, by the policy's key of the limits; None:
    each run counts its own."""
    base: BaseSystem = NO_BASE
    """What a policy's `reference: base` means."""

    @property
    def under_test(self) -> Runtime:
        """Return the same for reading what is under test: model, corpus, index, answers.

        Whatever is not read by this is the base's on a pull request.
        """
        return self if self.tested is None else replace(self, root=self.tested, tested=None)
