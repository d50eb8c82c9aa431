"""The folder of indexes: each appears whole, by one process at a time; unused ones are removed.

Vectors that earlier builds have made are taken from there: a corpus that changes by 1 % embeds 1 %.
An index names each vector by the hash of embedder and text. Every vector that is taken is compared
with its own checksum, so that a folder that was damaged elsewhere still gives what is sound.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import StoreError
from fairgate.domain.ports import Progress, Vectors
from fairgate.io.regular import opened
from fairgate.retrieval.index_folder import (
    MANIFEST,
    ROWS,
    VECTORS,
    DamagedIndexError,
    DocumentRows,
    OutdatedIndexError,
    manifest_of,
    mapped,
)

MOST_VERSIONS = 8
"""Indexes of one corpus: both sides of a comparison, their union, and a few branches."""
MOST_BYTES = 8 << 30
"""Of all indexes together; three times the newest where that is more."""
_COMMON = 0.9
"""Share of texts that two versions of one corpus have in common."""
_PREFIX = ".build-"
LENGTH_TOLERANCE = 1e-3
"""How far from 1 the length of a unit vector may be."""
_ROWS_AT_ONCE = 8192
_NONE = -1
_UNREADABLE = (OSError, ValueError, EOFError, DamagedIndexError, OutdatedIndexError)
_Keys = npt.NDArray[Any]
"""`[n, 4]`: hashes of embedder and text."""


def make_room(newest: Path) -> _Keys:
    """Remove what is over the limits, except what a process uses; the last used stay.

    Returns the keys of vectors that no index holds any more. Never raises OSError.
    """
    sizes = {folder: _size(folder) for folder in by_use(newest.parent)}
    gone: list[_Keys] = [np.zeros((0, 4), dtype="<u8")]
    if newest not in sizes:
        return gone[0]
    new, total = _keys(newest), sizes.pop(newest)
    most, versions, keys_left = max(MOST_BYTES, 3 * total), 1, [new[:, 0]]
    for folder, size in sizes.items():
        keys = _keys(folder)
        is_version = _is_version(new, keys)
        is_over = (is_version and versions >= MOST_VERSIONS) or total + size > most
        if is_over and _removed(folder):
            gone.append(keys)
            continue
        keys_left.append(keys[:, 0])
        versions += is_version
        total += size
    removed = np.concatenate(gone)
    return removed[~np.isin(removed[:, 0], np.concatenate(keys_left))]


@contextlib.contextmanager
def sole_builder(target: Path, progress: Progress) -> Iterator[None]:
    """Wait until no other process builds `target`; then none does within the block.

    Leftovers of killed processes are removed. Raises StoreError where nothing can be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        leftovers = {path.name.removesuffix(".lock") for path in target.parent.glob(f"{_PREFIX}*")}
        for name in sorted(leftovers):
            with _locked(target.with_name(name.removeprefix(_PREFIX)), None) as is_free:
                if is_free:  # its process has ended
                    shutil.rmtree(target.with_name(name), ignore_errors=True)
        with _locked(target, progress):
            yield
    except OSError as error:
        raise StoreError.of_os_error(error, path=target, option="--cache") from error


@contextlib.contextmanager
def build_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder, which replaces `target` at the end of the block, or vanishes.

    Within `sole_builder`, which says what OSErrors mean.
    """
    building = target.with_name(f"{_PREFIX}{target.name}")
    try:
        building.mkdir()
        yield building
        remove_whole(target)
        building.rename(target)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def remove_whole(folder: Path) -> None:
    """Remove an index at once: nobody ever sees a part of it. Where there is none, do nothing."""
    aside = folder.with_name(f"{_PREFIX}{secrets.token_hex(8)}")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def _locked(target: Path, progress: Progress | None) -> Iterator[bool]:
    """Lock the building of `target`; without `progress` say whether it was free, and never wait."""
    path = target.with_name(f"{_PREFIX}{target.name}.lock")
    while True:
        with contextlib.ExitStack() as stack:
            try:
                lock = stack.enter_context(path.open("ab"))
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if progress is None:
                        raise
                    progress.note("another process builds this index; waiting until it has")
                    fcntl.flock(lock, fcntl.LOCK_EX)
                is_ours = _is_same(path, lock.fileno())
            except OSError:
                if progress is not None:
                    raise
                is_ours = False
            if not is_ours and progress is not None:
                continue  # its holder removed the file: whoever comes next locks another file
            try:
                yield is_ours
            finally:
                if is_ours:
                    path.unlink(missing_ok=True)
            return


def _is_same(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _keys(folder: Path) -> _Keys:
    """Return the keys of an index's vectors; none where they cannot be read."""
    with contextlib.suppress(*_UNREADABLE):
        manifest_of(folder)
        rows = mapped(folder / "rows.npy")
        if rows.dtype == ROWS and rows.ndim == 1:
            keys: _Keys = rows["key"]
            return keys
    return np.zeros((0, 4), dtype="<u8")


