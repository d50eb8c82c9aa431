"""An application that was opened for a run, whatever way it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from fairgate.domain.cases import TestPlan
from fairgate.domain.executions import Document, Execution
from fairgate.domain.fingerprints import short
from fairgate.domain.ports import (
    NOTHING,
    Embedder,
    Executed,
    Progress,
    ResultStore,
    RevisedApplication,
    SystemUnderTest,
    Vectors,
)
from fairgate.domain.system import Capabilities
from fairgate.systems.application_run import ApplicationSystem, Asked
from fairgate.systems.budget_meter import BudgetedApplication, Meter
from fairgate.systems.embedders import EmbedderPolicy
from fairgate.systems.replicas import NoStore
from fairgate.systems.resources import Resources


def application_notices(
    can: Capabilities, *, documents: str, handing: str, has_revision: bool
) -> list[str]:
    """Return what an application leaves open; `documents` and `handing` say how to change that."""
    found = []
    if not can.gives_documents:
        found.append(
            f"retrieval is not measured, because the system's documents are not known: {documents}"
        )
    elif not can.takes_documents:
        found.append(
            "attribution to retriever and generator is not measured, because the system is handed "
            f"no documents: {handing}"
        )
    if not has_revision:
        found.append(
            "every run asks the system everything, because its version is not known: name "
            "its `revision`"
        )
    return found


class OpenApplication:
    """A system under test that is asked from outside."""

    def __init__(
        self,
        application: RevisedApplication,
        resources: Resources,
        *,
        meter: Meter,
        embedder: EmbedderPolicy,
        capabilities: Capabilities,
        shown: str,
    ) -> None:
        """Take the application; `shown` is what reports call it, `meter` counts its questions."""
        self._application = application
        self._meter = meter
        self._resources = resources
        self._embedder = embedder
        self._capabilities = capabilities
        self._shown = shown

    def execute(
        self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING
    ) -> Mapping[tuple[str, str], Execution]:
        """Return an execution for every case that the application can be asked."""
        return self._system.execute(plan, progress, earlier)

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return embeddings of the documents' texts; None where a text is not known."""
        return self._system.vectors(documents)

    def under_test(self) -> dict[str, str]:
        """Return where the application is, and its revision as far as the user names it."""
        revision = self._application.revision
        found = {"system": self._shown}
        if revision is not None:
            found["revision"] = short(revision)
        if self._capabilities.takes_documents:
            found |= self._resources.suites_under_test()
        return found

    def replica(self, number: int) -> tuple[Sequence[str], SystemUnderTest]:
        """Return the application, asked again: its own randomness is all that changes."""
        self._meter.keeps = False
        return ["asked again"] if number else [], self._asked(NoStore())

    @cached_property
    def _system(self) -> ApplicationSystem:
        return self._asked(self._resources.kept(is_known=self._is_known()))

    def _is_known(self) -> bool:
        # An untrusted application may keep its revision when it changes, or claim another's.
        return not self._resources.runtime.confined and self._application.revision is not None

    def _asked(self, store: ResultStore) -> ApplicationSystem:
        return ApplicationSystem(
            Asked(
                application=BudgetedApplication(
                    self._application,
                    self._meter,
                    lambda: self._resources.keeps(is_known=self._is_known()),
                ),
                store=store,
                takes_documents=self._capabilities.takes_documents,
                retrievers=self._resources.suite_retrievers,
                retrieval_store=lambda: self._resources.store,
                embedder=self._encoder,
            )
        )

    def _encoder(self) -> Embedder:
        return self._resources.encoder(self._embedder).documents
