"""Vector stores over HTTP, Chroma's and Qdrant's: an address, a key, one request a query."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import quote

from fairgate.domain.applications import Reply
from fairgate.domain.errors import ApplicationError
from fairgate.domain.executions import Document
from fairgate.domain.ports import Vectors
from fairgate.domain.wording import concealed, listed, quoted
from fairgate.io.http_client import HttpClient
from fairgate.io.http_messages import Answer, Asker, HttpError, Limits, Request, secret_in, usable
from fairgate.io.replies import ReplyPaths, json_path, parsed_json, reply_of, without_secrets
from fairgate.retrieval.vector_search import path_of_key, require_width

_COLUMNS = ("ids", "documents", "metadatas", "distances")
_POINTS = json_path("$.result.points")
_VECTORS = json_path("$.result.config.params.vectors")


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


class Chroma(HttpStore):
    """A collection of Chroma's server over its HTTP API, version 2 (Chroma 1.0).

    The score of a document is its distance, negated: the nearest has the greatest. `more` has
    `tenant` and `database`; texts are Chroma's documents where `text` is empty.
    """

    product = "Chroma"

    def _check(self, width: int) -> None:
        dimension = self._collection.get("dimension")
        if isinstance(dimension, int):  # an empty collection has none yet
            require_width(self.name, dimension, width)

    def _query(self, vector: Sequence[float], top_k: int) -> tuple[str, Any]:
        name = quote(str(self._collection["id"]), safe="")
        included = ["documents", "metadatas", "distances"]
        body = {"query_embeddings": [list(vector)], "n_results": top_k, "include": included}
        return f"{self._path}/{name}/query", body

    def _found(self, answer: Any) -> tuple[Document, ...]:
        columns = [answer.get(name) if isinstance(answer, dict) else None for name in _COLUMNS]
        rows = [column[0] for column in columns if isinstance(column, list) and column]
        lists = [row for row in rows if isinstance(row, list)]
        if len(lists) < len(_COLUMNS) or len(set(map(len, lists))) != 1:
            raise ApplicationError(
                f"the answer has no lists of one length at {', '.join(_COLUMNS)}; expected the "
                "answer of Chroma's query"
            )
        found = [
            {"id": id_, "text": text, "metadata": about, "score": _negated(distance)}
            for id_, text, about, distance in zip(*lists, strict=True)
        ]
        return reply_of({"documents": found}, self._paths).documents or ()

    @property
    def _path(self) -> str:
        tenant, database = (quote(self._stored.more[n], safe="") for n in ("tenant", "database"))
        return f"/api/v2/tenants/{tenant}/databases/{database}/collections"

    @cached_property
    def _collection(self) -> dict[str, Any]:
        """Return what Chroma says of the collection, which is asked by id."""
        found = self._got(f"{self._path}/{quote(self._stored.collection, safe='')}")
        if not isinstance(found, dict) or not isinstance(found.get("id"), str):
            raise ApplicationError(
                f"{self.name}: the answer has no `id` of a collection; check that it is Chroma's "
                "server, version 1.0 or later"
            )
        return found

    @cached_property
    def _paths(self) -> ReplyPaths:
        stored = self._stored
        own = not stored.text
        return ReplyPaths(
            answer=None,
            documents=json_path("$.documents"),
            id=json_path("$.id") if stored.id is None else path_of_key("$.metadata", stored.id),
            text=json_path("$.text") if own else path_of_key("$.metadata", stored.text),
            label=path_of_key("$.metadata", stored.label),
        )


def _negated(distance: Any) -> Any:
    is_number = isinstance(distance, int | float) and not isinstance(distance, bool)
    return 0.0 - distance if is_number else distance


class Qdrant(HttpStore):
    """A collection of Qdrant: `POST /collections/<name>/points/query` (1.10).

    `more["vector"]` is the name of the vector that is searched, where it has one.
    """

    product = "Qdrant"

    def _check(self, width: int) -> None:
        # Asked once: the size of a collection's vectors never changes.
        require_width(self.name, self._width, width)

    @cached_property
    def _width(self) -> int:
        found = _VECTORS.find(self._got(self._path))
        vectors = found[0] if found else None
        if isinstance(vectors, Mapping) and "size" not in vectors:
            vectors = self._named(vectors)
        size = vectors.get("size") if isinstance(vectors, Mapping) else None
        if not isinstance(size, int):
            raise ApplicationError(
                f"{self.name}: its answer has no size of vectors at `{_VECTORS.text}`; expected "
                "a collection of dense vectors"
            )
        return size

    def _named(self, vectors: Mapping[str, Any]) -> Any:
        name = self._stored.more.get("vector", "")
        if name not in vectors:
            known = listed([str(each)[:60] for each in list(vectors)[:8]], last="and")
            raise ApplicationError(
                f"{self.name} has the vectors {known}, and none is called {quoted(name)}; name "
                "one in `vector`"
            )
        return vectors[name]

    def _query(self, vector: Sequence[float], top_k: int) -> tuple[str, Any]:
        using = {"using": name} if (name := self._stored.more.get("vector")) else {}
        body = {"query": list(vector), "limit": top_k, "with_payload": True, **using}
        return f"{self._path}/points/query", body

    def _found(self, answer: Any) -> tuple[Document, ...]:
        return reply_of(answer, self._paths).documents or ()

    @property
    def _path(self) -> str:
        return f"/collections/{quote(self._stored.collection, safe='')}"

    @cached_property
    def _paths(self) -> ReplyPaths:
        stored = self._stored
        return ReplyPaths(
            answer=None,
            documents=_POINTS,
            id=json_path("$.id") if stored.id is None else path_of_key("$.payload", stored.id),
            text=path_of_key("$.payload", stored.text),
            label=path_of_key("$.payload", stored.label),
        )
