"""What vector stores over HTTP share: the address, the key, one request a query."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from fairgate.domain.applications import Reply
from fairgate.domain.errors import ApplicationError
from fairgate.domain.executions import Document
from fairgate.domain.ports import Vectors
from fairgate.domain.secrets import concealed
from fairgate.domain.wording import quoted
from fairgate.io.http_answers import Asker, usable
from fairgate.io.http_client import HttpClient
from fairgate.io.http_messages import Answer, HttpError, Limits, Request
from fairgate.io.named_secrets import secret_in
from fairgate.io.replies import parsed_json, without_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAt:
    """Where a collection is, and where a document's parts are in it."""

    url: str
    """Without a slash at its end."""
    collection: str
    text: str = "text"
    """Key of the document's text; dots lead into nested objects."""
    id: str | None = None
    """Key of the identifier; None: the store's own."""
    label: str = "label"
    headers_env: Mapping[str, str] = field(default_factory=dict)
    """Header to the NAME of the environment variable that holds its value."""
    revision: str | None = None
    more: Mapping[str, str] = field(default_factory=dict)
    """What only one store has."""


class HttpStore(ABC):
    """A port `VectorStore` over HTTP."""

    product: ClassVar[str]

    def __init__(
        self,
        stored: StoredAt,
        limits: Limits,
        *,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        """Take the address; nothing is asked and no variable is read yet."""
        self._stored = stored
        self._limits = limits
        self._sleep = sleep

    @abstractmethod
    def _check(self, width: int) -> None:
        """Raise ApplicationError where the collection is missing or its vectors do not fit."""

    @abstractmethod
    def _query(self, vector: Sequence[float], top_k: int) -> tuple[str, Any]:
        """Return path and body of a search."""

    @abstractmethod
    def _found(self, answer: Any) -> tuple[Document, ...]:
        """Return the documents in an answer. Raises ApplicationError."""

    @property
    def name(self) -> str:
        """Say which collection it is, and where."""
        stored = self._stored
        return f"the {self.product} collection {quoted(stored.collection)} at {quoted(stored.url)}"

    @property
    def revision(self) -> str | None:
        """Return what the user names it."""
        return self._stored.revision

    @property
    def fingerprint(self) -> str:
        """Identify the collection and how it is read; never what a variable holds."""
        parts = json.dumps([self.product, asdict(self._stored)], sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()

    def search(
        self, vectors: Iterable[Vectors], width: int, queries: Sequence[str], top_k: int
    ) -> Generator[tuple[int, tuple[Document, ...]], None, None]:
        """Yield `(position, documents)` as they come, with no secret in them."""
        self._check(width)
        requests = (self._posted(*self._query(row.tolist(), top_k)) for row in vectors)
        for position, asked in self._client.ask_all(requests):
            about = f"for {quoted(queries[position])}"
            value = self._value(asked, about)
            try:
                reply = Reply(answer="", documents=self._found(value))
            except ApplicationError as error:
                raise self._error(error, about) from None
            yield position, without_secrets(reply, self._secrets).documents or ()

    def _got(self, path: str) -> Any:
        """Return the JSON value at a path. Raises ApplicationError."""
        request = Request(method="GET", url=self._stored.url + path, headers=self._headers)
        try:
            found: Answer | HttpError = self._client.ask(request)
        except HttpError as error:
            found = error
        return self._value(found, "about itself")

    def _value(self, found: Answer | HttpError, about: str) -> Any:
        asker = Asker(
            name=self.name,
            secrets=self._secrets,
            variables=tuple(sorted(self._stored.headers_env.values())),
            attempts=self._limits.attempts,
            remedy="check `url` and `collection`",
            key="`api_key_env`",
        )
        answer = usable(found, asker, about)
        try:
            return parsed_json(answer.body)
        except ApplicationError as error:
            raise self._error(error, about) from None

    def _error(self, error: ApplicationError, about: str) -> ApplicationError:
        text = concealed(str(error), self._secrets)
        return ApplicationError(f"{self.name}, asked {about}: {text}")

    def _posted(self, path: str, body: Any) -> Request:
        return Request(
            method="POST",
            url=self._stored.url + path,
            headers={"Content-Type": "application/json", **self._headers},
            body=json.dumps(body).encode(),
        )

    @cached_property
    def _client(self) -> HttpClient:
        return HttpClient(self._limits, secrets=self._secrets, sleep=self._sleep)

    @cached_property
    def _headers(self) -> dict[str, str]:
        secret = zip(self._stored.headers_env, self._secrets, strict=True)
        return {"Accept": "application/json", **dict(secret)}

    @cached_property
    def _secrets(self) -> list[str]:
        """Return what the named variables hold. Raises UsageError."""
        return [
            secret_in(
                name,
                named_by="`api_key_env` names",
                is_a="key",
                remedy=f"set it to the key of {self.product}",
            )
            for name in self._stored.headers_env.values()
        ]
