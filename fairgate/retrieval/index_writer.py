"""Writes the files of an index as documents and vectors come; none of them is held whole."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from fairgate.domain.corpora import CorpusDocument, embedding_key
from fairgate.domain.ports import Vectors
from fairgate.retrieval.index_folder import MANIFEST, SCHEMA_VERSION, id_hash
from fairgate.retrieval.index_form import IDS, OFFSETS, ROWS, VECTORS, Rows

_LINES_A_WRITE = 1024


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
