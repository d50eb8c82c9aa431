"""A corpus and an embedder become an index on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import RetrievalError
from fairgate.domain.ports import SILENT, Embedder, Progress, Vectors
from fairgate.retrieval.build_place import build_folder, sole_builder
from fairgate.retrieval.earlier_vectors import LENGTH_TOLERANCE, EarlierVectors
from fairgate.retrieval.index_folder import IndexFolder
from fairgate.retrieval.index_form import DamagedIndexError, OutdatedIndexError
from fairgate.retrieval.index_room import make_room
from fairgate.retrieval.index_writer import IndexWriter
from fairgate.retrieval.ranks import Corpus, require_documents
from fairgate.retrieval.unfinished_vectors import UnfinishedVectors

_EMBED_AT_ONCE = 4096
_ROWS_AT_ONCE = 8192
MOST_IN_STORE = 40_000
"""Documents up to which the store keeps an index's vectors too, for runners that have a store alone
(60 MB of 384 numbers each); those of greater indexes are kept beside it until it is whole."""


@runtime_checkable
class StoringEmbedder(Protocol):
    """An embedder that stores what it computes, batch by batch, as CachedEmbedder does."""

    def storing_in(self, store: UnfinishedVectors) -> Self:
        """Return the same embedder with another store."""
        ...

    def forget(self, keys: Sequence[str]) -> None:
        """Remove vectors from the store, by `embedding_key`."""
        ...


class IndexBuilder:
    """Builds an index in a stream; the same bytes whatever is known already.

    Vectors of earlier indexes of the same embedder are taken from there, the others are asked of
    the embedder. Where that is a StoringEmbedder, a build that was killed goes on where it was.
    """

    def __init__(
        self, corpus: Corpus, embedder: Embedder, path: Path, progress: Progress | None
    ) -> None:
        """Build into `path`, whose name is the index's fingerprint."""
        self._corpus = corpus
        self._embedder = embedder
        self._path = path
        self._progress = progress or SILENT

    def build(self) -> IndexFolder:
        """Return the index, built here or by another process that was first.

        Raises RetrievalError, StoreError, and what corpus and embedder raise.
        """
        with sole_builder(self._path, self._progress):
            try:
                found = IndexFolder(self._path, self._path.name)
                found.verify()
            except (FileNotFoundError, DamagedIndexError, OutdatedIndexError):
                self._write()
                found = IndexFolder(self._path, self._path.name)
                self._forget(make_room(self._path))
        return found

    def _write(self) -> None:
        with build_folder(self._path) as building:
            writer = IndexWriter(building, embedder=self._embedder.fingerprint)
            total = writer.write_documents(self._corpus.documents())
            require_documents(total)
            earlier = EarlierVectors(self._path.parent, self._embedder.fingerprint, writer.rows)
            missing = earlier.missing
            self._progress.start("index", total, total - len(missing))
            embedder = self._embedder
            if isinstance(embedder, StoringEmbedder) and total > MOST_IN_STORE:
                embedder = embedder.storing_in(UnfinishedVectors(self._path))
            writer.write_vectors(self._vectors(embedder, writer, earlier, missing))
            writer.finish(fingerprint=self._path.name, corpus=self._corpus.fingerprint)
            self._progress.finish()
        UnfinishedVectors(self._path).remove()

    def _vectors(
        self,
        embedder: Embedder,
        writer: IndexWriter,
        earlier: EarlierVectors,
        missing: npt.NDArray[np.int64],
    ) -> Iterator[Vectors]:
        """Yield the vectors of all documents in document order, block by block."""
        start = 0
        for first in range(0, max(1, len(missing)), _EMBED_AT_ONCE):
            new = missing[first : first + _EMBED_AT_ONCE]
            vectors = _embedded(embedder, writer.texts(new.tolist()))
            if earlier.dimensions and len(new) and vectors.shape[1] != earlier.dimensions:
                raise RetrievalError(
                    f"the embedder {self._embedder.fingerprint[:60]!r} gave vectors of "
                    f"{vectors.shape[1]} numbers where an index of its own below "
                    f"{self._path.parent} holds {earlier.dimensions}; expected one length: delete "
                    "that folder, it is built again"
                )
            is_last = first + _EMBED_AT_ONCE >= len(missing)
            end = len(writer.rows) if is_last else int(new[-1]) + 1
            for begin in range(start, end, _ROWS_AT_ONCE):
                stop = min(end, begin + _ROWS_AT_ONCE)
                block = np.zeros(
                    (stop - begin, earlier.dimensions or vectors.shape[1]), dtype=np.float32
                )
                earlier.fill(block, begin)
                if len(new):
                    inside = slice(*np.searchsorted(new, [begin, stop]))
                    block[new[inside] - begin] = vectors[inside]
                yield block
            self._progress.advance(len(new))
            start = end

    def _forget(self, keys: npt.NDArray[Any]) -> None:
        """Remove vectors from the store, by key."""
        if isinstance(self._embedder, StoringEmbedder) and len(keys):
            whole = np.ascontiguousarray(keys).astype("<u8", copy=False)
            self._embedder.forget([row.tobytes().hex() for row in whole])


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
