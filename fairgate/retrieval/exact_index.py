"""Exact retrieval by the inner product, and what every index that searches a corpus shares."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import CorpusDocument, Document
from fairgate.domain.ports import Embedder, Vectors

_VERSION = "inner-product-1"
"""Part of the fingerprint: raise it when equal vectors would give other documents or scores."""
DECIMALS = 5
_FLOAT32_STEP = 2.0**-23
_SEARCH_BYTES = 64 << 20
"""Most memory that the float32 products of one step take."""
_ROWS_AT_ONCE = 8192
Scores = npt.NDArray[np.float64]
RowNumbers = npt.NDArray[np.int64]


class Corpus(Protocol):
    """Documents in a fixed order."""

    @property
    def fingerprint(self) -> str:
        """Identify the documents."""
        ...

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield the documents in their order, ids unique."""
        ...


def require_documents(size: int) -> None:
    """Raise RetrievalError where a corpus is empty."""
    if not size:
        raise RetrievalError("the corpus holds no documents; expected at least one")


def require_depth(top_k: int, size: int) -> None:
    """Raise RetrievalError where a corpus holds fewer than `top_k` documents."""
    if not 1 <= top_k <= size:
        raise RetrievalError(
            f"top_k is {top_k:,}, the corpus holds {size:,} documents; expected 1 to {size:,}: "
            "lower `top_k`, or add documents"
        )


def ranked(rows: RowNumbers, scores: Scores, decimals: int) -> tuple[RowNumbers, Scores]:
    """Return rows and rounded scores by (-score, row), best first; `rows` ascend.

    Rounded first, so that the last bits of a float decide no order; `+ 0.0` turns -0.0 into 0.0.
    """
    rounded = scores.round(decimals) + 0.0
    order = np.argsort(-rounded, kind="stable")
    return rows[order], rounded[order]


def as_found(document: CorpusDocument, score: float) -> Document:
    """Return a document of the corpus as a search returns it."""
    return Document(id=document.id, text=document.text, label=document.label, score=score)


class IndexInMemory:
    """What searches all documents of a corpus, read when it is first asked. Has no vectors."""

    def __init__(self, corpus: Corpus) -> None:
        """Name the corpus; nothing is read yet."""
        self._corpus = corpus

    def vectors(self, document_ids: Sequence[str]) -> Vectors | None:
        """Return None: distances between documents mean nothing."""
        del document_ids
        return None

    @cached_property
    def _documents(self) -> list[CorpusDocument]:
        """Raises RetrievalError where there are none."""
        documents = list(self._corpus.documents())
        require_documents(len(documents))
        return documents

    def _best_documents(self, rows: RowNumbers, scores: Scores, top_k: int) -> list[Document]:
        """Return the best of these rows, which ascend."""
        best = zip(
            *(column[:top_k].tolist() for column in ranked(rows, scores, DECIMALS)), strict=True
        )
        return [as_found(self._documents[row], score) for row, score in best]


class InnerProductIndex(IndexInMemory):
    """A port `Retriever` in memory: ids and scores are those of a float64 brute-force search.

    Float32 products propose candidates; they are computed again in float64, rounded and ordered by
    (-score, document order), and more are fetched until no other document could belong.

    Vectors are of any length, as Contriever was trained for: Izacard et al., "Unsupervised Dense
    Information Retrieval with Contrastive Learning", 2022: mean pooling, inner product, no
    normalisation, so a long vector is near to everything.
    """

    at_once = 2048
    """All vectors are read for a few queries as for many."""

    def __init__(
        self, corpus: Corpus, embedder: Embedder, *, queries: Embedder | None = None
    ) -> None:
        """Name corpus and embedder; nothing is read or embedded before it is needed.

        `queries` embeds the queries, where the model puts another prompt before them.
        """
        super().__init__(corpus)
        self._embedder = embedder
        self._queries = queries or embedder

    @property
    def fingerprint(self) -> str:
        """Identify corpus, embedders and scoring."""
        parts = [_VERSION, self._corpus.fingerprint, self._embedder.fingerprint]
        if self._queries.fingerprint != self._embedder.fingerprint:
            parts.append(self._queries.fingerprint)
        return hashlib.sha256("\x00".join(parts).encode()).hexdigest()

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        """Return for each query its `top_k` documents. Raises RetrievalError if there are fewer."""
        require_depth(top_k, len(self._documents))
        wanted = self._queries.embed(list(queries))
        rows = max(1, _SEARCH_BYTES // (4 * len(self._documents)))
        rankings: list[list[Document]] = []
        for start in range(0, len(wanted), rows):
            part = wanted[start : start + rows]
            rough = part @ self._vectors.T
            rankings += [
                self._search(*query_and_scores, top_k)
                for query_and_scores in zip(part, rough, strict=True)
            ]
        return rankings

    def _search(self, query: Vectors, rough: Vectors, top_k: int) -> list[Document]:
        wide = query.astype(np.float64)
        length = float(np.sqrt((wide * wide).sum()))
        # Twice the worst rounding error of a float32 product of these lengths.
        error = 2 * len(wide) * _FLOAT32_STEP * length * self._longest
        limit = np.partition(rough, -top_k)[-top_k] - 2 * error - 10.0**-DECIMALS
        rows = np.flatnonzero(rough >= limit)
        scores = (self._vectors[rows].astype(np.float64) * wide).sum(axis=1)
        return self._best_documents(rows, scores, top_k)

    @cached_property
    def _vectors(self) -> Vectors:
        return self._embedder.embed([document.text for document in self._documents])

    @cached_property
    def _longest(self) -> float:
        blocks = range(0, len(self._vectors), _ROWS_AT_ONCE)
        wide = (self._vectors[i : i + _ROWS_AT_ONCE].astype(np.float64) for i in blocks)
        return max(float(np.linalg.norm(block, axis=1).max()) for block in wide)
