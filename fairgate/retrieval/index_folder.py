"""The folder that holds an index, read and written: nothing is loaded, damage is found before use.

`vectors.npy` float32 `[n, d]` · `documents.jsonl` one document a line · `offsets.npy` int64
`[n + 1]`, where each line begins · `rows.npy` of each vector what it is of, and its CRC-32 ·
`ids.npy` hashes of ids in ascending order, with the documents' positions · `manifest.json` sizes
and SHA-256 of the others, written last.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import weakref
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import CorpusDocument, embedding_key
from fairgate.domain.json_text import read_json
from fairgate.domain.ports import Vectors
from fairgate.io.durable import DurableFile
from fairgate.io.regular import content_of, opened

SCHEMA_VERSION = 2
MANIFEST = "manifest.json"
FILES = ("vectors.npy", "documents.jsonl", "offsets.npy", "rows.npy", "ids.npy")
VECTORS = np.dtype("<f4")
OFFSETS = np.dtype("<i8")
ROWS = np.dtype([("key", "<u8", (4,)), ("crc", "<u4")])
"""SHA-256 of embedder and text (`embedding_key`), and the CRC-32 of the vector."""
IDS = np.dtype([("hash", "<u8"), ("position", "<i8")])
"""Hash of an id, and which document has it; ascending."""
_LINES_A_WRITE = 1024

DocumentRows = npt.NDArray[np.void]


class DamagedIndexError(Exception):
    """The folder is there but cannot be trusted; the index is built again."""


class OutdatedIndexError(Exception):
    """The folder is sound, in the form of another version; the index is built again."""


def manifest_of(folder: Path) -> dict[str, Any]:
    """Return the manifest of an index; its values have the types that they must have.

    Raises DamagedIndexError, OutdatedIndexError, OSError, and ValueError for what is no JSON.
    """
    manifest: Any = read_json(content_of(folder / MANIFEST))
    version = manifest.get("schema_version") if isinstance(manifest, dict) else None
    if type(version) is not int:
        raise DamagedIndexError("the manifest names no version")
    if version != SCHEMA_VERSION:
        raise OutdatedIndexError
    files = manifest.get("files")
    parts = [files.get(name) for name in FILES] if isinstance(files, dict) else [None]
    numbers = [manifest.get("documents"), manifest.get("dimensions")]
    hashes = []
    for part in parts:
        fields = part if isinstance(part, dict) else {}
        numbers.append(fields.get("bytes"))
        hashes.append(fields.get("sha256"))
    are_sound = all(type(number) is int for number in numbers) and all(
        type(h) is str for h in hashes
    )
    if not are_sound or numbers[0] < 1:
        raise DamagedIndexError("the manifest lacks a part, or holds a value of another type")
    return dict(manifest)


class IndexFolder:
    """A complete index on disk. All parts are mapped; a text is read when it is asked.

    While it is open, no process removes it to make room (`index_cache.py`).
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        """Read the manifest and compare sizes.

        Raises FileNotFoundError, OutdatedIndexError and DamagedIndexError.
        """
        self._folder = folder
        folder.stat()
        try:
            # Held against removal, and noted as in use.
            descriptor = os.open(folder / MANIFEST, os.O_RDONLY)
            weakref.finalize(self, os.close, descriptor)
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            with contextlib.suppress(OSError):  # a cache that can only be read
                os.utime(folder / MANIFEST)
            self.manifest: Mapping[str, Any] = manifest_of(folder)
            if self.manifest.get("fingerprint") != fingerprint:
                raise DamagedIndexError("manifest of another index")
            for name in FILES:
                if (folder / name).stat().st_size != self.manifest["files"][name]["bytes"]:
                    raise DamagedIndexError(f"{name} has another size")
            self.size: int = self.manifest["documents"]
        except (OSError, ValueError) as error:
            folder.stat()
            raise DamagedIndexError(f"{MANIFEST}: {type(error).__name__}") from error

    def verify(self) -> None:
        """Compare checksum and form of every file; raises DamagedIndexError."""
        for name in FILES:
            try:
                with opened(self._folder / name) as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise DamagedIndexError(f"{name} cannot be read") from error
            if digest != self.manifest["files"][name]["sha256"]:
                raise DamagedIndexError(f"{name} has a wrong checksum")
        try:
            self._check_form()
        except (OSError, ValueError, EOFError) as error:
            raise DamagedIndexError(f"a part cannot be read ({type(error).__name__})") from error

    def _check_form(self) -> None:
        """Raise DamagedIndexError unless all parts belong to documents of this number.

        Checksums find damage; this finds parts that were made, with their checksums, by something
        else.
        """
        vectors, offsets, ids = self.vectors, self._offsets, self._ids
        shape = (self.size, self.manifest["dimensions"])
        if vectors.shape != shape or vectors.dtype != VECTORS or not vectors.flags.c_contiguous:
            raise DamagedIndexError("vectors.npy has another shape")
        if (
            offsets.shape != (self.size + 1,)
            or offsets.dtype != OFFSETS
            or offsets[0] != 0
            or offsets[-1] != len(self._lines)
            or (np.diff(offsets) <= 0).any()
        ):
            raise DamagedIndexError("offsets.npy does not fit documents.jsonl")
        if self.rows.shape != (self.size,) or self.rows.dtype != ROWS:
            raise DamagedIndexError("rows.npy has another shape")
        if (
            ids.shape != (self.size,)
            or ids.dtype != IDS
            or (ids["hash"][1:] < ids["hash"][:-1]).any()
            or (np.sort(ids["position"]) != np.arange(self.size)).any()
        ):
            raise DamagedIndexError("ids.npy does not hold every document once")

    @functools.cached_property
    def vectors(self) -> Vectors:
        """Float32 `[documents, dimensions]`, in document order, mapped read-only."""
        return mapped(self._folder / "vectors.npy")

    @functools.cached_property
    def rows(self) -> DocumentRows:
        """Of each document its text's key and its vector's CRC-32, mapped read-only."""
        return mapped(self._folder / "rows.npy")

    @functools.cached_property
    def _ids(self) -> npt.NDArray[np.void]:
        return mapped(self._folder / "ids.npy")

    @functools.cached_property
    def _id_hashes(self) -> npt.NDArray[np.uint64]:
        return np.ascontiguousarray(self._ids["hash"])

    @functools.cached_property
    def _offsets(self) -> npt.NDArray[np.int64]:
        return mapped(self._folder / "offsets.npy")

    @functools.cached_property
    def _lines(self) -> npt.NDArray[np.uint8]:
        return np.memmap(self._folder / "documents.jsonl", dtype=np.uint8, mode="r")

    def position(self, id_: str) -> int | None:
        """Return the position in document order of an id; None where there is none."""
        hashed = id_hash(id_)
        row = int(np.searchsorted(self._id_hashes, np.uint64(hashed)))
        while row < self.size and int(self._id_hashes[row]) == hashed:
            position = int(self._ids["position"][row])
            if self.document(position).id == id_:
                return position
            row += 1
        return None

    def document(self, position: int) -> CorpusDocument:
        """Return the document at a position; nothing else is read.

        Raises RetrievalError: what is wrong in one line is not looked for beforehand.
        """
        begin, end = self._offsets[position : position + 2]
        try:
            record = read_json(self._lines[begin:end].tobytes())
            id_, text, label = record["id"], record["text"], record["label"]
        except (ValueError, LookupError, TypeError) as error:
            raise self.damaged(f"document {position + 1} cannot be read") from error
        if not isinstance(text, str) or not isinstance(id_, str):
            raise self.damaged(f"document {position + 1} has no text or id")
        if not isinstance(label, str | None):
            raise self.damaged(f"document {position + 1} has a label that is no text")
        return CorpusDocument(id=id_, text=text, label=label)

    def damaged(self, fault: str) -> RetrievalError:
        """Return the error for damage that shows only in use."""
        return RetrievalError(f"{self._folder}: {fault}; delete the folder, it is built again")


