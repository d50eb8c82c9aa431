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

from fairgate.domain.corpora import CorpusDocument
from fairgate.domain.errors import RetrievalError
from fairgate.domain.json_text import read_json
from fairgate.domain.ports import Vectors
from fairgate.retrieval.index_form import (
    DamagedIndexError,
    Rows,
    check_arrays,
    check_columns,
    read_manifest,
)

SCHEMA_VERSION = 2
MANIFEST = "manifest.json"
FILES = ("vectors.npy", "documents.jsonl", "offsets.npy", "rows.npy", "ids.npy")


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
