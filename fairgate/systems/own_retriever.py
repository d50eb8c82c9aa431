"""A retriever of the user's behind FairGate's prompt, asked as applications are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Annotated, Any, Self

from pydantic import Field, Tag, model_validator

from fairgate.domain.errors import FairGateError, PartlyRetrievedError, RetrievalError
from fairgate.domain.executions import CorpusDocument, Document, Question
from fairgate.domain.outcomes import short
from fairgate.domain.ports import Application, Embedder, Vectors
from fairgate.domain.schema import Access, ByShape, Names, Role, Strict
from fairgate.domain.wording import listed, quoted
from fairgate.io.replies import ReplyPaths, json_path
from fairgate.systems.budget import Meter
from fairgate.systems.command import Arguments, CommandAsked
from fairgate.systems.http import BEHIND_AN_ADDRESS, HttpAsked, Template
from fairgate.systems.labelling import LabelsField
from fairgate.systems.models import (
    DEFAULT_EMBEDDER,
    EMBEDS_DOCUMENTS,
    EmbedderField,
    long_embedder,
)
from fairgate.systems.python import FUNCTION, PythonAsked, Target
from fairgate.systems.resources import Resources
from fairgate.systems.revisions import is_code_known, resolved
from fairgate.systems.service_fields import DocumentPaths, PartsPath, Searching


class FoundPaths(Strict):
    """The place of the documents in a reply."""

    documents: PartsPath = Field(
        default="$.documents",
        description="Path of the documents in rank order.",
    )
    document: DocumentPaths = Field(
        default_factory=DocumentPaths, description="The places of each document's parts."
    )

    @property
    def paths(self) -> ReplyPaths:
        """Return the paths, read; no answer is expected."""
        return self.document.within(ReplyPaths(answer=None, documents=json_path(self.documents)))


class _Search(Strict):
    """What finds documents and answers nothing."""

    response: FoundPaths = Field(
        default_factory=FoundPaths, description="The places of answer and documents."
    )


class HttpSearch(_Search, HttpAsked):
    """A retriever behind an address."""

    request: Template = Field(
        default={"query": "{{query}}", "top_k": "{{top_k}}"},
        description="JSON to send; `{{query}}` and `{{top_k}}` are filled in.",
    )


class CommandSearch(_Search, CommandAsked):
    """A retriever that is a program."""

    takes: Searching = Field(default_factory=list)


class PythonSearch(_Search, PythonAsked):
    """A retriever that is a Python function or object."""

    takes: Searching = Field(default_factory=list)


WAYS: tuple[str, ...] = ("http", "command", "python")
Way = HttpSearch | CommandSearch | PythonSearch


class OwnRetrieverPolicy(Strict):
    """A retriever of one's own: behind an address, a program, a Python object."""

    http: HttpSearch | None = Field(default=None, description=BEHIND_AN_ADDRESS)
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
        description=FUNCTION,
    )
    embedder: Annotated[EmbedderField, Names(Role.EMBEDDER)] = Field(
        default=DEFAULT_EMBEDDER,
        description=EMBEDS_DOCUMENTS,
    )
    labels: LabelsField = None
    top_k: Annotated[int, Field(ge=1, le=100)] = Field(
        default=4, description="How many documents the generator is shown."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if sum(getattr(self, name) is not None for name in WAYS) != 1:
            raise ValueError(f"needs one of {listed(WAYS)}; keep one")
        return self

    @property
    def way(self) -> Way:
        """Return how it is asked, in the long form."""
        chosen_way: Any = next(
            chosen for name in WAYS if (chosen := getattr(self, name)) is not None
        )
        if isinstance(chosen_way, list):
            return CommandSearch(run=chosen_way)
        way: Way = PythonSearch(call=chosen_way) if isinstance(chosen_way, str) else chosen_way
        return way

    @property
    def accesses(self) -> Iterable[Access]:
        """Return the addresses and code that it reaches, with secrets."""
        return self.way.accesses


class AskedRetriever:
    """A port `Retriever`: documents in the order in which they came, at most as many as asked for.

    It may find fewer, and the same text for another query twice. Has no vectors.
    """

    at_once = 64
    """Few: each may be an endpoint's work that somebody pays."""

    def __init__(self, policy: OwnRetrieverPolicy, resources: Resources, meter: Meter) -> None:
        """Take the policy; nothing is asked yet.

        Raises UsageError for a function that nobody allowed.
        """
        self._policy = policy
        self._resources = resources
        self._meter = meter
        way = policy.way
        self.is_code_known = is_code_known(way)
        """Whether what it finds belongs to a known state, and not to a name alone."""
        way = resolved(way, resources.runtime.under_test)
        self._application: Application = way.opened(way.response.paths, resources, meter)

    @property
    def fingerprint(self) -> str:
        """Identify what is asked, and its revision."""
        return f"asked/1:{self._application.fingerprint}"

    def is_known(self) -> bool:
        """Return whether its state has a name that counts, so that what it found may be reused."""
        return self._resources.believes(self._application.revision)

    def embedder(self) -> Embedder:
        """Return the embedder of the documents that it finds."""
        return self._resources.encoder(long_embedder(self._policy.embedder)).documents

    def under_test(self) -> dict[str, str]:
        """Return how it is asked, and its revision as far as the user names it."""
        facts = {"retriever": self._policy.way.shown}
        if (revision := self._application.revision) is not None:
            facts["retriever revision"] = short(revision)
        return facts

    def retrieve(
        self, queries: Sequence[str], top_k: int, changed: Sequence[CorpusDocument | None] = ()
    ) -> list[list[Document]]:
        """Return for each query its first `top_k` documents, with its `changed` one among them.

        Raises RetrievalError where it returns nothing; PartlyRetrievedError, with what was found
        until then, where it cannot be asked any more or returns a document without its text.
        """
        questions = [
            Question(
                query=query, text=query, instruction="", prompt=query, top_k=top_k, changed=document
            )
            for query, document in zip_longest(queries, changed)
        ]
        application, is_known = self._application, self.is_known()
        lists: dict[int, list[Document]] = {}
        try:
            for position, reply in self._meter.asked(
                questions, application.ask, lambda: self._resources.keeps(is_known=is_known)
            ):
                documents = list(reply.documents or ())[:top_k]
                if any(document.text is None for document in documents):
                    raise RetrievalError(
                        f"{application.name}, asked for {quoted(queries[position])}: a "
                        "document has an id and no text, so the prompt could not show it; name "
                        "the place of the text (`response.document.text`)"
                    )
                lists[position] = documents
        except FairGateError as error:
            raise PartlyRetrievedError(error, lists) from error
        if len(lists) < len(questions):
            raise RetrievalError(
                f"{application.name} found nothing for {len(questions) - len(lists)} of "
                f"{len(questions)} queries; expected a list for each, if only an empty one"
            )
        return [lists[position] for position in range(len(questions))]

    def vectors(self, document_ids: Sequence[str]) -> Vectors | None:
        """Return None: what it embeds with is not known."""
        del document_ids
        return None
