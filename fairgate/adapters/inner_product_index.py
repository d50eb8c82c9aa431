"""Exact retrieval by the inner product of vectors of any length, as Contriever was trained for.

Izacard et al., "Unsupervised Dense Information Retrieval with Contrastive Learning", 2022: mean
pooling, inner product, no normalisation, so a long vector is near to everything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from fairgate.domain.corpora import CorpusDocument
from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import Document
from fairgate.engine.ports import Embedder, Vectors

_VERSION = "inner-product-1"
"""Part of the fingerprint: raise it when equal vectors would give other documents or scores."""
_DECIMALS = 5
_FLOAT32_STEP = 2.0**-23


class Corpus(Protocol):
    """Documents in a fixed order."""

    @property
    def fingerprint(self) -> str:
        """Identify the documents."""
        ...

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield the documents in their order, ids unique."""
        ...


class InnerProductIndex:
    """A port `Retriever` in memory: ids and scores are those of a float64 brute-force search.

    Float32 products propose candidates; they are computed again in float64, rounded and ordered by
    (-score, document order), and more are fetched until no other document could belong.
    """

    def __init__(
        self, corpus: Corpus, embedder: Embedder, *, queries: Embedder | None = None
    ) -> None:
        """Name corpus and embedder; nothing is read or embedded before it is needed.

        `queries` embeds the queries, where the model puts another prompt before them.
        """
        self._corpus = corpus
        self._embedder = embedder
        self._queries = queries or embedder

    @property
    def fingerprint(self) -> str:
        """Identify corpus, embedders and scoring."""
        parts = [_VERSION, self._corpus.fingerprint, self._embedder.fingerprint]
        if self._queries.fingerprint != self._embedder.fingerprint:
            parts.append(self._queries.fingerprint)
        return hashlib.sha256("\x00".join(parts).encode()).hexdigest()

    @property
    def has_labels(self) -> bool:
        """Return whether every document carries a label."""
        return all(document.label is not None for document in self._documents)

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        """Return for each query its `top_k` documents. Raises RetrievalError if there are fewer."""
        size = len(self._documents)
        if not 1 <= top_k <= size:
            raise RetrievalError(
                f"top_k is {top_k:,}, the collection holds {size:,} documents; expected 1 to "
                f"{size:,}: lower `top_k`, or add documents"
            )
        wanted = self._queries.embed(list(queries))
        return [self._search(query, top_k) for query in wanted]

    def vectors(self, document_ids: Sequence[str]) -> Vectors | None:
        """Return None: without unit length, distances between vectors mean nothing."""
        del document_ids
        return None

    def _search(self, query: Vectors, top_k: int) -> list[Document]:
        rough = self._vectors @ query
        wide = query.astype(np.float64)
        length = float(np.sqrt((wide * wide).sum()))
        # Twice the worst rounding error of a float32 product of these lengths.
        error = 2 * len(wide) * _FLOAT32_STEP * length * self._longest
        limit = np.partition(rough, -top_k)[-top_k] - 2 * error - 10.0**-_DECIMALS
        rows = np.flatnonzero(rough >= limit)
        scores = (self._vectors[rows].astype(np.float64) * wide).sum(axis=1).round(_DECIMALS) + 0.0
        best = np.argsort(-scores, kind="stable")[:top_k]
        return [
            Document(id=d.id, text=d.text, label=d.label, score=float(scores[place]))
            for place, d in ((p, self._documents[int(rows[p])]) for p in best.tolist())
        ]

    @cached_property
    def _documents(self) -> list[CorpusDocument]:
        found = list(self._corpus.documents())
        if not found:
            raise RetrievalError("the collection holds no documents; expected at least one")
        return found

    @cached_property
    def _vectors(self) -> Vectors:
        return self._embedder.embed([document.text for document in self._documents])

    @cached_property
    def _longest(self) -> float:
        return float(np.linalg.norm(self._vectors.astype(np.float64), axis=1).max())
