"""A retriever of the user's behind FairGate's prompt: `retriever: {http|qdrant|…: …}`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import Field, Tag, field_validator, model_validator

from fairgate.domain.outcomes import short
from fairgate.domain.ports import Embedder, Retriever, RevisedApplication
from fairgate.domain.schema import Access, ByShape, Names, Role, Strict
from fairgate.domain.wording import listed
from fairgate.io.replies import ReplyPaths, json_path
from fairgate.systems.budget_meter import BudgetedApplication, Meter
from fairgate.systems.command import Arguments, CommandAsked, line_application
from fairgate.systems.embedders import DEFAULT_EMBEDDER, EmbedderField, Encoder, long_embedder
from fairgate.systems.exchange import DocumentPaths, checked_path
from fairgate.systems.http import HttpAsked, http_application
from fairgate.systems.labelling import LabelsPolicy
from fairgate.systems.python import PythonAsked, Target, call_application
from fairgate.systems.resources import Resources
from fairgate.systems.vector_stores import (
    ChromaSearch,
    PgvectorSearch,
    QdrantSearch,
    StoreSearch,
)


class FoundPaths(Strict):
    """The place of the documents in a reply."""

    documents: str = Field(
        default="$.documents", description="Path of the documents in rank order."
    )
    document: DocumentPaths = Field(
        default_factory=DocumentPaths, description="The places of each document's parts."
    )

    @field_validator("documents")
    @classmethod
    def _documents(cls, path: str) -> str:
        return checked_path(path, single=False)

    @property
    def paths(self) -> ReplyPaths:
        """Return the paths, read; no answer is expected."""
        return self.document.within(ReplyPaths(answer=None, documents=json_path(self.documents)))


class HttpSearch(HttpAsked):
    """A retriever behind an address."""

    request: dict[str, Any] = Field(
        default={"query": "{{query}}", "top_k": "{{top_k}}"},
        description="JSON to send; `{{query}}` and `{{top_k}}` are filled in.",
    )
    response: FoundPaths = Field(
        default_factory=FoundPaths, description="The place of the documents."
    )


class CommandSearch(CommandAsked):
    """A retriever that is a program."""

    response: FoundPaths = Field(
        default_factory=FoundPaths, description="The place of the documents."
    )


class PythonSearch(PythonAsked):
    """A retriever that is a Python function or object."""

    response: FoundPaths = Field(
        default_factory=FoundPaths, description="The place of the documents."
    )


WAYS: tuple[str, ...] = ("http", "command", "python", "qdrant", "chroma", "pgvector")


Way = HttpSearch | CommandSearch | PythonSearch | StoreSearch


class OwnRetrieverPolicy(Strict):
    """A retriever of one's own: behind an address, a program, a Python object, a vector store."""

    http: HttpSearch | None = Field(default=None, description="A retriever behind an address.")
    command: (
        Annotated[
            Annotated[Arguments, Tag("<list>")] | Annotated[CommandSearch, Tag("<mapping>")],
            ByShape,
        ]
        | None
    ) = Field(default=None, description="Program and arguments, or a mapping.")
    python: (
        Annotated[
            Annotated[Target, Tag("<scalar>")] | Annotated[PythonSearch, Tag("<mapping>")], ByShape
        ]
        | None
    ) = Field(
        default=None,
        description="`module:name` of a function, or of a retriever of LangChain, LlamaIndex or "
        "Haystack; or a mapping. Needs `--allow-python`.",
    )
    qdrant: QdrantSearch | None = Field(default=None, description="A collection of Qdrant.")
    chroma: ChromaSearch | None = Field(
        default=None, description="A collection of Chroma's server, 1.0 or later."
    )
    pgvector: PgvectorSearch | None = Field(
        default=None, description="A table of PostgreSQL with pgvector; needs `fairgate[pgvector]`."
    )
    embedder: Annotated[EmbedderField, Names(Role.EMBEDDER)] = Field(
        default=DEFAULT_EMBEDDER,
        description="Embeds the documents that it finds, for RRS, and the "
        "queries of a vector store: the model that its documents were embedded with.",
    )
    labels: LabelsPolicy | None = Field(
        default=None, description="Labels of its documents, where it gives none itself."
    )
    top_k: Annotated[int, Field(ge=1, le=100)] = Field(
        default=4, description="How many documents are asked for, and shown to the generator."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if sum(getattr(self, name) is not None for name in WAYS) != 1:
            raise ValueError(f"needs one of {listed(WAYS)}; keep one")
        return self

    @property
    def way(self) -> Way:
        """Return how it is asked, in the long form."""
        for found in (self.http, self.qdrant, self.chroma, self.pgvector):
            if found is not None:
                return found
        if self.command is not None:
            short = isinstance(self.command, list)
            return CommandSearch(run=self.command) if short else self.command  # type: ignore[arg-type,return-value]
        short = isinstance(self.python, str)
        return PythonSearch(call=self.python) if short else self.python  # type: ignore[arg-type,return-value]

    @property
    def accesses(self) -> Iterable[Access]:
        """Return what it reaches, with secrets."""
        return self.way.accesses


class OpenOwnRetriever:
    """The retriever, opened; it is asked for the first time in the run."""

    def __init__(self, policy: OwnRetrieverPolicy, resources: Resources, meter: Meter) -> None:
        """Take the policy. Raises UsageError for a function that nobody allowed."""
        self._policy = policy
        self._resources = resources
        self._meter = meter
        self._application = self._asked()

    @cached_property
    def retriever(self) -> Retriever:
        """Return the retriever."""
        from fairgate.systems.asked_retriever import AskedRetriever

        return AskedRetriever(
            BudgetedApplication(
                self._application,
                self._meter,
                lambda: self._resources.keeps(is_known=self.is_known()),
            )
        )

    def is_known(self) -> bool:
        """Return whether its state has a name that counts, so that what it found may be reused.

        In a confined run a named revision is the claim of whoever wrote the policy.
        """
        return not self._resources.runtime.confined and self._application.revision is not None

    def embedder(self) -> Embedder:
        """Return what embeds the documents that it finds."""
        return self._encoder.documents

    def under_test(self) -> dict[str, str]:
        """Return how it is asked, and its revision as far as the user names it."""
        way = self._policy.way
        found = {"retriever": _shown(way)}
        if isinstance(way, StoreSearch):
            name = long_embedder(self._policy.embedder).model
            found["embedder"] = f"{name} {short(self._encoder.queries.fingerprint)}"
        revision = self._application.revision
        if revision is not None:
            found["retriever revision"] = short(revision)
        return found

    def _asked(self) -> RevisedApplication:
        way = self._policy.way
        if isinstance(way, StoreSearch):
            return way.search(lambda: self._encoder.queries)
        if isinstance(way, HttpSearch):
            return http_application(way, way.response.paths, self._meter)
        if isinstance(way, CommandSearch):
            return line_application(way, way.response.paths, self._resources, self._meter)
        return call_application(way, way.response.paths, self._resources, self._meter)

    @property
    def _encoder(self) -> Encoder:
        return self._resources.encoder(long_embedder(self._policy.embedder))


def _shown(way: Way) -> str:
    if isinstance(way, StoreSearch):
        return way.shown
    if isinstance(way, HttpSearch):
        return f"http {way.url}"
    return (
        f"command {shlex.join(way.run)}" if isinstance(way, CommandSearch) else f"python {way.call}"
    )
