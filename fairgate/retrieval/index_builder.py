"""A corpus and an embedder become an index on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import CorpusDocument, embedding_key
from fairgate.domain.ports import SILENT, Embedder, Progress, Vectors
from fairgate.retrieval.earlier_vectors import LENGTH_TOLERANCE, EarlierVectors, UnfinishedVectors
from fairgate.retrieval.exact_index import Corpus, require_documents
from fairgate.retrieval.index_cache import build_folder, make_room, sole_builder
from fairgate.retrieval.index_folder import (
    IDS,
    MANIFEST,
    OFFSETS,
    ROWS,
    SCHEMA_VERSION,
    VECTORS,
    DamagedIndexError,
    IndexFolder,
    OutdatedIndexError,
    Rows,
    id_hash,
)

_EMBED_AT_ONCE = 4096
_ROWS_AT_ONCE = 8192
MOST_IN_STORE = 40_000
"""Documents up to which the store keeps an index's vectors too, for runners that have a store alone
(60 MB of 384 numbers each); those of greater indexes are kept beside it until it is whole."""
_LINES_A_WRITE = 1024


@runtime_checkable
class StoringEmbedder(Protocol):
    """An embedder that stores what it computes, batch by batch, as CachedEmbedder does."""

    def storing_in(self, store: UnfinishedVectors) -> Self:
        """Return the same embedder with another store."""
        ...

    def forget(self, keys: Sequence[str]) -> None:
        """Remove vectors from the store, by `embedding_key`."""
        ...


class IndexWriter:
    """Writes into a build folder: documents, then vectors, then the rest."""

    def __init__(self, folder: Path, *, embedder: str) -> None:
        """Write into an existing, empty folder; `embedder` is the fingerprint of the vectors'."""
        self._folder = folder
        self._embedder = embedder
        self._files: dict[str, dict[str, Any]] = {}
        self._labelled = 0
        self._offsets = array("q", [0])
        self._id_hashes = array("Q")
        self.rows: Rows = np.zeros(0, dtype=ROWS)
        """Of each document its text's key; the CRC-32 is there once its vector is written."""
        self.dimensions = 0
        self._written = 0

    def write_documents(self, documents: Iterable[CorpusDocument]) -> int:
        """Write the documents as they come; return how many there are."""
        keys = bytearray()
        lines: list[bytes] = []
        with self._file("documents.jsonl") as write:
            for document in documents:
                record = {"id": document.id, "text": document.text, "label": document.label}
                lines.append(json.dumps(record, ensure_ascii=False).encode() + b"\n")
                self._offsets.append(self._offsets[-1] + len(lines[-1]))
                self._id_hashes.append(id_hash(document.id))
                self._labelled += document.label is not None
                keys += bytes.fromhex(embedding_key(self._embedder, document.text))
                if len(lines) == _LINES_A_WRITE:
                    write(b"".join(lines))
                    lines.clear()
            write(b"".join(lines))
        self.rows = np.zeros(len(self._id_hashes), dtype=ROWS)
        self.rows["key"] = np.frombuffer(keys, dtype="<u8").reshape(-1, 4)
        return len(self.rows)

    def texts(self, positions: Sequence[int]) -> list[str]:
        """Return the texts of documents that `write_documents` wrote, by ascending position."""
        found: list[str] = []
        with (self._folder / "documents.jsonl").open("rb") as file:
            for position in positions:
                begin, end = self._offsets[position], self._offsets[position + 1]
                file.seek(begin)
                found.append(json.loads(file.read(end - begin))["text"])
        return found

    def write_vectors(self, batches: Iterable[Vectors]) -> None:
        """Write the vectors of all documents as they come, in document order."""
        with self._file("vectors.npy") as write:
            for batch in batches:
                block = np.ascontiguousarray(batch, dtype=VECTORS)
                if not self.dimensions:
                    self.dimensions = block.shape[1]
                    _write_header(write, (len(self.rows), self.dimensions), VECTORS.str)
                written = slice(self._written, self._written + len(block))
                self.rows["crc"][written] = [zlib.crc32(vector) for vector in block]
                self._written = written.stop
                write(block.data)

    def finish(self, *, fingerprint: str, corpus: str) -> None:
        """Write what is left, the manifest last."""
        hashes = np.frombuffer(self._id_hashes, dtype=np.uint64)
        ids = np.zeros(len(hashes), dtype=IDS)
        ids["position"] = np.argsort(hashes, kind="stable")
        ids["hash"] = hashes[ids["position"]]
        offsets = np.frombuffer(self._offsets, dtype=np.int64).astype(OFFSETS)
        for name, column in (("offsets", offsets), ("rows", self.rows), ("ids", ids)):
            with self._file(f"{name}.npy") as write:
                np.lib.format.write_array(write, column, version=(1, 0), allow_pickle=False)
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "fingerprint": fingerprint,
            "corpus": corpus,
            "embedder": self._embedder,
            "documents": len(self.rows),
            "labelled": self._labelled,
            "dimensions": self.dimensions,
            "files": dict(sorted(self._files.items())),
        }
        with self._file(MANIFEST) as write:
            write(json.dumps(manifest, indent=2).encode() + b"\n")

    @contextlib.contextmanager
    def _file(self, name: str) -> Iterator[_Write]:
        with (self._folder / name).open("wb") as file:
            writer = _Write(file)
            yield writer
            file.flush()
            os.fsync(file.fileno())
        self._files[name] = {"bytes": writer.size, "sha256": writer.digest.hexdigest()}


class _Write:
    """Appends bytes to a file and keeps their number and checksum."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def __call__(self, data: bytes | memoryview) -> int:
        self.digest.update(data)
        self.size += memoryview(data).nbytes
        return self._file.write(data)

    write = __call__


def _write_header(write: _Write, shape: tuple[int, ...], dtype: str) -> None:
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(write, header)


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