def mapped(path: Path) -> npt.NDArray[Any]:
    """Return the array of a file, mapped read-only. Raises OSError, ValueError, EOFError."""
    loaded: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return loaded


def id_hash(id_: str) -> int:
    """Return 64 bits of an id's hash."""
    digest = hashlib.blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


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
        self.rows: DocumentRows = np.zeros(0, dtype=ROWS)
        """Of each document its text's key; the CRC-32 is there once its vector is written."""
        self.dimensions = 0
        self._written = 0

    def write_documents(self, documents: Iterable[CorpusDocument]) -> int:
        """Write the documents as they come; return how many there are."""
        keys = bytearray()
        lines: list[bytes] = []
        with self._file("documents.jsonl") as file:
            for document in documents:
                record = {"id": document.id, "text": document.text, "label": document.label}
                lines.append(json.dumps(record, ensure_ascii=False).encode() + b"\n")
                self._offsets.append(self._offsets[-1] + len(lines[-1]))
                self._id_hashes.append(id_hash(document.id))
                self._labelled += document.label is not None
                keys += bytes.fromhex(embedding_key(self._embedder, document.text))
                if len(lines) == _LINES_A_WRITE:
                    file.write(b"".join(lines))
                    lines.clear()
            file.write(b"".join(lines))
        self.rows = np.zeros(len(self._id_hashes), dtype=ROWS)
        self.rows["key"] = np.frombuffer(keys, dtype="<u8").reshape(-1, 4)
        return len(self.rows)

    def texts(self, positions: Sequence[int]) -> list[str]:
        """Return the texts of documents that `write_documents` wrote, by ascending position."""
        texts_read: list[str] = []
        with opened(self._folder / "documents.jsonl") as file:
            for position in positions:
                begin, end = self._offsets[position], self._offsets[position + 1]
                file.seek(begin)
                texts_read.append(json.loads(file.read(end - begin))["text"])
        return texts_read

    def write_vectors(self, batches: Iterable[Vectors]) -> None:
        """Write the vectors of all documents as they come, in document order."""
        with self._file("vectors.npy") as file:
            for batch in batches:
                block = np.ascontiguousarray(batch, dtype=VECTORS)
                if not self.dimensions:
                    self.dimensions = block.shape[1]
                    shape = (len(self.rows), self.dimensions)
                    header = {"descr": VECTORS.str, "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(file, header)
                written = slice(self._written, self._written + len(block))
                self.rows["crc"][written] = [zlib.crc32(vector) for vector in block]
                self._written = written.stop
                file.write(block.tobytes())

    def finish(self, *, fingerprint: str, corpus: str) -> None:
        """Write what is left, the manifest last."""
        hashes = np.frombuffer(self._id_hashes, dtype=np.uint64)
        ids = np.zeros(len(hashes), dtype=IDS)
        ids["position"] = np.argsort(hashes, kind="stable")
        ids["hash"] = hashes[ids["position"]]
        offsets = np.frombuffer(self._offsets, dtype=np.int64).astype(OFFSETS)
        for name, column in (("offsets", offsets), ("rows", self.rows), ("ids", ids)):
            with self._file(f"{name}.npy") as file:
                np.lib.format.write_array(file, column, version=(1, 0), allow_pickle=False)
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
        with self._file(MANIFEST) as file:
            file.write(json.dumps(manifest, indent=2).encode() + b"\n")

    @contextlib.contextmanager
    def _file(self, name: str) -> Iterator[DurableFile]:
        with (self._folder / name).open("wb") as opened:
            file = DurableFile(opened)
            yield file
            opened.flush()
            os.fsync(opened.fileno())
        self._files[name] = {"bytes": file.size, "sha256": file.sha256}
