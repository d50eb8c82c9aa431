"""The folder of indexes: one appears whole, by one process at a time; unused ones are removed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import StoreError
from fairgate.domain.ports import SILENT, Progress
from fairgate.retrieval.earlier_vectors import PREFIX, by_use, read_unfinished
from fairgate.retrieval.index_folder import (
    MANIFEST,
    ROWS,
    DamagedIndexError,
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


@dataclass(frozen=True, slots=True)
class _Index:
    folder: Path
    bytes: int
    keys: npt.NDArray[Any]
    """`[n, 4]`; empty where they cannot be read."""


def make_room(newest: Path) -> npt.NDArray[Any]:
    """Remove what is over the limits, except what a process uses; the last used stay.

    Returns the keys, `[n, 4]`, of vectors that no index holds any more. Never raises OSError.
    """
    found = [_read(folder) for folder in by_use(newest.parent)]
    new = next((index for index in found if index.folder == newest), None)
    if new is None:
        return np.zeros((0, 4), dtype="<u8")
    most = max(MOST_BYTES, 3 * new.bytes)
    versions, total = 1, new.bytes
    kept, removed = [new], []
    for index in found:
        if index is new:
            continue
        is_version = _is_version(new.keys, index.keys)
        over = (is_version and versions >= MOST_VERSIONS) or total + index.bytes > most
        if over and _removed(index.folder):
            removed.append(index)
            continue
        kept.append(index)
        versions += is_version
        total += index.bytes
    _clear_unfinished(newest.parent, new.keys, most - total)
    return _without([index.keys for index in removed], [index.keys for index in kept])


@contextlib.contextmanager
def sole_builder(target: Path, progress: Progress | None = None) -> Iterator[None]:
    """Wait until no other process builds `target`; then none does within the block.

    Leftovers of killed processes are removed. Raises StoreError where nothing can be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target.parent)
        with _held(_lock_path(target), progress or SILENT):
            yield
    except OSError as error:
        raise StoreError.of_os_error(error, path=target, option="--cache") from error


@contextlib.contextmanager
def build_folder(target: Path) -> Iterator[Path]:
    """Give an empty folder that takes `target`'s place at the end of the block, or vanishes.

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
def _held(path: Path, progress: Progress) -> Iterator[None]:
    while True:
        with path.open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress.note("another process builds this index; waiting until it has")
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_same(path, lock.fileno()):
                continue  # its holder removed the file: whoever comes next locks another one
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_same(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _lock_path(target: Path) -> Path:
    return target.with_name(f"{_PREFIX}{target.name}.lock")


def _remove_leftovers(parent: Path) -> None:
    """Remove build folders whose process has ended: their lock is free."""
    names = {path.name.removesuffix(".lock") for path in parent.glob(f"{_PREFIX}*")}
    for name in sorted(names):
        with if_free(parent / name.removeprefix(_PREFIX)) as free:
            if free:
                shutil.rmtree(parent / name, ignore_errors=True)


@contextlib.contextmanager
def if_free(target: Path) -> Iterator[bool]:
    """Say whether no process builds `target`; if so, none does within the block."""
    path = _lock_path(target)
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(path.open("ab"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = _is_same(path, lock.fileno())
        except OSError:
            free = False
        yield free
        if free:
            path.unlink(missing_ok=True)


def _clear_unfinished(root: Path, known: npt.NDArray[Any], room: int) -> None:
    """Remove what builds that did not end have left, where the newest index holds it all.

    Also where there is no room for it.
    """
    for folder in sorted(root.glob(f"{PREFIX}*")):
        with if_free(root / folder.name.removeprefix(PREFIX)) as free:
            found = read_unfinished(folder) if free else None
            size = 0 if found is None else found[0].nbytes + found[1].nbytes
            is_known = found is None or np.isin(found[0]["key"][:, 0], known[:, 0]).all()
            if free and (is_known or size > room):
                remove_whole(folder)
            else:
                room -= size


def _read(folder: Path) -> _Index:
    keys = np.zeros((0, 4), dtype="<u8")
    with contextlib.suppress(OSError, ValueError, EOFError, DamagedIndexError, OutdatedIndexError):
        manifest_of(folder)
        rows = mapped(folder / "rows.npy")
        keys = rows["key"] if rows.dtype == ROWS and rows.ndim == 1 else keys
    size = 0
    with contextlib.suppress(OSError):
        size = sum(path.stat().st_size for path in folder.iterdir())
    return _Index(folder, size, keys)


def _is_version(new: npt.NDArray[Any], old: npt.NDArray[Any]) -> bool:
    """Return whether both are of one corpus: nearly all texts of the greater are in the other."""
    most = max(len(new), len(old))
    if min(len(new), len(old)) < _COMMON * most:
        return False
    return bool(np.isin(new[:, 0], old[:, 0]).sum() >= _COMMON * most)


def _removed(folder: Path) -> bool:
    """Remove an index that no process uses; return whether it is gone."""
    try:
        with (folder / MANIFEST).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_whole(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _without(removed: list[npt.NDArray[Any]], kept: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    gone = np.concatenate([np.zeros((0, 4), dtype="<u8"), *removed])
    held = np.concatenate([keys[:, 0] for keys in kept])
    return gone[~np.isin(gone[:, 0], held)]
