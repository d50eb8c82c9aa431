"""Vectors that earlier builds have made: a corpus that changes by 1 % embeds 1 %.

An index names each vector by the hash of embedder and text. Every vector that is taken is compared
with its own checksum, so that a folder that was damaged elsewhere still gives what is sound.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.ports import Vectors
from fairgate.retrieval.index_folder import (
    MANIFEST,
    ROWS,
    VECTORS,
    DamagedIndexError,
    OutdatedIndexError,
    Rows,
    manifest_of,
    mapped,
)

LENGTH_TOLERANCE = 1e-3
"""How far from 1 the length of a unit vector may be."""
_ROWS_AT_ONCE = 8192
_NONE = -1
PREFIX = ".unfinished-"
_NAME = re.compile(r"vectors-([1-9]\d{0,5})")


class UnfinishedVectors:
    """A port `VectorStore` of CachedEmbedder that is only written; `unfinished` reads it.

    A build of a great index that was killed goes on where it was. `.unfinished-<fingerprint>/`
    beside the index has `rows` and `vectors-<dimensions>`, to which batches are appended in the
    same order. What was written in half is excluded: rows are taken only where their checksum is
    that of their vector.
    """

    def __init__(self, target: Path) -> None:
        """Keep what is embedded for the index `target`; nothing is written yet.

        One process at a time: within `sole_builder`.
        """
        self._folder = target.with_name(f"{PREFIX}{target.name}")
        self._rows: int | None = None

    def get_vectors(self, keys: Sequence[str]) -> dict[str, Vectors]:
        """Return none: what is known was looked for before."""
        del keys
        return {}

    def put_vectors(self, items: Iterable[tuple[str, Vectors]]) -> None:
        """Append a batch of vectors of one length. Raises OSError."""
        batch = list(items)
        vectors = np.stack([vector for _, vector in batch]).astype(VECTORS, copy=False)
        rows = np.zeros(len(batch), dtype=ROWS)
        keys = b"".join(bytes.fromhex(key) for key, _ in batch)
        rows["key"] = np.frombuffer(keys, dtype="<u8").reshape(-1, 4)
        rows["crc"] = [zlib.crc32(vector) for vector in vectors]
        if self._rows is None:
            self._rows = self._begun(vectors.shape[1])
        path = self._folder / f"vectors-{vectors.shape[1]}"
        _append(path, self._rows * vectors[0].nbytes, vectors.tobytes())
        _append(self._folder / "rows", self._rows * ROWS.itemsize, rows.tobytes())
        self._rows += len(batch)

    def forget_vectors(self, keys: Sequence[str]) -> None:
        """Do nothing: all go together."""

    def remove(self) -> None:
        """Remove them: the index is whole."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _begun(self, dimensions: int) -> int:
        """Return how many rows of this length are there, in a folder that holds no others."""
        found = read_unfinished(self._folder)
        if found is not None and found[1].shape[1] == dimensions:
            return len(found[0])
        self.remove()
        self._folder.mkdir()
        return 0


def unfinished(root: Path) -> Iterator[tuple[Rows, Vectors]]:
    """Yield rows and vectors of builds that did not end."""
    for folder in sorted(root.glob(f"{PREFIX}*")):
        found = read_unfinished(folder)
        if found is not None:
            yield found


