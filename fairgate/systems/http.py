"""An application behind an address: one HTTP request a question, one JSON answer.

What is sent is a JSON value of the user's with places for the question: `{{query}}`, `{{text}}`,
`{{instruction}}`, `{{prompt}}`, `{{top_k}}` and `{{session}}` stand anywhere in texts;
`{{options}}`, `{{documents}}`, `{{changed}}` and `{{messages}}` stand alone. What a question says
is not expanded.

A conversation is a request a turn. One that loses an answer begins anew in another `{{session}}`:
the server may have heard the turn.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlencode, urlsplit, urlunsplit

from pydantic import AfterValidator, Field, model_validator

from fairgate.domain.errors import ApplicationError, FailedQuestionError
from fairgate.domain.executions import Execution, Question, usage_of
from fairgate.domain.schema import Access, Address, Strict, way_of
from fairgate.domain.wording import quoted, suggestion
from fairgate.io.http_messages import (
    ATTEMPTS,
    UNSURE,
    Found,
    HttpError,
    Request,
    failure_in,
    keeps_secrets,
)
from fairgate.io.http_service import HttpService
from fairgate.io.replies import ReplyPaths, parsed_json, reply_of, served_of, without_secrets
from fairgate.systems.application import ApplicationKind, EmbedderOfReplies
from fairgate.systems.budget import BudgetField, Meter
from fairgate.systems.labelling import LabelsField
from fairgate.systems.resources import Resources
from fairgate.systems.revisions import RevisionField, resolved, revision_text
from fairgate.systems.service_fields import (
    Concurrency,
    Header,
    ResponsePaths,
    Seconds,
    Variable,
    limits_of,
)
from fairgate.systems.serving import ServePart

if TYPE_CHECKING:
    from fairgate.io.http_client import Talk

_VERSION = "http-1"
"""Part of the fingerprint: raise it when the same answers would be read otherwise."""
TEXTS = ("query", "text", "instruction", "prompt", "top_k", "session")
LISTS = ("options", "documents", "changed", "messages")
_CASE = frozenset({"query", "text", "prompt", "messages"})
"""One of these must be sent: without it every test case would be the same."""
_PLACE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


def _checked(value: dict[str, Any]) -> dict[str, Any]:
    """Return a `request`. Raises ValueError for unknown or misplaced placeholders in it."""
    names = set(_named(value))
    allowed = (*TEXTS, *LISTS)
    for name in sorted(names):
        if name not in allowed:
            raise ValueError(f"`{{{{{name[:40]}}}}}` means nothing; {suggestion(name, allowed)}")
    for text in _texts(value):
        inside = [name for name in _PLACE.findall(text) if name in LISTS]
        if inside and not _PLACE.fullmatch(text):
            raise ValueError(
                f"{quoted(text)}: `{{{{{inside[0]}}}}}` is no text and must be the whole of it"
            )
    if not names & _CASE:
        raise ValueError("never sends the test case; put `{{query}}` or `{{prompt}}` into it")
    return value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _named(value: Any) -> Iterator[str]:
    for text in _texts(value):
        yield from _PLACE.findall(text)


BEHIND_AN_ADDRESS = "An application or a retriever behind an address."
Template = Annotated[dict[str, Any], AfterValidator(_checked)]


class HttpAsked(Strict):
    """How something is asked over HTTP."""

    url: Address = Field(description="Address that each question is sent to, without credentials.")
    method: Literal["POST", "GET"] = Field(
        default="POST", description="`GET` sends `request` as parameters of the address."
    )
    request: Template = Field(
        default={"question": "{{query}}"},
        description="JSON to send, with `{{query}}` (the text alone), `{{text}}`, "
        "`{{instruction}}`, `{{prompt}}` (all in one), `{{options}}`, "
        "`{{documents}}`, `{{changed}}`, `{{session}}` or `{{messages}}`.",
    )
    headers_env: dict[Header, Variable] = Field(
        default_factory=dict,
        description="Header to the NAME of the environment variable with its whole value.",
    )
    revision: RevisionField = None
    timeout: Seconds = 120.0
    concurrency: Concurrency = 4

    @model_validator(mode="after")
    def _sends_secrets_safely(self) -> Self:
        if self.headers_env and not keeps_secrets(self.url):
            raise ValueError(
                f"`headers_env` would be sent unencrypted to {self.url}; give it an https:// "
                "address"
            )
        return self

    @property
    def takes(self) -> list[str]:
        """Return what the request has a place for: documents, and a changed one."""
        return [name for name in ("documents", "changed") if name in set(_named(self.request))]

    @property
    def takes_turns(self) -> bool:
        """Return whether the request has a place for the conversation."""
        return not {"session", "messages"}.isdisjoint(_named(self.request))

    @property
    def accesses(self) -> list[Access]:
        """Return the address, with each variable that is sent there."""
        variables: list[str | None] = [*self.headers_env.values()] or [None]
        return [Access("asks", self.url, variable, way_of(self)) for variable in variables]

    @property
    def shown(self) -> str:
        """Return the address."""
        return f"http {self.url}"

    def opened(self, paths: ReplyPaths, resources: Resources, meter: Meter) -> HttpApplication:
        """Return the application; nothing is asked yet."""
        part = resolved(self, resources.runtime.under_test)
        return HttpApplication(part, paths, meter)


class HttpPart(HttpAsked):
    """How an application is asked over HTTP."""

    response: ResponsePaths = Field(
        default_factory=ResponsePaths, description="The places of answer and documents."
    )


class HttpPolicy(ApplicationKind):
    """An application that is asked over HTTP."""

    id: ClassVar[str] = "http"
    keys: ClassVar[tuple[str, ...]] = ("http",)

    http: HttpPart = Field(description=BEHIND_AN_ADDRESS)
    serve: ServePart | None = Field(
        default=None, description="Starts what is asked over the network."
    )
    embedder: EmbedderOfReplies = None
    budget: BudgetField = None
    labels: LabelsField = None

    @property
    def to_take_documents(self) -> str:
        """Return where documents have their place."""
        return "give `system.http.request` a place for `{{documents}}` if it can use them"

    @property
    def part(self) -> HttpPart:
        """Return how the application is asked."""
        return self.http


def filled(value: Any, question: Question) -> Any:
    """Return a `request` for a question; where no documents are handed over, the list is null."""
    if isinstance(value, Mapping):
        return {name: filled(inner, question) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [filled(inner, question) for inner in value]
    if not isinstance(value, str):
        return value
    alone = _PLACE.fullmatch(value)
    match alone and alone[1]:
        case "top_k":
            return question.top_k
        case "options":
            return list(question.options)
        case "changed":
            return question.as_dict().get("changed")
        case "messages":
            return list(question.messages)
        case "documents":
            return None if question.documents is None else [asdict(d) for d in question.documents]
    return _PLACE.sub(lambda match: str(getattr(question, match[1])), value)


class HttpApplication:
    """A port `Application`: what comes back is read by the paths, whatever its declared type."""

    def __init__(self, part: HttpAsked, paths: ReplyPaths, meter: Meter) -> None:
        """Take the address; nothing is asked and no variable is read yet."""
        self._asked = part
        self._paths = paths
        self._meter = meter
        self.name = f"the system at {quoted(part.url)}"
        self.revision = revision_text(part.revision)
        self._service = HttpService(
            name=self.name,
            limits=limits_of(seconds=part.timeout, concurrency=part.concurrency),
            variables=part.headers_env,
            key="headers_env",
            set_to="set it to the whole value of the header",
            remedy="check `url`, `method` and `request`; if that is how it refuses to answer, let "
            "it send status 200 and an empty answer, which counts as unreadable",
            lacks=paths.lacks,
        )

    @property
    def fingerprint(self) -> str:
        """Identify address, request, mapping and revision; never what a variable holds."""
        part = self._asked
        parts = (
            _VERSION,
            part.method,
            part.url,
            part.request,
            repr(self._paths),
            sorted(part.headers_env.items()),
            self.revision,
        )
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def ask(self, questions: Sequence[Question]) -> Generator[tuple[int, Execution], None, None]:
        """Yield `(position in questions, reply)` as they come.

        Raises ApplicationError for the first question without a usable answer, UsageError where a
        variable is not set.
        """
        yield from self._service.client.talk_all(map(self._talk, questions))

    def _talk(self, question: Question) -> Talk[Execution]:
        is_kept_there = "session" in _named(self._asked.request)
        most, after = ATTEMPTS if is_kept_there else 1, 0.0
        for attempt in range(1, most + 1):
            replies: list[Execution] = []
            for turn in question.turns(replies):
                request = self._request(turn)
                response = yield replace(request, is_repeatable=not is_kept_there, after=after)
                is_lost = (
                    response.is_lost
                    if isinstance(response, HttpError)
                    else response.status in UNSURE
                )
                after = 2.0 ** (attempt - 1) if is_lost else 0.0
                if is_lost and attempt < most:
                    break
                replies.append(self._reply(response, question, question.named(replies)))
            else:
                break
        return replies[-1]

    def _reply(self, response: Found, question: Question, about: str) -> Execution:
        service = self._service
        try:
            answer = service.usable(response, about)
        except ApplicationError as error:
            raise FailedQuestionError(str(error), question, failure_in(response)) from None
        try:
            value = parsed_json(answer.body)
            self._meter.add(usage_of(value))
            reply = without_secrets(reply_of(value, self._paths), service.secrets)
            served = served_of(value, answer.headers, characters=len(question.prompt))
            return reply._replace(served=served)
        except ApplicationError as error:
            text = f"{self.name}, {about}: {service.concealed(str(error))}"
            raise FailedQuestionError(text, question) from None

    def _request(self, question: Question) -> Request:
        part = self._asked
        value = filled(part.request, question)
        if part.method != "GET":
            return self._service.send(part.url, value, part.method)
        parameters = [
            (name, entry if isinstance(entry, str) else json.dumps(entry))
            for name, inner in value.items()
            for entry in (inner if isinstance(inner, list) else [inner])
        ]
        url = urlsplit(part.url)
        query = "&".join(part for part in (url.query, urlencode(parameters)) if part)
        return self._service.get(urlunsplit(url._replace(query=query)))
