"""The folder that holds an index: nothing of it is loaded, damage is found before use.

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
import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import CorpusDocument
from fairgate.domain.json_text import read_json
from fairgate.domain.ports import Vectors

SCHEMA_VERSION = 2
MANIFEST = "manifest.json"
FILES = ("vectors.npy", "documents.jsonl", "offsets.npy", "rows.npy", "ids.npy")
VECTORS = np.dtype("<f4")
OFFSETS = np.dtype("<i8")
ROWS = np.dtype([("key", "<u8", (4,)), ("crc", "<u4")])
"""SHA-256 of embedder and text (`embedding_key`), and the CRC-32 of the vector."""
IDS = np.dtype([("hash", "<u8"), ("position", "<i8")])
"""Hash of an id, and which document has it; ascending."""

Rows = npt.NDArray[np.void]


class DamagedIndexError(Exception):
    """The folder is there but cannot be trusted; the index is built again."""


class OutdatedIndexError(Exception):
    """The folder is sound, in the form of another version; the index is built again."""


def read_manifest(raw: bytes, version: int, names: tuple[str, ...]) -> dict[str, Any]:
    """Return a manifest whose values have the types that they must have.

    Raises DamagedIndexError, OutdatedIndexError, and ValueError for what is no JSON.
    """
    manifest: Any = read_json(raw)
    found = manifest.get("schema_version") if isinstance(manifest, dict) else None
    if type(found) is not int:
        raise DamagedIndexError("the manifest names no version")
    if found != version:
        raise OutdatedIndexError
    files = manifest.get("files")
    parts = [files.get(name) for name in names] if isinstance(files, dict) else [None]
    sound = (
        all(
            isinstance(part, dict)
            and type(part.get("bytes")) is int
            and isinstance(part.get("sha256"), str)
            for part in parts
        )
        and type(manifest.get("documents")) is int
        and type(manifest.get("dimensions")) is int
        and manifest["documents"] > 0
    )
    if not sound:
        raise DamagedIndexError("the manifest lacks a part, or holds a value of another type")
    return dict(manifest)


def check_arrays(
    vectors: npt.NDArray[Any],
    offsets: npt.NDArray[Any],
    *,
    shape: tuple[int, int],
    text_bytes: int,
) -> None:
    """Raise DamagedIndexError unless vectors and offsets belong to documents of this size.

    Checksums find damage; this finds parts that were made, with their checksums, by something else.
    """
    if vectors.shape != shape or vectors.dtype != VECTORS or not vectors.flags.c_contiguous:
        raise DamagedIndexError("vectors.npy has another shape")
    if (
        offsets.shape != (shape[0] + 1,)
        or offsets.dtype != OFFSETS
        or offsets[0] != 0
        or offsets[-1] != text_bytes
        or (np.diff(offsets) <= 0).any()
    ):
        raise DamagedIndexError("offsets.npy does not fit documents.jsonl")


def check_columns(rows: npt.NDArray[Any], ids: npt.NDArray[Any], documents: int) -> None:
    """Raise DamagedIndexError unless there is a row and an id of every document."""
    if rows.shape != (documents,) or rows.dtype != ROWS:
        raise DamagedIndexError("rows.npy has another shape")
    if (
        ids.shape != (documents,)
        or ids.dtype != IDS
        or (ids["hash"][1:] < ids["hash"][:-1]).any()
        or (np.sort(ids["position"]) != np.arange(documents)).any()
    ):
        raise DamagedIndexError("ids.npy does not hold every document once")


class IndexFolder:
    """A complete index on disk. All parts are mapped; a text is read when it is asked.

    While it is open, no process removes it to make room (`index_room.py`).
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        """Read the manifest and compare sizes.

        Raises FileNotFoundError, OutdatedIndexError and DamagedIndexError.
        """
        self._folder = folder
        folder.stat()
        try:
            self._hold()
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

    def _hold(self) -> None:
        """Lock the folder against removal, and note that it is in use."""
        descriptor = os.open(self._folder / MANIFEST, os.O_RDONLY)
        weakref.finalize(self, os.close, descriptor)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        with contextlib.suppress(OSError):  # a cache that can only be read
            os.utime(self._folder / MANIFEST)

    def verify(self) -> None:
        """Compare checksum and form of every file; raises DamagedIndexError."""
        for name in FILES:
            try:
                with (self._folder / name).open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise DamagedIndexError(f"{name} cannot be read") from error
            if found != self.manifest["files"][name]["sha256"]:
                raise DamagedIndexError(f"{name} has a wrong checksum")
        try:
            check_arrays(
                self.vectors,
                self._offsets,
                shape=(self.size, self.manifest["dimensions"]),
                text_bytes=len(self._lines),
            )
            check_columns(self.rows, self._ids, self.size)
        except (OSError, ValueError, EOFError) as error:
            raise DamagedIndexError(f"a part cannot be read ({type(error).__name__})") from error

    @functools.cached_property
    def vectors(self) -> Vectors:
        """Float32 `[documents, dimensions]`, in document order, mapped read-only."""
        return mapped(self._folder / "vectors.npy")

    @functools.cached_property
    def rows(self) -> Rows:
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
        place = int(np.searchsorted(self._id_hashes, np.uint64(hashed)))
        while place < self.size and int(self._id_hashes[place]) == hashed:
            position = int(self._ids["position"][place])
            if self.document(position).id == id_:
                return position
            place += 1
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

    def damaged(self, what: str) -> RetrievalError:
        """Return the error for damage that shows only in use."""
        return RetrievalError(f"{self._folder}: {what}; delete the folder, it is built again")


def manifest_of(folder: Path) -> dict[str, Any]:
    """Return the manifest of an index; raises as `read_manifest`, and OSError."""
    return read_manifest((folder / MANIFEST).read_bytes(), SCHEMA_VERSION, FILES)


def mapped(path: Path) -> npt.NDArray[Any]:
    """Return the array of a file, mapped read-only. Raises OSError, ValueError, EOFError."""
    loaded: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return loaded


def id_hash(id_: str) -> int:
    """Return 64 bits of an id's hash."""
    digest = hashlib.blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
