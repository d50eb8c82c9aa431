"""Exact inner-product retrieval whose answers do not depend on batch, threads or ties."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import CorpusDocument, Document
from fairgate.domain.ports import SILENT, Embedder, Progress, Vectors
from fairgate.retrieval.embedding_cache import CachedEmbedder
from fairgate.retrieval.exact_index import (
    Corpus,
    as_found,
    ranked,
    require_depth,
    require_documents,
)
from fairgate.retrieval.index_cache import (
    LENGTH_TOLERANCE,
    EarlierVectors,
    build_folder,
    make_room,
    sole_builder,
)
from fairgate.retrieval.index_folder import (
    DamagedIndexError,
    IndexFolder,
    IndexWriter,
    OutdatedIndexError,
)

_VERSION = "flat-ip-1"
"""Part of the fingerprint: raise it when equal vectors would give other documents or scores."""
_DECIMALS = 6
_SEARCH_BYTES = 64 << 20
"""Most memory that the candidates of one call of FAISS take."""
_ROWS_AT_ONCE = 8192
_EMBED_AT_ONCE = 4096
MOST_IN_STORE = 40_000
"""Documents up to which the store keeps an index's vectors too, for runners that have a store alone
(60 MB of 384 numbers each); those of greater indexes leave it once the index is whole."""
# A float32 inner product of unit vectors is off by at most about d·2⁻²⁴; twice that, for d ≤ 1024.
_FLOAT32_ERROR = 1.3e-4


class FlatIndex:
    """Retrieves by the inner product of unit vectors, FAISS `IndexFlatIP` (P1, section 4.1).

    FAISS proposes candidates in float32; their scores are computed again in float64 from the
    stored vectors, rounded to 6 decimals and ordered by (-score, document order). Candidates are
    fetched until no other document could belong to the top k, so that ids and scores are those of
    a brute-force float64 search for any batch of queries and any number of threads.

    The index lives in `cache_dir/indexes/<fingerprint>`, mapped and not loaded: built when it is
    missing, rebuilt and reported in `notices` when it is damaged. Building asks `embedder` for the
    texts that no earlier index of the same embedder holds.
    """

    at_once = 2048
    """FAISS reads all vectors for a few queries as for many: 64 at once take five times as long."""

    def __init__(
        self,
        corpus: Corpus,
        embedder: Embedder,
        *,
        cache_dir: Path | str,
        progress: Progress = SILENT,
        queries: Embedder | None = None,
    ) -> None:
        """Name corpus and embedder; nothing is read or built before it is needed.

        `queries` embeds the queries, where the model puts another prompt before them.
        """
        self._corpus = corpus
        self._embedder = embedder
        self._queries = queries or embedder
        self._root = Path(cache_dir) / "indexes"
        self._progress = progress
        self._opened: IndexFolder | None = None
        self._verified = False
        self.notices: list[str] = []

    @property
    def fingerprint(self) -> str:
        """Identify corpus, embedders, index kind and scoring."""
        if self._queries.fingerprint == self._embedder.fingerprint:
            return self._index_fingerprint
        parts = (self._index_fingerprint, self._queries.fingerprint)
        return hashlib.sha256("\x00".join(parts).encode()).hexdigest()

    @property
    def _index_fingerprint(self) -> str:
        """Identify what is stored: it does not change with the prompt of queries."""
        parts = (_VERSION, self._corpus.fingerprint, self._embedder.fingerprint)
        return hashlib.sha256("\x00".join(parts).encode()).hexdigest()

    @property
    def size(self) -> int:
        """Return the number of documents."""
        return self._folder().size

    def retrieve(
        self, queries: Sequence[str], top_k: int, changed: Sequence[CorpusDocument | None] = ()
    ) -> list[list[Document]]:
        """Return for each query its `top_k` documents by (-score, document order).

        With `changed`, one for each query, as an index would in which that document has another
        text: a score depends on query and document alone. Raises RetrievalError where the corpus
        holds fewer than `top_k` documents, or not the changed one.
        """
        folder = self._folder(verified=True)
        require_depth(top_k, folder.size)
        # One more, because the changed document may leave the list.
        depth = min(folder.size, top_k + bool(changed))
        texts = {text: n for n, text in enumerate(dict.fromkeys(d.text for d in changed if d))}
        vectors = _embedded(self._embedder, [*texts])
        rankings: list[list[Document]] = []
        for start in range(0, len(queries), self.at_once):
            batch = self._queries.embed(queries[start : start + self.at_once])
            for offset, rows_and_scores in enumerate(self._search(folder, batch, depth)):
                best = dict(zip(*rows_and_scores, strict=True))
                if (document := changed[start + offset] if changed else None) is not None:
                    own, only = vectors[texts[document.text]][None], np.zeros(1, dtype=np.int64)
                    best[_position(folder, document.id)] = float(
                        _rescored(own, only, batch[offset])[1][0]
                    )
                ranked_rows = sorted(best.items(), key=lambda item: (-item[1], item[0]))[:top_k]
                documents = [as_found(folder.document(row), score) for row, score in ranked_rows]
                rankings.append(
                    [
                        replace(d, text=document.text) if document and d.id == document.id else d
                        for d in documents
                    ]
                )
        return rankings

    def text_of(self, document_id: str) -> str | None:
        """Text of a document; None where the corpus has none of that id."""
        folder = self._folder()
        position = folder.position(document_id)
        return None if position is None else folder.document(position).text

    def vectors(self, document_ids: Sequence[str]) -> Vectors:
        """Return float32 `[n, d]` unit vectors. Raises RetrievalError for an unknown id."""
        folder = self._folder(verified=True)
        positions = [_position(folder, id_) for id_ in document_ids]
        return np.asarray(folder.vectors[positions], dtype=np.float32)

    def _search(
        self, folder: IndexFolder, queries: Vectors, top_k: int
    ) -> list[tuple[list[int], list[float]]]:
        """Return positions and rounded scores per query, over-fetching until nothing can follow."""
        if queries.shape[1:] != folder.vectors.shape[1:] or not np.isfinite(queries).all():
            raise RetrievalError(
                f"the embedder {self._queries.fingerprint[:60]!r} gave queries of shape "
                f"{queries.shape}, or values that are not finite; expected finite vectors of "
                f"{folder.vectors.shape[1]} dimensions: check the model"
            )
        results: list[tuple[list[int], list[float]]] = [([], [])] * len(queries)
        pending = np.arange(len(queries))
        fetch = min(folder.size, max(2 * top_k, top_k + 16))
        while len(pending):
            unsure: list[int] = []
            # Candidates and their scores take 12 bytes each; a query that needs all, 12 a document.
            rows = max(1, _SEARCH_BYTES // (12 * fetch))
            for start in range(0, len(pending), rows):
                part = pending[start : start + rows]
                scores32, candidates = self._candidates(folder, queries[part], fetch)
                for row, query in enumerate(part.tolist()):
                    positions, scores = _rescored(folder.vectors, candidates[row], queries[query])
                    if not np.isfinite(scores).all():
                        raise folder.damaged("a vector holds a value that is no number")
                    safe = scores[top_k - 1] - 0.5 * 10**-_DECIMALS - _FLOAT32_ERROR
                    if fetch < folder.size and scores32[row, -1] >= safe:
                        unsure.append(query)
                    results[query] = (positions[:top_k].tolist(), scores[:top_k].tolist())
            pending = np.array(unsure, dtype=np.int64)
            fetch = min(folder.size, 4 * fetch)
        return results

    def _candidates(self, folder: IndexFolder, queries: Vectors, fetch: int) -> Any:
        """Search with FAISS. Raises RetrievalError where it lacks memory, or is not here."""
        try:
            import faiss

            return faiss.knn(queries, folder.vectors, fetch, faiss.METRIC_INNER_PRODUCT)
        except (RuntimeError, MemoryError, ImportError) as error:
            mebibytes = folder.vectors.size * 4 >> 20
            raise RetrievalError(
                f"FAISS cannot search the index ({type(error).__name__}: {str(error)[:200]}); it "
                f"maps {folder.size:,} vectors, {mebibytes:,} MiB: allow more memory or address "
                "space (`ulimit -v`), or prepare a smaller corpus"
            ) from error

    def _folder(self, *, verified: bool = False) -> IndexFolder:
        """Return the index on disk, built or rebuilt if needed; checksums once a process."""
        if self._opened is None or (verified and not self._verified):
            fingerprint = self._index_fingerprint
            path = self._root / fingerprint
            self._verified = verified
            try:
                self._opened = IndexFolder(path, fingerprint)
                if verified:
                    self._opened.verify()
            except (FileNotFoundError, OutdatedIndexError):
                self._build(path)
            except DamagedIndexError as damage:
                notice = f"{path}: the index was damaged ({damage}); it was built again"
                self.notices += [] if notice in self.notices else [notice]
                self._build(path)
        if self._opened is None:
            raise RetrievalError(f"{self._root}: the index vanished while it was opened; run again")
        return self._opened

    def _build(self, path: Path) -> None:
        self._opened = built(self._corpus, self._embedder, path, self._progress)
        self._verified = True


def _position(folder: IndexFolder, id_: str) -> int:
    """Return the row of a document. Raises RetrievalError for an unknown id."""
    if (position := folder.position(id_)) is None:
        raise RetrievalError(
            f"document {id_!r:.80} is not in the index; expected an id of the corpus: the stored "
            "retrieval, or `document_id` of a source, belongs to another corpus"
        )
    return position


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


def built(corpus: Corpus, embedder: Embedder, path: Path, progress: Progress) -> IndexFolder:
    """Return the index at `path`, whose name is its fingerprint: built here or by another process.

    Built in a stream; the same bytes whatever is known already. Vectors of earlier indexes of the
    same embedder are taken from there, the others are asked of the embedder. Where that is a
    CachedEmbedder, a build that was killed goes on where it was.

    Raises RetrievalError, StoreError, and what corpus and embedder raise.
    """
    with sole_builder(path, progress):
        try:
            index = IndexFolder(path, path.name)
            index.verify()
        except (FileNotFoundError, DamagedIndexError, OutdatedIndexError):
            embedded = _write(corpus, embedder, path, progress)
            index = IndexFolder(path, path.name)
            gone = [make_room(path)]
            if index.size > MOST_IN_STORE:
                gone.append(index.rows["key"][embedded])
            if isinstance(embedder, CachedEmbedder):
                keys = np.ascontiguousarray(np.concatenate(gone)).astype("<u8", copy=False)
                embedder.forget([row.tobytes().hex() for row in keys])
    return index


def _write(
    corpus: Corpus, embedder: Embedder, path: Path, progress: Progress
) -> npt.NDArray[np.int64]:
    """Build the folder; return the positions of documents that no earlier index held."""
    with build_folder(path) as building:
        writer = IndexWriter(building, embedder=embedder.fingerprint)
        total = writer.write_documents(corpus.documents())
        require_documents(total)
        earlier = EarlierVectors(path.parent, embedder.fingerprint, writer.rows)
        progress.start("index", total, total - len(earlier.missing))
        writer.write_vectors(_vectors(embedder, writer, earlier, progress))
        writer.finish(fingerprint=path.name, corpus=corpus.fingerprint)
        progress.finish()
    return earlier.missing


def _vectors(
    embedder: Embedder, writer: IndexWriter, earlier: EarlierVectors, progress: Progress
) -> Iterator[Vectors]:
    """Yield the vectors of all documents in document order, block by block."""
    start, missing = 0, earlier.missing
    for first in range(0, max(1, len(missing)), _EMBED_AT_ONCE):
        new = missing[first : first + _EMBED_AT_ONCE]
        vectors = _embedded(embedder, writer.texts(new.tolist()))
        if earlier.dimensions and len(new) and vectors.shape[1] != earlier.dimensions:
            raise RetrievalError(
                f"the embedder {embedder.fingerprint[:60]!r} gave vectors of {vectors.shape[1]} "
                f"numbers where an index of its own below {earlier.root} holds "
                f"{earlier.dimensions}; expected one length: delete that folder, it is built again"
            )
        is_last = first + _EMBED_AT_ONCE >= len(missing)
        end = len(writer.rows) if is_last else int(new[-1]) + 1
        for begin in range(start, end, _ROWS_AT_ONCE):
            stop = min(end, begin + _ROWS_AT_ONCE)
            shape = (stop - begin, earlier.dimensions or vectors.shape[1])
            block = np.zeros(shape, dtype=np.float32)
            earlier.fill(block, begin)
            if len(new):
                inside = slice(*np.searchsorted(new, [begin, stop]))
                block[new[inside] - begin] = vectors[inside]
            yield block
        progress.advance(len(new))
        start = end


def _embedded(embedder: Embedder, texts: list[str]) -> Vectors:
    if not texts:
        return np.zeros((0, 0), dtype=np.float32)
    vectors = embedder.embed(texts)
    norms = np.linalg.norm(vectors, axis=1)
    if len(vectors) != len(texts) or not np.allclose(norms, 1.0, atol=LENGTH_TOLERANCE):
        raise RetrievalError(
            f"the embedder {embedder.fingerprint[:60]!r} gave {len(vectors)} vectors "
            f"for {len(texts)} texts, lengths {norms.min():.4f} to {norms.max():.4f}; "
            "expected one vector of length 1 a text: normalise its output"
        )
    return vectors
