"""What every kind of system offers: its part of the policy, what it reaches, how it is opened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import DataError
from fairgate.domain.ports import OpenSystem, Runtime
from fairgate.domain.schema import Access, Capabilities, Role, SystemModel, named_in
from fairgate.systems.labelling import PlacedLabels
from fairgate.systems.models import EmbedderPolicy, embedder_problem, long_embedder
from fairgate.systems.revisions import content_hash

if TYPE_CHECKING:
    from fairgate.systems.resources import Resources


NOT_OF_BASE = (
    "what it starts or asks is code that runs in one version here; name the other one as "
    "`reference` in the form of `system` (a server of the base's version, its recorded answers)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What `fairgate check` says of the files behind a system, without asking it anything."""

    place: tuple[str, ...]
    """Below `system`, where the policy names it."""
    sentence: str
    is_problem: bool = True
    """Whether a run would fail; else the sentence is told beside a valid policy."""
    is_fetched: bool = False
    """Whether it is about a model that a run would fetch."""


class SystemKind(SystemModel, ABC):
    """A kind of system is the model of its part of the policy. A part left out: no kind.

    All of it is asked before a run.
    """

    id: ClassVar[str]

    @abstractmethod
    def accesses(self) -> Iterable[Access]:
        """Return every address, program and module that a run would use, with its secrets."""

    @abstractmethod
    def capabilities(self) -> Capabilities:
        """Return the system's capabilities."""

    @abstractmethod
    def open(self, resources: Resources) -> OpenSystem:
        """Return the system, ready to be asked."""

    def served(self, runtime: Runtime) -> AbstractContextManager[None]:
        """Return a block in which the policy's own server runs, if it names one."""
        if (server := getattr(self, "serve", None)) is None:
            return nullcontext()
        from fairgate.systems.serving import served

        return served(server, runtime.under_test.root)

    def lacks_base_version(self) -> str:
        """Return why the base commit's version cannot be asked beside this; empty where it can."""
        return ""

    def missing(self, runtime: Runtime) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield places below `system` that name what is not there, with the sentence.

        As far as that needs neither model nor network.
        """
        del runtime
        yield from ()

    def examined(self, plan: TestPlan | None, runtime: Runtime) -> Iterator[Finding]:
        """Yield what can be found in the files behind the system; neither model nor network.

        `plan` is None where the suites could not be loaded. Only `fairgate check` asks: files are
        read whole.
        """
        del plan
        for file in named_in(self):
            if file.role is Role.CODE:
                try:
                    content_hash([file.name], runtime.under_test)
                except DataError as error:
                    yield Finding(place=(), sentence=str(error))
        chosen = self.chosen_embedder() if getattr(self, "embedder", None) else None
        if chosen and (wrong := embedder_problem(chosen, runtime)):
            yield Finding(place=("embedder",), sentence=wrong)

    def notices(self, *, crosses: bool) -> Iterable[str]:
        """Return measures that the system does not allow, and the change that would allow them.

        `crosses`: whether a suite asks for attribution.
        """
        del crosses
        return ()

    def footnotes(self, resources: Resources) -> Iterable[str]:
        """Return unknowns of the answers' origin; printed after everything else."""
        del resources
        return ()

    @property
    def is_asked(self) -> bool:
        """Return whether its answers come from outside, where only a revision names its state."""
        return False

    def why_unreadable(self, resources: Resources) -> str:
        """Return a likely reason why no answer can be read; empty where none is known."""
        del resources
        return ""

    def placed_labels(self) -> PlacedLabels | None:
        """Return where labels of documents come from that the system gives none, if anywhere."""
        chosen = getattr(self, "labels", None)
        return None if chosen is None else PlacedLabels(("labels",), chosen)

    def chosen_embedder(self) -> EmbedderPolicy:
        """Return the model that embeds documents for RRS, and collections."""
        return long_embedder(getattr(self, "embedder", None))

    def measuring_embedder(self) -> EmbedderPolicy:
        """Return the model whose vectors give distances between documents."""
        return self.chosen_embedder()

    def measures_apart(self) -> bool:
        """Return whether the policy names a model for distances that does not retrieve."""
        return getattr(self, "embedder", None) is not None

    def embedder_role(self) -> Role:
        """Return whether that model only measures, or is under test as a part of the retriever."""
        return Role.EMBEDDER
