"""A retriever of the user's behind FairGate's prompt: `retriever: {http|command|python: …}`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import Field, Tag, field_validator, model_validator

from fairgate.adapters.applications.json_paths import json_path
from fairgate.adapters.applications.replies import ReplyPaths
from fairgate.domain.fingerprints import short
from fairgate.engine.ports import Embedder, Retriever
from fairgate.schema.fields import ByShape, Strict
from fairgate.schema.outside import Access
from fairgate.systems.application import Revised
from fairgate.systems.command import Arguments, CommandAsked, line_application
from fairgate.systems.embedders import DEFAULT_EMBEDDER, EmbedderField, long_embedder
from fairgate.systems.http import HttpAsked, http_application
from fairgate.systems.labelling import LabelsPolicy
from fairgate.systems.python import PythonAsked, Target, call_application
from fairgate.systems.replies import DocumentPaths, checked_path
from fairgate.systems.resources import Resources


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


class OwnRetrieverPolicy(Strict):
    """A retriever of one's own: behind an address, a program, a Python function or object."""

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
    embedder: EmbedderField = Field(
        default=DEFAULT_EMBEDDER, description="Embeds the documents that it finds, for RRS."
    )
    labels: LabelsPolicy | None = Field(
        default=None, description="Labels of its documents, where it gives none itself."
    )
    top_k: Annotated[int, Field(ge=1, le=100)] = Field(
        default=4, description="How many documents are asked for, and shown to the generator."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        named = [name for name in ("http", "command", "python") if getattr(self, name) is not None]
        if len(named) != 1:
            raise ValueError("needs one of `http`, `command` and `python`; keep one")
        return self

    @property
    def way(self) -> HttpSearch | CommandSearch | PythonSearch:
        """Return how it is asked, in the long form."""
        if self.http is not None:
            return self.http
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

    def __init__(self, policy: OwnRetrieverPolicy, resources: Resources) -> None:
        """Take the policy. Raises UsageError for a function that nobody allowed."""
        self._policy = policy
        self._resources = resources
        self._application = _application(policy.way, resources)

    @cached_property
    def retriever(self) -> Retriever:
        """Return the retriever."""
        from fairgate.adapters.applications.retrieving import AskedRetriever

        return AskedRetriever(self._application)

    @property
    def is_known(self) -> bool:
        """Return whether its state has a name, so that what it found may be reused."""
        return self._application.revision is not None

    def embedder(self) -> Embedder:
        """Return what embeds the documents that it finds."""
        return self._resources.encoder(long_embedder(self._policy.embedder)).documents

    def under_test(self) -> dict[str, str]:
        """Return how it is asked, and its revision as far as the user names it."""
        found = {"retriever": _shown(self._policy.way)}
        revision = self._application.revision
        if revision is not None:
            found["retriever revision"] = short(revision)
        return found


def _application(way: HttpSearch | CommandSearch | PythonSearch, resources: Resources) -> Revised:
    if isinstance(way, HttpSearch):
        return http_application(way, way.response.paths)
    if isinstance(way, CommandSearch):
        return line_application(way, way.response.paths, resources)
    return call_application(way, way.response.paths, resources)


def _shown(way: HttpSearch | CommandSearch | PythonSearch) -> str:
    if isinstance(way, HttpSearch):
        return f"http {way.url}"
    return (
        f"command {shlex.join(way.run)}" if isinstance(way, CommandSearch) else f"python {way.call}"
    )