def read_unfinished(folder: Path) -> tuple[Rows, Vectors] | None:
    """Return rows and vectors, mapped; None where there is none that can be read."""
    with contextlib.suppress(OSError, ValueError):
        (path,) = folder.glob("vectors-*")
        name = _NAME.fullmatch(path.name)
        if name is None:
            return None
        size = int(name[1])
        count = path.stat().st_size // (size * VECTORS.itemsize)
        count = min(count, (folder / "rows").stat().st_size // ROWS.itemsize)
        if count:
            rows = np.memmap(folder / "rows", dtype=ROWS, mode="r", shape=(count,))
            return rows, np.memmap(path, dtype=VECTORS, mode="r", shape=(count, size))
    return None


def _append(path: Path, end: int, data: bytes) -> None:
    """Write at `end`; what stands behind it was written in half."""
    with path.open("r+b" if path.exists() else "wb") as file:
        file.truncate(end)
        file.seek(end)
        file.write(data)


class EarlierVectors:
    """Which of an index's vectors are in earlier ones of the same embedder, and where."""

    def __init__(self, root: Path, embedder: str, wanted: Rows) -> None:
        """Look for `wanted` (their keys) in the indexes below `root`, the last used first.

        Then in what builds that did not end have left.
        """
        self.dimensions = 0
        """Of the vectors that were found; 0 where there are none."""
        self._sources: list[Vectors] = []
        self._source = np.full(len(wanted), _NONE, dtype=np.int16)
        self._row = np.zeros(len(wanted), dtype=np.int64)
        for rows, vectors in itertools.chain(_of_embedder(root, embedder), unfinished(root)):
            missing = np.flatnonzero(self._source == _NONE)
            if not len(missing):
                break
            if self.dimensions in (0, vectors.shape[1]):
                self._take(missing, wanted["key"][missing], rows, vectors)

    @property
    def missing(self) -> npt.NDArray[np.int64]:
        """Return the positions of vectors that no earlier index holds, ascending."""
        return np.flatnonzero(self._source == _NONE)

    def fill(self, block: Vectors, start: int) -> None:
        """Write into `block`, the vectors from position `start` on, those that are known."""
        here = slice(start, start + len(block))
        for number, vectors in enumerate(self._sources):
            chosen = np.flatnonzero(self._source[here] == number)
            block[chosen] = vectors[self._row[here][chosen]]

    def _take(
        self, missing: npt.NDArray[np.int64], keys: npt.NDArray[Any], rows: Rows, vectors: Vectors
    ) -> None:
        """Take from one index what is wanted and sound."""
        known = rows["key"]
        order = np.argsort(known[:, 0], kind="stable")
        first = np.ascontiguousarray(known[order, 0])
        # Of equal keys the last counts: it replaces one that was damaged in an unfinished build.
        # Keys whose first 64 bits are equal and the others not are embedded again: it costs one.
        found = order[np.maximum(np.searchsorted(first, keys[:, 0], side="right") - 1, 0)]
        equal = np.flatnonzero((known[found] == keys).all(axis=1))
        sound = equal[_are_sound(vectors, rows["crc"], found[equal])]
        if len(sound):
            self.dimensions = vectors.shape[1]
            self._source[missing[sound]] = len(self._sources)
            self._row[missing[sound]] = found[sound]
            self._sources.append(vectors)


def _of_embedder(root: Path, embedder: str) -> Iterator[tuple[Rows, Vectors]]:
    """Yield rows and vectors of indexes whose parts have the right form, the last used first."""
    for folder in by_use(root):
        with contextlib.suppress(
            OSError, ValueError, EOFError, DamagedIndexError, OutdatedIndexError
        ):
            if manifest_of(folder).get("embedder") != embedder:
                continue
            rows, vectors = mapped(folder / "rows.npy"), mapped(folder / "vectors.npy")
            if (
                rows.dtype == ROWS
                and vectors.dtype == VECTORS
                and vectors.ndim == 2
                and vectors.flags.c_contiguous
                and rows.shape == vectors.shape[:1]
                and len(rows)
            ):
                yield rows, vectors


def by_use(root: Path) -> list[Path]:
    """Return the folders of indexes, the last used first; what vanishes meanwhile is left out."""
    found: list[tuple[int, str, Path]] = []
    for folder in root.iterdir() if root.is_dir() else ():
        if not folder.name.startswith("."):
            with contextlib.suppress(OSError):
                found.append(((folder / MANIFEST).stat().st_mtime_ns, folder.name, folder))
    return [folder for _, _, folder in sorted(found, reverse=True)]


def _are_sound(
    vectors: Vectors, checksums: npt.NDArray[Any], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return which of these rows have their checksum and the length of a unit vector."""
    sound = np.zeros(len(rows), dtype=np.bool_)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE]
        block = vectors[part]
        found = np.array([zlib.crc32(vector) for vector in block], dtype="<u4")
        near = np.abs(np.linalg.norm(block, axis=1) - 1.0) <= LENGTH_TOLERANCE
        sound[start : start + len(part)] = (found == checksums[part]) & near
    return sound
