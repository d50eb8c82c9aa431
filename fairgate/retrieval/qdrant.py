"""A collection of Qdrant over its HTTP API: `POST /collections/<name>/points/query` (1.10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import quote

from fairgate.domain.errors import ApplicationError
from fairgate.domain.executions import Document
from fairgate.domain.wording import listed, quoted
from fairgate.io.json_paths import json_path
from fairgate.io.replies import ReplyPaths, reply_of
from fairgate.retrieval.http_store import HttpStore
from fairgate.retrieval.vector_search import path_of_key, require_width

_POINTS = json_path("$.result.points")
_VECTORS = json_path("$.result.config.params.vectors")


class Qdrant(HttpStore):
    """`more["vector"]` is the name of the vector that is searched, where it has one."""

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
