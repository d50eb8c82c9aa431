"""What every kind of system offers: its part of the policy, what it reaches, how it is opened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from fairgate.domain.cases import TestPlan
from fairgate.domain.ports import SystemUnderTest
from fairgate.domain.runtime import Runtime
from fairgate.domain.schema import Access, Capabilities, Role, SystemModel
from fairgate.systems.embedders import EmbedderPolicy, long_embedder
from fairgate.systems.labelling import PlacedLabels
from fairgate.systems.resources import Resources

Model = TypeVar("Model", bound=SystemModel)


class OpenSystem(SystemUnderTest, Protocol):
    """A system under test that was opened for a run; nothing is loaded before it is asked."""

    def under_test(self) -> Mapping[str, str]:
        """Return by name, with fingerprints, what a change of the results may come from."""
        ...

    def replica(self, number: int) -> tuple[Sequence[str], SystemUnderTest]:
        """Return the system with the neutral changes of replica `number`, past the store.

        Number 0 has none; the changes are named. Never called where the kind is not repeatable.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What `fairgate check` says of the files behind a system, without asking it anything."""

    place: tuple[str, ...]
    """Below `system`, where the policy names it."""
    sentence: str
    is_problem: bool = True
    """Whether a run would fail; else the sentence is told beside a valid policy."""


class SystemKind(ABC, Generic[Model]):
    """A kind of system. All of it is asked before a run; a kind that leaves out a part is none."""

    id: ClassVar[str]
    model: type[Model]
    """Its part of the policy."""

    @abstractmethod
    def accesses(self, policy: Model) -> Iterable[Access]:
        """Return every address, program and module that a run would use, with its secrets."""

    @abstractmethod
    def capabilities(self, policy: Model) -> Capabilities:
        """Return what the system can do."""

    @abstractmethod
    def must_match(self, policy: Model) -> Mapping[str, object]:
        """Return what must be equal for two runs of a suite to be comparable (SPEC 9)."""

    @abstractmethod
    def open(self, policy: Model, resources: Resources) -> OpenSystem:
        """Return the system, ready to be asked."""

    def missing(self, policy: Model, runtime: Runtime) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield places below `system` that name what is not there, with the sentence.

        As far as that needs neither model nor network.
        """
        del policy, runtime
        yield from ()

    def examined(self, policy: Model, plan: TestPlan | None, runtime: Runtime) -> Iterator[Finding]:
        """Yield what can be found in the files behind the system; neither model nor network.

        `plan` is None where the suites could not be loaded. Only `fairgate check` asks: files are
        read whole.
        """
        del policy, plan, runtime
        yield from ()

    def top_k(self, policy: Model) -> int:
        """Return how many documents the system's own retriever is asked for; 0: it decides."""
        del policy
        return 0

    def prompt(self, policy: Model) -> str | None:
        """Return the template of the generator's prompt; None where the policy has none."""
        del policy
        return None

    def is_greedy(self, policy: Model) -> bool:
        """Return whether the same question has the same answer whenever it is asked."""
        del policy
        return False

    def runs_a_model(self, policy: Model) -> bool:
        """Return whether FairGate itself runs the language model, so that workers can ask it."""
        del policy
        return False

    def side_by_side(self, policy: Model) -> int:
        """Return how many questions are under way at once."""
        del policy
        return 1

    def notices(self, policy: Model) -> Iterable[str]:
        """Return what cannot be measured on the system, and what would make it measurable."""
        del policy
        return ()

    def labels(self, policy: Model) -> PlacedLabels | None:
        """Return where labels of documents come from that the system gives none, if anywhere."""
        chosen = getattr(policy, "labels", None)
        return None if chosen is None else PlacedLabels(("labels",), chosen)

    def embedder(self, policy: Model) -> EmbedderPolicy:
        """Return the model that embeds documents for RRS, and collections."""
        return long_embedder(getattr(policy, "embedder", None))

    def embedder_role(self, policy: Model) -> Role:
        """Return whether that model only measures, or is under test as a part of the retriever."""
        del policy
        return Role.EMBEDDER
