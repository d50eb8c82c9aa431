"""Exact inner-product retrieval whose answers do not depend on batch, threads or ties."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import CorpusDocument, Document
from fairgate.domain.ports import SILENT, Embedder, Progress, Vectors
from fairgate.retrieval.exact_index import (
    Corpus,
    IndexInMemory,
    as_found,
    ranked,
    require_depth,
)

_VERSION, _OF_ANY_LENGTH = "flat-ip-1", "inner-product-1"
"""Part of the fingerprint: raise it when equal vectors would give other documents or scores."""
_DECIMALS = 6
_SEARCH_BYTES = 64 << 20
"""Most memory that the candidates of one call of FAISS take."""
_ROWS_AT_ONCE = 8192
_EMBED_AT_ONCE = 4096
_LENGTH_TOLERANCE = 1e-3
"""How far from 1 the length of a unit vector may be."""
_FLOAT32_STEP = 2.0**-23


class FlatIndex(IndexInMemory):
    """Retrieves by the inner product of unit vectors, FAISS `IndexFlatIP` (P1, section 4.1).

    FAISS proposes candidates in float32; their scores are computed again in float64, rounded to 6
    decimals and ordered by (-score, document order). Candidates are fetched until no other document
    could belong to the top k, so that ids and scores are those of a brute-force float64 search for
    any batch of queries and any number of threads.

    Vectors of any length are searched with `unit=False`, as Contriever was trained for: Izacard et
    al., "Unsupervised Dense Information Retrieval with Contrastive Learning", 2022: a long vector
    is near to everything, and distances between documents mean nothing.

    All vectors are in memory while it searches. Behind the store (`CachedEmbedder`) no text is
    embedded twice, so that a corpus that changes by 1 % embeds 1 %.
    """

    at_once = 2048
    """FAISS reads all vectors for a few queries as for many: 64 at once take five times as long."""

    def __init__(
        self,
        corpus: Corpus,
        embedder: Embedder,
        *,
        progress: Progress = SILENT,
        queries: Embedder | None = None,
        unit: bool = True,
    ) -> None:
        """Name corpus and embedder; nothing is read or embedded before it is needed.

        `queries` embeds the queries, where the model puts another prompt before them.
        """
        super().__init__(corpus)
        self._embedder = embedder
        self._queries = queries or embedder
        self._progress = progress
        self._unit = unit

    @property
    def fingerprint(self) -> str:
        """Identify corpus, embedders, index kind and scoring."""
        version = _VERSION if self._unit else _OF_ANY_LENGTH
        parts = (version, self._corpus.fingerprint, self._embedder.fingerprint)
        of_documents = hashlib.sha256("\x00".join(parts).encode()).hexdigest()
        if self._queries.fingerprint == self._embedder.fingerprint:
            return of_documents
        return hashlib.sha256(f"{of_documents}\x00{self._queries.fingerprint}".encode()).hexdigest()

    def retrieve(
        self, queries: Sequence[str], top_k: int, changed: Sequence[CorpusDocument | None] = ()
    ) -> list[list[Document]]:
        """Return for each query its `top_k` documents by (-score, document order).

        With `changed`, one for each query, as an index would in which that document has another
        text: a score depends on query and document alone. Raises RetrievalError where the corpus
        holds fewer than `top_k` documents, or not the changed one.
        """
        require_depth(top_k, len(self._documents))
        # One more, because the changed document may leave the list.
        depth = min(len(self._documents), top_k + bool(changed))
        texts = {text: n for n, text in enumerate(dict.fromkeys(d.text for d in changed if d))}
        vectors = self._embedded([*texts])
        rankings: list[list[Document]] = []
        for start in range(0, len(queries), self.at_once):
            batch = self._queries.embed(queries[start : start + self.at_once])
            for offset, rows_and_scores in enumerate(self._search(batch, depth)):
                best = dict(zip(*rows_and_scores, strict=True))
                if (document := changed[start + offset] if changed else None) is not None:
                    own, only = vectors[texts[document.text]][None], np.zeros(1, dtype=np.int64)
                    [score] = _rescored(own, only, batch[offset])[1].tolist()
                    best[self._position(document.id)] = score
                ranked_rows = sorted(best.items(), key=lambda item: (-item[1], item[0]))[:top_k]
                documents = [as_found(self._documents[row], score) for row, score in ranked_rows]
                rankings.append(
                    [
                        replace(d, text=document.text) if document and d.id == document.id else d
                        for d in documents
                    ]
                )
        return rankings

    def text_of(self, document_id: str) -> str | None:
        """Text of a document; None where the corpus has none of that id."""
        position = self._positions.get(document_id)
        return None if position is None else self._documents[position].text

    def vectors(self, document_ids: Sequence[str]) -> Vectors | None:
        """Return float32 `[n, d]` unit vectors; None where they are of any length.

        Raises RetrievalError for an unknown id.
        """
        if not self._unit:
            return None
        documents = [self._documents[self._position(id_)] for id_ in document_ids]
        return self._embedded([document.text for document in documents])

    def _search(self, queries: Vectors, top_k: int) -> list[tuple[list[int], list[float]]]:
        """Return positions and rounded scores per query, over-fetching until nothing can follow."""
        size, dimensions = self._vectors.shape
        if queries.shape[1:] != (dimensions,) or not np.isfinite(queries).all():
            raise RetrievalError(
                f"the embedder {self._queries.fingerprint[:60]!r} gave queries of shape "
                f"{queries.shape}, or values that are not finite; expected finite vectors of "
                f"{dimensions} dimensions: check the model"
            )
        # Twice the worst rounding error of a float32 product of vectors of these lengths.
        errors = 2 * dimensions * _FLOAT32_STEP * self._longest * np.linalg.norm(queries, axis=1)
        results: list[tuple[list[int], list[float]]] = [([], [])] * len(queries)
        pending = np.arange(len(queries))
        fetch = min(size, max(2 * top_k, top_k + 16))
        while len(pending):
            unsure: list[int] = []
            # Candidates and their scores take 12 bytes each; a query that needs all, 12 a document.
            rows = max(1, _SEARCH_BYTES // (12 * fetch))
            for start in range(0, len(pending), rows):
                part = pending[start : start + rows]
                scores32, candidates = self._candidates(queries[part], fetch)
                for row, query in enumerate(part.tolist()):
                    positions, scores = _rescored(self._vectors, candidates[row], queries[query])
                    safe = scores[top_k - 1] - 0.5 * 10**-_DECIMALS - errors[query]
                    if fetch < size and scores32[row, -1] >= safe:
                        unsure.append(query)
                    results[query] = (positions[:top_k].tolist(), scores[:top_k].tolist())
            pending = np.array(unsure, dtype=np.int64)
            fetch = min(size, 4 * fetch)
        return results

    def _candidates(self, queries: Vectors, fetch: int) -> Any:
        """Search with FAISS. Raises RetrievalError where it lacks memory, or is not here."""
        try:
            import faiss

            return faiss.knn(queries, self._vectors, fetch, faiss.METRIC_INNER_PRODUCT)
        except (RuntimeError, MemoryError, ImportError) as error:
            size, mebibytes = len(self._vectors), self._vectors.nbytes >> 20
            raise RetrievalError(
                f"FAISS cannot search the index ({type(error).__name__}: {str(error)[:200]}); it "
                f"holds {size:,} vectors, {mebibytes:,} MiB: allow more memory or address space "
                "(`ulimit -v`), or prepare a smaller corpus"
            ) from error

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {document.id: position for position, document in enumerate(self._documents)}

    def _position(self, id_: str) -> int:
        """Return the row of a document. Raises RetrievalError for an unknown id."""
        if (position := self._positions.get(id_)) is None:
            raise RetrievalError(
                f"document {id_!r:.80} is not in the index; expected an id of the corpus: the "
                "stored retrieval, or `document_id` of a source, belongs to another corpus"
            )
        return position

    @cached_property
    def _vectors(self) -> Vectors:
        """Float32 `[documents, dimensions]`, in document order."""
        documents = self._documents
        vectors: Vectors | None = None
        self._progress.start("index", len(documents), 0)
        for start in range(0, len(documents), _EMBED_AT_ONCE):
            block = self._embedded([d.text for d in documents[start : start + _EMBED_AT_ONCE]])
            if vectors is None:
                vectors = np.empty((len(documents), block.shape[1]), dtype=np.float32)
            vectors[start : start + len(block)] = block
            self._progress.advance(len(block))
        self._progress.finish()
        assert vectors is not None  # noqa: S101 (an index has documents)
        return vectors

    @cached_property
    def _longest(self) -> float:
        blocks = range(0, len(self._vectors), _ROWS_AT_ONCE)
        lengths = (np.linalg.norm(self._vectors[i : i + _ROWS_AT_ONCE], axis=1) for i in blocks)
        return max(float(block.max()) for block in lengths)

    def _embedded(self, texts: list[str]) -> Vectors:
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        vectors = self._embedder.embed(texts)
        norms = np.linalg.norm(vectors, axis=1)
        is_unit = not self._unit or np.allclose(norms, 1.0, atol=_LENGTH_TOLERANCE)
        if len(vectors) != len(texts) or not np.isfinite(norms).all() or not is_unit:
            raise RetrievalError(
                f"the embedder {self._embedder.fingerprint[:60]!r} gave {len(vectors)} vectors "
                f"for {len(texts)} texts, lengths {norms.min():.4f} to {norms.max():.4f}; "
                "expected one vector of length 1 a text: normalise its output"
            )
        return vectors


def _rescored(
    vectors: Vectors, candidates: npt.NDArray[np.int64], query: Vectors
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return candidates and rounded float64 scores by (-score, document order)."""
    positions = np.sort(candidates)
    wide = query.astype(np.float64)
    parts = (positions[i : i + _ROWS_AT_ONCE] for i in range(0, len(positions), _ROWS_AT_ONCE))
    # Products are added along each row by itself: a matrix product's last bits would depend on how
    # many rows there are.
    scores = [(vectors[part].astype(np.float64) * wide).sum(axis=1) for part in parts]
    return ranked(positions, np.concatenate(scores), _DECIMALS)
