"""How much room indexes take: earlier versions of a corpus, and what was not used, are removed."""

from __future__ import annotations

import contextlib
import fcntl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.retrieval.build_place import if_free, remove_whole
from fairgate.retrieval.earlier_vectors import by_use
from fairgate.retrieval.index_folder import (
    MANIFEST,
    ROWS,
    DamagedIndexError,
    OutdatedIndexError,
    manifest_of,
    mapped,
)
from fairgate.retrieval.unfinished_vectors import PREFIX, read_unfinished

MOST_VERSIONS = 8
"""Indexes of one corpus: both sides of a comparison, their union, and a few branches."""
MOST_BYTES = 8 << 30
"""Of all indexes together; three times the newest where that is more."""
_COMMON = 0.9
"""Share of texts that two versions of one corpus have in common."""


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
