"""Vector stores as retrievers: queries are embedded here, and the store finds what is nearest.

Stores are Chroma and Qdrant over HTTP, and PostgreSQL with pgvector. Each is the policy that names
it, and a class that asks it. The query is embedded by the policy's embedder, so that must be the
model of the stored vectors.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from functools import cached_property
from itertools import groupby
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar
from urllib.parse import quote

from pydantic import Field, model_validator

from fairgate.domain.errors import ApplicationError, UsageError
from fairgate.domain.executions import Document, Execution, Question
from fairgate.domain.ports import Embedder, Vectors
from fairgate.domain.schema import Access, Address, Strict, Text, facts, way_of
from fairgate.domain.wording import concealed, harmless, listed, quoted
from fairgate.io.http_messages import HttpAnswer
from fairgate.io.http_service import HttpService, secret_in
from fairgate.io.replies import (
    JsonPath,
    ReplyPaths,
    json_path,
    parsed_json,
    reply_of,
    without_secrets,
)
from fairgate.systems.revisions import RevisionField, revision_text
from fairgate.systems.service_fields import (
    Seconds,
    Variable,
    limits_of,
    require_safe,
)

T = TypeVar("T")
_COLUMNS = ["ids", "documents", "metadatas", "distances"]
_VECTORS = json_path("$.result.config.params.vectors")
_OPERATORS = {"cosine": "<=>", "euclidean": "<->", "inner_product": "<#>"}
_WIDTHS = re.compile(r"different (?:halfvec |vector )?dimensions (\d+) and (\d+)")
_DOCUMENTS = json_path("$.documents")
Key = Annotated[str, Field(pattern=r"^[^'\\\s]{1,200}$")]
"""Of a payload or of metadata; dots lead into nested objects."""
_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_$]{0,62}"
ColumnName = Annotated[str, Field(pattern=f"^{_IDENTIFIER}$")]
TableName = Annotated[str, Field(pattern=rf"^{_IDENTIFIER}(\.{_IDENTIFIER})?$")]


class StoreSearch(Strict):
    """What the policy of every vector store has."""

    product: ClassVar[str]

    revision: RevisionField | None = Field(
        default=None,
        description="What names its state, so that replies are reused: `{files: [app, "
        "data]}`, or a name that you change.",
    )
    timeout: Seconds = Field(default=30.0, description="Seconds to wait for one complete answer.")

    @property
    @abstractmethod
    def shown(self) -> str:
        """Return the store's name in reports."""

    @property
    @abstractmethod
    def accesses(self) -> list[Access]:
        """Return the addresses that it reaches, with secrets."""

    @abstractmethod
    def opened(self, queries: Callable[[], Embedder]) -> VectorSearch:
        """Return the store's client; nothing is asked yet. `queries` gives what embeds them."""


class VectorSearch(ABC):
    """The client of a vector store: an `Application` whose replies hold documents and no answer."""

    name: str
    """Which store and collection it is, for messages."""

    def __init__(self, chosen: StoreSearch, embedder: Callable[[], Embedder]) -> None:
        """Take the store and what embeds queries; nothing is loaded, asked or read yet."""
        self.revision = revision_text(chosen.revision)
        """What changes when the stored documents do; None where it is not known."""
        how = facts(chosen, exclude=("timeout",))
        self._identity = json.dumps([chosen.product, how], sort_keys=True)
        self._embedder = embedder

    @property
    def fingerprint(self) -> str:
        """Identify store, revision, how it is read, and embedder; never what a variable holds."""
        parts = f"{self._identity}\0{self._embedder().fingerprint}"
        return hashlib.sha256(parts.encode()).hexdigest()

    def ask(self, questions: Sequence[Question]) -> Generator[tuple[int, Execution], None, None]:
        """Yield `(position in questions, reply)`; all are asked for as many documents."""
        if not questions:
            return
        # By position: what is iterated counts as asked, and a budget may end that early.
        queries = [questions[number].query for number in range(len(questions))]
        vectors = self._embedder().embed(queries)
        iterated = (vectors[number] for number, _ in enumerate(questions))
        top_k = questions[0].top_k
        for position, documents in self.search(iterated, vectors.shape[1], queries, top_k):
            yield position, Execution(response="", documents=in_one_order(documents))

    @abstractmethod
    def search(
        self, vectors: Iterable[Vectors], width: int, queries: Sequence[str], top_k: int
    ) -> Generator[tuple[int, Sequence[Document]], None, None]:
        """Yield `(position, documents nearest first)` as they come; `queries` are for messages.

        Each of the `vectors` has `width` numbers and is taken when its query is asked. No secret is
        in the documents. Raises ApplicationError, also where the collection's vectors have another
        length.
        """


