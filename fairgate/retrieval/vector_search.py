"""A search in a vector store: queries are embedded here, and the store finds the nearest documents.

A store is one file beside this one: what it is asked, and where documents stand in its answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import groupby
from typing import Protocol

from fairgate.domain.applications import Question, Reply
from fairgate.domain.errors import ApplicationError
from fairgate.domain.executions import Document
from fairgate.domain.ports import Embedder, Vectors
from fairgate.io.json_paths import JsonPath, json_path


class VectorStore(Protocol):
    """Finds the documents whose vectors are nearest to a query's."""

    @property
    def name(self) -> str:
        """Return, for messages, which store and collection it is."""
        ...

    @property
    def revision(self) -> str | None:
        """Return what changes when the stored documents do; None where it is not known."""
        ...

    @property
    def fingerprint(self) -> str:
        """Identify the collection, how it is asked, and its revision."""
        ...

    def search(
        self, vectors: Iterable[Vectors], width: int, queries: Sequence[str], top_k: int
    ) -> Generator[tuple[int, tuple[Document, ...]], None, None]:
        """Yield `(position, documents nearest first)` as they come; `queries` are for messages.

        Each of the `vectors` has `width` numbers and is taken when its query is asked.
        Raises ApplicationError, also where the collection's vectors have another length.
        """
        ...


class VectorSearch:
    """A port `Application` that finds documents and answers nothing."""

    def __init__(self, store: VectorStore, embedder: Callable[[], Embedder]) -> None:
        """Take the store and what embeds queries; nothing is loaded or asked yet."""
        self._store = store
        self._embedder = embedder

    @property
    def name(self) -> str:
        """Say which store it is."""
        return self._store.name

    @property
    def revision(self) -> str | None:
        """Return what the user names it."""
        return self._store.revision

    @property
    def fingerprint(self) -> str:
        """Identify store, revision and embedder."""
        parts = f"{self._store.fingerprint}\0{self._embedder().fingerprint}"
        return hashlib.sha256(parts.encode()).hexdigest()

    def ask(self, questions: Sequence[Question]) -> Generator[tuple[int, Reply], None, None]:
        """Yield `(position in questions, reply)`; all are asked for as many documents."""
        if not questions:
            return
        # By position: what is iterated counts as asked, and a budget may end that early.
        queries = [questions[place].query for place in range(len(questions))]
        vectors = self._embedder().embed(queries)
        asked = (vectors[place] for place, _ in enumerate(questions))
        top_k = questions[0].top_k
        for position, found in self._store.search(asked, vectors.shape[1], queries, top_k):
            yield position, Reply(answer="", documents=in_one_order(found))


def in_one_order(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the documents as they came, equally near ones by id: stores leave that order open."""
    return tuple(
        document
        for score, group in groupby(documents, key=lambda document: document.score)
        for document in (group if score is None else sorted(group, key=_id))
    )


def _id(document: Document) -> str:
    return document.id or ""


def require_width(name: str, expected: int, found: int) -> None:
    """Raise ApplicationError where a query's vector has another length than the stored ones."""
    if expected != found:
        raise other_width(name, expected, found)


def other_width(name: str, expected: int, found: int) -> ApplicationError:
    """Return what is wrong where stored vectors have `expected` numbers and a query's `found`."""
    return ApplicationError(
        f"{name} holds vectors of {expected:,} numbers, and the policy's embedder gives "
        f"{found:,}; name in `retriever.embedder` the model that the documents were embedded with"
    )


def path_of_key(base: str, key: str) -> JsonPath:
    """Return the path of a key below `base`; dots lead into nested objects."""
    return json_path(base + "".join(f"['{part}']" for part in key.split(".")))