def _size(folder: Path) -> int:
    with contextlib.suppress(OSError):
        return sum(path.stat().st_size for path in folder.iterdir())
    return 0


def _is_version(new: _Keys, old: _Keys) -> bool:
    """Return whether both are of one corpus: nearly all texts of the greater are in the other."""
    most = max(len(new), len(old))
    if min(len(new), len(old)) < _COMMON * most:
        return False
    return bool(np.isin(new[:, 0], old[:, 0]).sum() >= _COMMON * most)


def _removed(folder: Path) -> bool:
    """Remove an index that no process uses; return whether it is gone."""
    try:
        with opened(folder / MANIFEST) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_whole(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


class EarlierVectors:
    """Which of an index's vectors are in earlier ones of the same embedder, and where."""

    def __init__(self, root: Path, embedder: str, wanted: DocumentRows) -> None:
        """Look for `wanted` (their keys) in the indexes below `root`, the last used first."""
        self.root = root
        self.dimensions = 0
        """Of the vectors of earlier indexes; 0 where there are none."""
        self._sources: list[Vectors] = []
        self._source = np.full(len(wanted), _NONE, dtype=np.int16)
        self._row = np.zeros(len(wanted), dtype=np.int64)
        for rows, vectors in _of_embedder(root, embedder):
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
        span = slice(start, start + len(block))
        for number, vectors in enumerate(self._sources):
            chosen = np.flatnonzero(self._source[span] == number)
            block[chosen] = vectors[self._row[span][chosen]]

    def _take(
        self,
        missing: npt.NDArray[np.int64],
        keys: npt.NDArray[Any],
        rows: DocumentRows,
        vectors: Vectors,
    ) -> None:
        """Take from one index what is wanted and sound."""
        stored = rows["key"]
        order = np.argsort(stored[:, 0], kind="stable")
        first = np.ascontiguousarray(stored[order, 0])
        # Keys whose first 64 bits are equal and the others not are embedded again: it costs one.
        positions = order[np.maximum(np.searchsorted(first, keys[:, 0], side="right") - 1, 0)]
        equal = np.flatnonzero((stored[positions] == keys).all(axis=1))
        sound = equal[_are_sound(vectors, rows["crc"], positions[equal])]
        if len(sound):
            self.dimensions = vectors.shape[1]
            self._source[missing[sound]] = len(self._sources)
            self._row[missing[sound]] = positions[sound]
            self._sources.append(vectors)


def _of_embedder(root: Path, embedder: str) -> Iterator[tuple[DocumentRows, Vectors]]:
    """Yield rows and vectors of indexes whose parts have the right form, the last used first."""
    for folder in by_use(root):
        with contextlib.suppress(*_UNREADABLE):
            if manifest_of(folder).get("embedder") != embedder:
                continue
            rows, vectors = mapped(folder / "rows.npy"), mapped(folder / "vectors.npy")
            types = (rows.dtype, vectors.dtype, vectors.ndim, vectors.flags.c_contiguous)
            if types == (ROWS, VECTORS, 2, True) and rows.shape == vectors.shape[:1] and len(rows):
                yield rows, vectors


def by_use(root: Path) -> list[Path]:
    """Return the folders of indexes, the last used first; what vanishes meanwhile is left out."""
    folders: list[tuple[int, str, Path]] = []
    for folder in root.iterdir() if root.is_dir() else ():
        if not folder.name.startswith("."):
            with contextlib.suppress(OSError):
                folders.append(((folder / MANIFEST).stat().st_mtime_ns, folder.name, folder))
    return [folder for _, _, folder in sorted(folders, reverse=True)]


def _are_sound(
    vectors: Vectors, checksums: npt.NDArray[Any], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return which of these rows have their checksum and the length of a unit vector."""
    sound = np.zeros(len(rows), dtype=np.bool_)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE]
        block = vectors[part]
        actual = np.array([zlib.crc32(vector) for vector in block], dtype="<u4")
        near = np.abs(np.linalg.norm(block, axis=1) - 1.0) <= LENGTH_TOLERANCE
        sound[start : start + len(part)] = (actual == checksums[part]) & near
    return sound
