"""A collection of Chroma's server over its HTTP API, version 2 (Chroma 1.0)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from urllib.parse import quote

from fairgate.domain.errors import ApplicationError
from fairgate.domain.executions import Document
from fairgate.io.json_paths import json_path
from fairgate.io.replies import ReplyPaths, reply_of
from fairgate.retrieval.http_store import HttpStore
from fairgate.retrieval.vector_search import path_of_key, require_width

_COLUMNS = ("ids", "documents", "metadatas", "distances")


class Chroma(HttpStore):
    """The score of a document is its distance, negated: the nearest has the greatest.

    `more` has `tenant` and `database`; texts are Chroma's documents where `text` is empty.
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
