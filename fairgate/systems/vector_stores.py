"""A vector store as the retriever: `retriever: {qdrant|chroma|pgvector: …}`.

The query is embedded by the policy's embedder, so that must be the model of the stored vectors.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from fairgate.domain.ports import Embedder, RevisedApplication
from fairgate.domain.schema import Access, Strict, Text
from fairgate.io.http_messages import keeps_secrets
from fairgate.systems.exchange import (
    Address,
    Attempts,
    Concurrency,
    PerSecond,
    Seconds,
    Variable,
    limits_of,
)

if TYPE_CHECKING:
    from fairgate.retrieval.http_stores import HttpStore, StoredAt

Key = Annotated[str, Field(pattern=r"^[^'\\\s]{1,200}$")]
"""Of a payload or of metadata; dots lead into nested objects."""
_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_$]{0,62}"
Column = Annotated[str, Field(pattern=f"^{_IDENTIFIER}$")]
Table = Annotated[str, Field(pattern=rf"^{_IDENTIFIER}(\.{_IDENTIFIER})?$")]


class StoreSearch(Strict):
    """A vector store, whichever."""

    revision: str | None = Field(
        default=None,
        description="What you change when the stored documents change. What was found is reused as "
        "long as it stays; without it every query is asked again in every run.",
    )
    timeout: Seconds = Field(default=30.0, description="Seconds to wait for one answer.")

    @property
    @abstractmethod
    def shown(self) -> str:
        """Return what reports call it."""

    @property
    @abstractmethod
    def accesses(self) -> list[Access]:
        """Return what it reaches, with secrets."""

    @abstractmethod
    def search(self, queries: Callable[[], Embedder]) -> RevisedApplication:
        """Return the search; nothing is asked yet. `queries` gives what embeds them."""


class HttpStoreSearch(StoreSearch):
    """A vector store over HTTP."""

    key_header: ClassVar[str]
    product: ClassVar[str]

    url: Address = Field(description="Address of the server. Without credentials.")
    collection: Text = Field(description="Name of the collection.")
    api_key_env: Variable | None = Field(
        default=None,
        description="NAME of the environment variable that holds the key; it is sent over https or "
        "to this machine only.",
    )
    id: Key | None = Field(
        default=None, description="Key of the document's identifier; default: the store's own."
    )
    label: Key = Field(default="label", description="Key of the document's label, if it has one.")
    attempts: Attempts = 4
    concurrency: Concurrency = 4
    per_second: PerSecond = None

    @model_validator(mode="after")
    def _sends_the_key_safely(self) -> Self:
        if self.api_key_env is not None and not keeps_secrets(self.url):
            raise ValueError(
                f"the key would be sent unencrypted to {self.url}; give it an https:// address, or "
                "leave out `api_key_env`"
            )
        return self

    @property
    def shown(self) -> str:
        """Return store, address and collection."""
        return f"{self.product} {self.url} {self.collection}"

    @property
    def accesses(self) -> list[Access]:
        """Return the address, with the variable that is sent there."""
        way = json.dumps([self.product, self.collection, *sorted(self.more.items())])
        return [Access("asks", self.url, self.api_key_env, way)]

    @property
    def more(self) -> Mapping[str, str]:
        """Return what only this store has."""
        return {}

    @property
    @abstractmethod
    def text_key(self) -> str:
        """Return where the text is."""

    @abstractmethod
    def store(self, stored: StoredAt) -> HttpStore:
        """Return the store at an address."""

    def search(self, queries: Callable[[], Embedder]) -> RevisedApplication:
        """Return the search over HTTP."""
        from fairgate.retrieval.http_stores import StoredAt
        from fairgate.retrieval.vector_search import VectorSearch

        stored = StoredAt(
            url=self.url.rstrip("/"),
            collection=self.collection,
            text=self.text_key,
            id=self.id,
            label=self.label,
            headers_env={self.key_header: self.api_key_env} if self.api_key_env else {},
            revision=self.revision,
            more=self.more,
        )
        return VectorSearch(self.store(stored), queries)


class QdrantSearch(HttpStoreSearch):
    """A collection of Qdrant."""

    key_header = "api-key"
    product = "qdrant"

    text: Key = Field(
        default="text",
        description="Key of the text in the payload; dots lead into nested objects. LangChain "
        "writes `page_content`.",
    )
    vector: Text | None = Field(
        default=None, description="Name of the vector to search, where the collection names them."
    )

    @property
    def more(self) -> Mapping[str, str]:
        """Return the name of the vector."""
        return {} if self.vector is None else {"vector": self.vector}

    @property
    def text_key(self) -> str:
        """Return the key in the payload."""
        return self.text

    def store(self, stored: StoredAt) -> HttpStore:
        """Return Qdrant."""
        from fairgate.retrieval.http_stores import Qdrant

        return Qdrant(stored, limits_of(self))


class ChromaSearch(HttpStoreSearch):
    """A collection of Chroma's server."""

    key_header = "x-chroma-token"
    product = "chroma"

    text: Key | None = Field(
        default=None, description="Key of the text in the metadata; default: Chroma's document."
    )
    tenant: Text = Field(default="default_tenant", description="Tenant of the collection.")
    database: Text = Field(default="default_database", description="Database of the collection.")

    @property
    def more(self) -> Mapping[str, str]:
        """Return tenant and database."""
        return {"tenant": self.tenant, "database": self.database}

    @property
    def text_key(self) -> str:
        """Return the key in the metadata; empty for Chroma's own document."""
        return self.text or ""

    def store(self, stored: StoredAt) -> HttpStore:
        """Return Chroma."""
        from fairgate.retrieval.http_stores import Chroma

        return Chroma(stored, limits_of(self))