def in_one_order(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the documents as they came, equally near ones by id: stores leave that order open."""
    return tuple(
        document
        for score, group in groupby(documents, key=lambda document: document.score)
        for document in (
            group if score is None else sorted(group, key=lambda document: document.id or "")
        )
    )


def _other_width(name: str, expected: int, actual: int) -> ApplicationError:
    """Return the error for stored vectors of `expected` numbers and a query's `actual`."""
    return ApplicationError(
        f"{name} holds vectors of {expected:,} numbers, and the policy's embedder gives "
        f"{actual:,}; name in `retriever.embedder` the model that the documents were embedded with"
    )


def _path_of_key(base: str, key: str | None, own: str = "") -> JsonPath:
    """Return the path of a key below `base`, else `own`; dots lead into nested objects."""
    if key is None:
        return json_path(own)
    return json_path(base + "".join(f"['{part}']" for part in key.split(".")))


_HELD = {"result", "ids", "id"}
"""What an answer of a store holds, one of them at least."""


class HttpStoreSearch(StoreSearch):
    """A vector store over HTTP."""

    key_header: ClassVar[str]

    url: Address = Field(description="Address of the server. Without credentials.")
    collection: Text = Field(description="Name of the collection.")
    api_key_env: Variable | None = Field(
        default=None,
        description="NAME of the environment variable that holds the key.",
    )
    id: Key | None = Field(
        default=None, description="Key of the document's identifier; default: the store's own."
    )
    label: Key = Field(default="label", description="Key of the document's label, if it has one.")

    @model_validator(mode="after")
    def _sends_the_key_safely(self) -> Self:
        require_safe(self.url, self.api_key_env)
        return self

    @property
    def shown(self) -> str:
        """Return store, address and collection."""
        return f"{self.product.lower()} {self.url} {self.collection}"

    @property
    def accesses(self) -> list[Access]:
        """Return the address, with the variable that is sent there."""
        return [Access("asks", self.url, self.api_key_env, way_of(self))]


class QdrantSearch(HttpStoreSearch):
    """A collection of Qdrant."""

    key_header = "api-key"
    product = "Qdrant"

    text: Key = Field(
        default="text",
        description="Key of the text in the payload, with dots into nested objects.",
    )
    vector: Text | None = Field(
        default=None, description="Name of the vector to search, where the collection names them."
    )

    def opened(self, queries: Callable[[], Embedder]) -> VectorSearch:
        """Return the collection, to be asked."""
        return Qdrant(self, queries)


class ChromaSearch(HttpStoreSearch):
    """A collection of Chroma's server."""

    key_header = "x-chroma-token"
    product = "Chroma"

    text: Key | None = Field(
        default=None, description="Key of the text in the metadata; default: Chroma's document."
    )
    tenant: Text = Field(default="default_tenant", description="Tenant of the collection.")
    database: Text = Field(default="default_database", description="Database of the collection.")

    def opened(self, queries: Callable[[], Embedder]) -> VectorSearch:
        """Return the collection, to be asked."""
        return Chroma(self, queries)


class HttpStore(VectorSearch):
    """A vector store that is asked over HTTP."""

    def __init__(self, chosen: HttpStoreSearch, embedder: Callable[[], Embedder]) -> None:
        """Take the address; nothing is asked and no variable is read yet."""
        super().__init__(chosen, embedder)
        self._url = chosen.url.rstrip("/")
        collection = quoted(chosen.collection)
        self.name = f"the {chosen.product} collection {collection} at {quoted(self._url)}"
        self._service = HttpService(
            name=self.name,
            limits=limits_of(seconds=chosen.timeout),
            variables={chosen.key_header: chosen.api_key_env} if chosen.api_key_env else {},
            set_to=f"set it to the key of {chosen.product}",
            remedy="check `url` and `collection`",
            sets_pace=False,
            lacks=lambda value: isinstance(value, dict) and not _HELD & value.keys(),
        )

    @property
    @abstractmethod
    def _width(self) -> int | None:
        """Return the length of the stored vectors; None where it is not known.

        Raises ApplicationError where the collection is missing.
        """

    @abstractmethod
    def _query(self, vector: list[float], top_k: int) -> tuple[str, Any]:
        """Return path and body of a search."""

    @abstractmethod
    def _found(self, answer: Any) -> Sequence[Document]:
        """Return the documents in an answer. Raises ApplicationError."""

    def search(
        self, vectors: Iterable[Vectors], width: int, queries: Sequence[str], top_k: int
    ) -> Generator[tuple[int, Sequence[Document]], None, None]:
        """Yield `(position, documents)` as they come."""
        service = self._service
        if self._width not in (None, width):
            raise _other_width(self.name, self._width or 0, width)
        searches = (self._query(vector.tolist(), top_k) for vector in vectors)
        requests = (service.send(self._url + path, body) for path, body in searches)
        for position, response in service.client.ask_all(requests):
            about = f"for {quoted(queries[position])}"
            documents = self._read(service.usable(response, about), about, self._found)
            reply = without_secrets(Execution(response="", documents=documents), service.secrets)
            yield position, reply.documents or ()

    def _got(self, path: str) -> Any:
        """Return the JSON value at a path. Raises ApplicationError."""
        about = "about itself"
        answer = self._service.ask(self._service.get(self._url + path), about)
        return self._read(answer, about, lambda value: value)

    def _read(self, answer: HttpAnswer, about: str, read: Callable[[Any], T]) -> T:
        """Parse an answer's JSON value. Raises ApplicationError."""
        try:
            return read(parsed_json(answer.body))
        except ApplicationError as error:
            text = self._service.concealed(str(error))
            raise ApplicationError(f"{self.name}, asked {about}: {text}") from None


class Chroma(HttpStore):
    """A collection of Chroma's server over its HTTP API, version 2 (Chroma 1.0).

    The score of a document is its distance, negated: the nearest has the greatest.
    """

    def __init__(self, chosen: ChromaSearch, embedder: Callable[[], Embedder]) -> None:
        """Take the address; nothing is asked and no variable is read yet."""
        super().__init__(chosen, embedder)
        tenant, database = quote(chosen.tenant, safe=""), quote(chosen.database, safe="")
        self._path = f"/api/v2/tenants/{tenant}/databases/{database}/collections"
        self._named = quote(chosen.collection, safe="")
        self._paths = ReplyPaths(
            answer=None,
            documents=_DOCUMENTS,
            id=_path_of_key("$.metadata", chosen.id, "$.id"),
            text=_path_of_key("$.metadata", chosen.text, "$.text"),
            label=_path_of_key("$.metadata", chosen.label),
        )

    @property
    def _width(self) -> int | None:
        dimension = self._collection.get("dimension")
        return dimension if isinstance(dimension, int) else None  # an empty collection has none yet

    def _query(self, vector: list[float], top_k: int) -> tuple[str, Any]:
        name = quote(str(self._collection["id"]), safe="")
        body = {"query_embeddings": [vector], "n_results": top_k, "include": _COLUMNS[1:]}
        return f"{self._path}/{name}/query", body

    def _found(self, answer: Any) -> Sequence[Document]:
        columns = [answer.get(name) if isinstance(answer, dict) else None for name in _COLUMNS]
        rows = [column[0] for column in columns if isinstance(column, list) and column]
        lists = [row for row in rows if isinstance(row, list)]
        if len(lists) < len(_COLUMNS) or len(set(map(len, lists))) != 1:
            raise ApplicationError(
                f"the answer has no lists of one length at {', '.join(_COLUMNS)}; expected the "
                "answer of Chroma's query"
            )
        documents = [
            {
                "id": id_,
                "text": text,
                "metadata": about,
                "score": 0.0 - distance if type(distance) in (int, float) else distance,
            }
            for id_, text, about, distance in zip(*lists, strict=True)
        ]
        return reply_of({"documents": documents}, self._paths).documents or ()

    @cached_property
    def _collection(self) -> dict[str, Any]:
        """Return Chroma's record of the collection, which is asked by id."""
        collection = self._got(f"{self._path}/{self._named}")
        if not isinstance(collection, dict) or not isinstance(collection.get("id"), str):
            raise ApplicationError(
                f"{self.name}: the answer has no `id` of a collection; check that it is Chroma's "
                "server, version 1.0 or later"
            )
        return collection


class Qdrant(HttpStore):
    """A collection of Qdrant: `POST /collections/<name>/points/query` (1.10)."""

    def __init__(self, chosen: QdrantSearch, embedder: Callable[[], Embedder]) -> None:
        """Take the address; nothing is asked and no variable is read yet."""
        super().__init__(chosen, embedder)
        self._path = f"/collections/{quote(chosen.collection, safe='')}"
        self._vector = chosen.vector
        self._paths = ReplyPaths(
            answer=None,
            documents=json_path("$.result.points"),
            id=_path_of_key("$.payload", chosen.id, "$.id"),
            text=_path_of_key("$.payload", chosen.text),
            label=_path_of_key("$.payload", chosen.label),
        )

    @cached_property
    def _width(self) -> int:
        matches = _VECTORS.find(self._got(self._path))
        vectors = matches[0] if matches else None
        if isinstance(vectors, Mapping) and "size" not in vectors:
            if (self._vector or "") not in vectors:
                names = listed([str(name)[:60] for name in list(vectors)[:8]], last="and")
                raise ApplicationError(
                    f"{self.name} has the vectors {names}, and none is called "
                    f"{quoted(self._vector or '')}; name one in `vector`"
                )
            vectors = vectors[self._vector or ""]
        size = vectors.get("size") if isinstance(vectors, Mapping) else None
        if not isinstance(size, int):
            raise ApplicationError(
                f"{self.name}: its answer has no size of vectors at `{_VECTORS.text}`; expected "
                "a collection of dense vectors"
            )
        return size

    def _query(self, vector: list[float], top_k: int) -> tuple[str, Any]:
        using = {"using": self._vector} if self._vector else {}
        body = {"query": vector, "limit": top_k, "with_payload": True, **using}
        return f"{self._path}/points/query", body

    def _found(self, answer: Any) -> Sequence[Document]:
        return reply_of(answer, self._paths).documents or ()


class PgvectorSearch(StoreSearch):
    """A table of PostgreSQL with pgvector; needs `fairgate[pgvector]`."""

    product = "pgvector"

    dsn_env: Variable = Field(
        description="NAME of the environment variable with the connection string."
    )
    table: TableName | None = Field(default=None, description="Name, or `schema.name`.")
    id: ColumnName = Field(default="id", description="Column of the document's identifier.")
    text: ColumnName = Field(default="text", description="Column of the text.")
    label: ColumnName | None = Field(
        default=None, description="Column of the label, if there is one."
    )
    embedding: ColumnName = Field(default="embedding", description="Column of the vector.")
    distance: Literal["cosine", "euclidean", "inner_product"] = Field(
        default="cosine", description="What is nearest: `<=>`, `<->` or `<#>` of pgvector."
    )
    query: Text | None = Field(
        default=None,
        description="SQL instead of a table: `id`, `text`, `label` and `score`, nearest "
        "first, by `%(embedding)s::vector` and `%(top_k)s`.",
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.table is None) == (self.query is None):
            raise ValueError("needs one of `table` and `query`; keep one")
        for placeholder in ("%(embedding)s", "%(top_k)s"):
            if self.query is not None and placeholder not in self.query:
                raise ValueError(
                    f"the query lacks `{placeholder}`, so it would find the same every time"
                )
        return self

    @property
    def shown(self) -> str:
        """Return the table; the address is secret."""
        return f"pgvector {self.table or 'query'}"

    @property
    def accesses(self) -> list[Access]:
        """Return the database, which only the variable names."""
        return [Access("asks", "PostgreSQL", self.dsn_env, way_of(self))]

    def opened(self, queries: Callable[[], Embedder]) -> VectorSearch:
        """Return the table, to be asked."""
        return Pgvector(self, queries)


class Pgvector(VectorSearch):
    """A table through psycopg 3: one connection at a time, read-only transactions."""

    def __init__(self, chosen: PgvectorSearch, embedder: Callable[[], Embedder]) -> None:
        """Take the table; nothing is asked and no variable is read yet."""
        super().__init__(chosen, embedder)
        self._table = chosen
        # The address is secret.
        what = f"table {quoted(chosen.table)}" if chosen.table else "`query`"
        self.name = f"PostgreSQL at the address in {chosen.dsn_env}, {what}"

    def search(
        self, vectors: Iterable[Vectors], width: int, queries: Sequence[str], top_k: int
    ) -> Generator[tuple[int, Sequence[Document]], None, None]:
        """Yield `(position, documents)`, one query after another."""
        driver = _driver()
        dsn = secret_in(
            self._table.dsn_env,
            named_by="`dsn_env` names",
            is_a="connection string",
            remedy="set it to postgresql://user:password@host/database",
        )
        secrets = [dsn, *_passwords(driver, dsn, self._table.dsn_env)]
        sql = self._table.query or _select(self._table)
        paths = ReplyPaths(answer=None, documents=_DOCUMENTS)
        position = -1
        try:
            with closing(self._connected(driver, dsn)) as connection:
                for position, vector in enumerate(vectors):
                    written = f"[{','.join(map(repr, vector.tolist()))}]"
                    cursor = connection.execute(sql, {"embedding": written, "top_k": top_k})
                    names = [column.name for column in cursor.description or ()]
                    documents = [
                        _row(dict(zip(names, row, strict=True)), self._table.label)
                        for row in cursor.fetchall()
                    ]
                    reply = reply_of({"documents": documents}, paths)
                    yield position, without_secrets(reply, secrets).documents or ()
        except driver.Error as error:
            about = f"asked for {quoted(queries[position])}" if position >= 0 else "asked"
            raise self._explained(concealed(str(error), secrets), about, width) from None
        except ApplicationError as error:
            raise ApplicationError(f"{self.name}: {concealed(str(error), secrets)}") from None

    def _connected(self, driver: Any, dsn: str) -> Any:
        seconds = self._table.timeout
        connection = driver.connect(
            dsn,
            connect_timeout=max(2, round(seconds)),
            # A connection that is lost without a word is given up after the same time.
            tcp_user_timeout=round(seconds * 1000),
            application_name="fairgate",
        )
        connection.read_only = True
        connection.execute(
            "SELECT set_config('statement_timeout', %s, false)", [str(round(seconds * 1000))]
        )
        return connection

    def _explained(self, text: str, about: str, width: int) -> ApplicationError:
        """Return PostgreSQL's error in our words; that vectors differ in length has a remedy."""
        match = _WIDTHS.search(text)
        other = next((int(n) for n in match.groups() if int(n) != width), width) if match else width
        if other != width:
            return _other_width(self.name, other, width)
        return ApplicationError(
            f"{self.name}, {about}: {harmless(' '.join(text.split())[:300])!r}; check the "
            "address, and the table's columns"
        )


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise UsageError(
            "a retriever of kind `pgvector` needs psycopg, which cannot be imported "
            f"({quoted(str(error)[:100])}): pip install 'fairgate[pgvector]'"
        ) from error
    return psycopg


def _passwords(driver: Any, dsn: str, variable: str) -> list[str]:
    """Return the passwords in a connection string. Raises UsageError where it is none."""
    try:
        parts = driver.conninfo.conninfo_to_dict(dsn)
    except driver.Error:  # its text repeats parts of the string
        raise UsageError(
            f"the environment variable {quoted(variable)}, which `dsn_env` names, holds no "
            "connection string of PostgreSQL; expected postgresql://user:password@host/database"
        ) from None
    return [str(parts[name]) for name in ("password", "sslpassword") if parts.get(name)]


def _select(table: PgvectorSearch) -> str:
    """Return the query of a table: plain enough for pgvector's indexes."""
    nearness = f"{_name(table.embedding)} {_OPERATORS[table.distance]} %(embedding)s::vector"
    label = "" if table.label is None else f", {_name(table.label)} AS label"
    return (
        f"SELECT {_name(table.id)} AS id, {_name(table.text)} AS text{label}, "  # noqa: S608
        f"-({nearness}) AS score FROM {'.'.join(map(_name, (table.table or '').split('.')))} "
        f"ORDER BY {nearness} LIMIT %(top_k)s"
    )


def _name(name: str) -> str:
    """Return an identifier, quoted: nothing in it ends the name."""
    escaped = name.replace('"', '""').replace("%", "%%")
    return f'"{escaped}"'


def _row(row: dict[str, Any], flag: str | None) -> dict[str, Any]:
    """Return a row as JSON values: identifiers may be UUIDs.

    A label that is true or false is named after its column, as in a corpus: `toxic`, `non-toxic`.
    """
    for name in ("id", "label"):
        if row.get(name) is not None and not isinstance(row[name], bool):
            row[name] = str(row[name])
    if isinstance(row.get("label"), bool):
        column = flag or "label"
        row["label"] = column if row["label"] else f"non-{column}"
    if isinstance(row.get("score"), Decimal):
        row["score"] = float(row["score"])
    return row
