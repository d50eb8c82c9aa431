"""The folder that holds an index: written whole or not at all, damage is found before use.

`vectors.npy` float32 `[n, d]` · `documents.jsonl` one document a line · `offsets.npy` int64
`[n + 1]`, where each line begins · `table.json` ids and labels · `manifest.json` sizes and SHA-256
of the others, written last.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from fairgate.adapters.faiss_index.index_form import (
    DamagedIndexError,
    check_arrays,
    check_table,
    read_manifest,
)
from fairgate.domain.corpora import CorpusDocument
from fairgate.domain.errors import RetrievalError, StoreError
from fairgate.domain.json_text import read_json
from fairgate.engine.ports import Vectors

SCHEMA_VERSION = 1
_MANIFEST = "manifest.json"
_FILES = ("vectors.npy", "documents.jsonl", "offsets.npy", "table.json")


class IndexFolder:
    """A complete index on disk. Vectors and texts are mapped, not loaded."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        """Read the manifest and compare sizes; raises DamagedIndexError, FileNotFoundError."""
        self._folder = folder
        folder.stat()
        try:
            raw = (folder / _MANIFEST).read_bytes()
            self.manifest: Mapping[str, Any] = read_manifest(raw, SCHEMA_VERSION, _FILES)
            if self.manifest.get("fingerprint") != fingerprint:
                raise DamagedIndexError("manifest of another index")
            for name in _FILES:
                if (folder / name).stat().st_size != self.manifest["files"][name]["bytes"]:
                    raise DamagedIndexError(f"{name} has another size")
            self.size: int = self.manifest["documents"]
        except (OSError, ValueError) as error:
            raise DamagedIndexError(f"{_MANIFEST}: {type(error).__name__}") from error

    def verify(self) -> None:
        """Compare checksum and form of every file; raises DamagedIndexError."""
        for name in _FILES:
            try:
                with (self._folder / name).open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise DamagedIndexError(f"{name} cannot be read") from error
            if found != self.manifest["files"][name]["sha256"]:
                raise DamagedIndexError(f"{name} has a wrong checksum")
        try:
            _ = self._table
            check_arrays(
                self.vectors,
                self._offsets,
                shape=(self.size, self.manifest["dimensions"]),
                text_bytes=self.manifest["files"]["documents.jsonl"]["bytes"],
            )
        except (OSError, ValueError, EOFError) as error:
            raise DamagedIndexError(f"a part cannot be read ({type(error).__name__})") from error

    @functools.cached_property
    def vectors(self) -> Vectors:
        """Float32 `[documents, dimensions]`, in document order, mapped read-only."""
        loaded: Vectors = np.load(self._folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
        return loaded

    @functools.cached_property
    def _table(self) -> Mapping[str, list[Any]]:
        return check_table(read_json((self._folder / "table.json").read_bytes()), self.size)

    @property
    def ids(self) -> list[str]:
        """Ids of all documents, in document order."""
        return self._table["ids"]

    @property
    def labels(self) -> list[str | None]:
        """Labels of all documents, in document order."""
        return self._table["labels"]

    @functools.cached_property
    def positions(self) -> Mapping[str, int]:
        """Position in document order of every id."""
        return {id_: position for position, id_ in enumerate(self.ids)}

    @functools.cached_property
    def _offsets(self) -> npt.NDArray[np.int64]:
        loaded: npt.NDArray[np.int64] = np.load(self._folder / "offsets.npy", allow_pickle=False)
        return loaded

    @functools.cached_property
    def _lines(self) -> npt.NDArray[np.uint8]:
        return np.memmap(self._folder / "documents.jsonl", dtype=np.uint8, mode="r")

    def text(self, position: int) -> str:
        """Return the text of the document at a position; nothing else is loaded.

        Raises RetrievalError: what is wrong in one line is not looked for beforehand.
        """
        begin, end = self._offsets[position : position + 2]
        try:
            text = read_json(self._lines[begin:end].tobytes())["text"]
        except (ValueError, LookupError, TypeError) as error:
            raise self.damaged(f"document {position + 1} cannot be read") from error
        if not isinstance(text, str):
            raise self.damaged(f"document {position + 1} has no text")
        return text

    def damaged(self, what: str) -> RetrievalError:
        """Return the error for damage that shows only in use."""
        return RetrievalError(f"{self._folder}: {what}; delete the folder, it is built again")


class IndexWriter:
    """Writes the files of an index into a build folder, streaming."""

    def __init__(self, folder: Path) -> None:
        """Write into an existing, empty folder."""
        self._folder = folder
        self._files: dict[str, dict[str, Any]] = {}
        self._ids: list[str] = []
        self._labels: list[str | None] = []
        self._offsets = np.zeros(1, dtype=np.int64)

    def write_documents(self, documents: Iterable[CorpusDocument]) -> int:
        """Write the documents as they come; return how many there are."""
        offsets = [0]
        with self._file("documents.jsonl") as write:
            for document in documents:
                record = {"id": document.id, "text": document.text, "label": document.label}
                line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
                write(line)
                offsets.append(offsets[-1] + len(line))
                self._ids.append(document.id)
                self._labels.append(document.label)
        self._offsets = np.array(offsets, dtype=np.int64)
        return len(self._ids)

    def texts(self) -> Iterator[str]:
        """Yield the texts that `write_documents` wrote."""
        with (self._folder / "documents.jsonl").open("rb") as file:
            for line in file:
                yield json.loads(line)["text"]

    def write_vectors(self, batches: Iterable[Vectors]) -> int:
        """Write vectors as they come, in document order; return their dimension."""
        dimensions = 0
        with self._file("vectors.npy") as write:
            for batch in batches:
                if not dimensions:
                    dimensions = batch.shape[1]
                    _write_header(write, (len(self._ids), dimensions), "<f4")
                write(np.ascontiguousarray(batch, dtype="<f4").tobytes())
        return dimensions

    def finish(self, *, fingerprint: str, corpus: str, embedder: str, dimensions: int) -> None:
        """Write what is left, the manifest last."""
        with self._file("offsets.npy") as write:
            _write_header(write, self._offsets.shape, "<i8")
            write(self._offsets.astype("<i8").tobytes())
        with self._file("table.json") as write:
            table = {"ids": self._ids, "labels": self._labels}
            write(json.dumps(table, ensure_ascii=False).encode())
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "fingerprint": fingerprint,
            "corpus": corpus,
            "embedder": embedder,
            "documents": len(self._ids),
            "labelled": sum(label is not None for label in self._labels),
            "dimensions": dimensions,
            "files": dict(sorted(self._files.items())),
        }
        with self._file(_MANIFEST) as write:
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

    def __call__(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        return self._file.write(data)

    write = __call__


def _write_header(write: _Write, shape: tuple[int, ...], dtype: str) -> None:
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(write, header)


@contextlib.contextmanager
def build_folder(target: Path) -> Iterator[Path]:
    """Give an empty folder that takes `target`'s place at the end of the block, or vanishes.

    Leftovers of killed processes are removed. Raises StoreError where it cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target.parent)
        building = target.with_name(f".build-{secrets.token_hex(8)}")
        with _held(building):
            try:
                building.mkdir()
                yield building
                _take_place(building, target)
            finally:
                shutil.rmtree(building, ignore_errors=True)
    except OSError as error:
        raise StoreError.of_os_error(error, path=target, option="--cache") from error


def _take_place(building: Path, target: Path) -> None:
    old = target.with_name(f".build-{secrets.token_hex(8)}")
    with contextlib.suppress(FileNotFoundError):
        target.rename(old)
        shutil.rmtree(old, ignore_errors=True)
    with contextlib.suppress(FileExistsError, NotADirectoryError):
        # Lost a race: another process put an equal index there a moment ago.
        if not target.exists():
            building.rename(target)


@contextlib.contextmanager
def _held(building: Path) -> Iterator[None]:
    with _lock_path(building).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            _lock_path(building).unlink(missing_ok=True)


def _lock_path(building: Path) -> Path:
    return building.with_name(f"{building.name}.lock")


def _remove_leftovers(parent: Path) -> None:
    """Remove build folders whose process has ended: their lock is free."""
    names = {path.name.removesuffix(".lock") for path in parent.glob(".build-*")}
    for building in (parent / name for name in sorted(names)):
        with contextlib.suppress(OSError), _lock_path(building).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(building, ignore_errors=True)
            _lock_path(building).unlink(missing_ok=True)