class PgvectorSearch(StoreSearch):
    """A table of PostgreSQL with pgvector; needs `fairgate[pgvector]`."""

    dsn_env: Variable = Field(
        description="NAME of the environment variable with the connection string, such as "
        "`postgresql://user:password@host/database`."
    )
    table: Table | None = Field(default=None, description="Name, or `schema.name`.")
    id: Column = Field(default="id", description="Column of the document's identifier.")
    text: Column = Field(default="text", description="Column of the text.")
    label: Column | None = Field(default=None, description="Column of the label, if there is one.")
    embedding: Column = Field(default="embedding", description="Column of the vector.")
    distance: Literal["cosine", "euclidean", "inner_product"] = Field(
        default="cosine", description="What is nearest: `<=>`, `<->` or `<#>` of pgvector."
    )
    query: Text | None = Field(
        default=None,
        description="SQL instead of a table: gives `id`, `text` and, if known, `label` and "
        "`score`, nearest first, with `%(embedding)s::vector` and `%(top_k)s` in it.",
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.table is None) == (self.query is None):
            raise ValueError("needs one of `table` and `query`; keep one")
        for place in ("%(embedding)s", "%(top_k)s"):
            if self.query is not None and place not in self.query:
                raise ValueError(f"the query lacks `{place}`, so it would find the same every time")
        return self

    @property
    def shown(self) -> str:
        """Return the table; the address is secret."""
        return f"pgvector {self.table or 'query'}"

    @property
    def accesses(self) -> list[Access]:
        """Return the database, which only the variable names."""
        way = json.dumps(self.model_dump(exclude={"revision", "timeout"}), sort_keys=True)
        return [Access("asks", "PostgreSQL", self.dsn_env, way)]

    def search(self, queries: Callable[[], Embedder]) -> RevisedApplication:
        """Return the search by SQL."""
        from fairgate.retrieval.vector_search import Pgvector, TableAt, VectorSearch

        table = TableAt(
            dsn_env=self.dsn_env,
            table=self.table or "",
            id=self.id,
            text=self.text,
            label=self.label,
            embedding=self.embedding,
            distance=self.distance,
            query=self.query,
            revision=self.revision,
            seconds=self.timeout,
        )
        return VectorSearch(Pgvector(table), queries)
