"""Results by content in one SQLite file: what was computed once is never computed again."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairgate.systems.store_file import (
    checksum,
    give_back,
    is_damage,
    mapped_errors,
    opened,
    rebuilt,
    transaction,
)

Vectors = npt.NDArray[np.float32]

_CHUNK = 500
_DELETED_AT_ONCE = 10_000
_EMBEDDING = "embedding"


class SqliteResultStore:
    """Stores texts and vectors by `(kind, key)` across runs, killed processes and threads.

    Write-ahead logging: a batch is stored whole or not at all, and a process that dies loses at
    most the batch it was writing. Every row has a checksum: a damaged row is forgotten, a damaged
    file is moved aside to `<name>.corrupt-<n>` and what is readable in it is kept; both are listed
    in `notices`. Several processes may use one file.
    """

    def __init__(self, path: Path | str) -> None:
        """Open the store, or make it. Raises StoreError."""
        self._path = Path(path)
        self._lock = threading.RLock()
        self.notices: list[str] = []
        with mapped_errors(self._path):
            try:
                self._connection = opened(self._path)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self._rebuild()

    def close(self) -> None:
        """Release the file. Stored results stay."""
        with self._lock:
            self._connection.close()

    def copy_to(self, path: Path) -> None:
        """Write everything that is stored into one new file. Raises StoreError."""
        with self._lock, mapped_errors(self._path):
            path.unlink(missing_ok=True)
            self._connection.execute("VACUUM INTO ?", (str(path),))

    def get_many(self, kind: str, keys: Sequence[str]) -> Mapping[str, str]:
        """Return the stored texts of those keys that are there and undamaged, in `keys`' order."""
        return {key: value.decode() for key, value in self._get(kind, keys).items()}

    def put_many(self, kind: str, items: Iterable[tuple[str, str]]) -> None:
        """Store texts, all or none; an existing key gets the new value. Raises StoreError."""
        self._put(kind, ((key, value.encode()) for key, value in items))

    def get_vectors(self, keys: Sequence[str]) -> dict[str, Vectors]:
        """Return the stored float32 vectors of those keys that are there and undamaged."""
        found = self._get(_EMBEDDING, keys)
        return {key: np.frombuffer(value, dtype="<f4") for key, value in found.items()}

    def put_vectors(self, items: Iterable[tuple[str, Vectors]]) -> None:
        """Store float32 vectors, all or none. Raises StoreError."""
        self._put(_EMBEDDING, ((key, vector.astype("<f4").tobytes()) for key, vector in items))

    def forget_vectors(self, keys: Sequence[str]) -> None:
        """Remove the vectors of those keys that are there; much free space is given back.

        A store that cannot be written, or is in use, keeps them: that costs room, nothing else.
        """
        with contextlib.suppress(sqlite3.Error), self._lock:
            for start in range(0, len(keys), _DELETED_AT_ONCE):
                chunk = [(_EMBEDDING, key) for key in keys[start : start + _DELETED_AT_ONCE]]
                with transaction(self._connection):
                    self._connection.executemany(
                        "DELETE FROM results WHERE kind = ? AND key = ?", chunk
                    )
            give_back(self._connection)

    def _get(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        damaged: list[str] = []
        with self._lock, mapped_errors(self._path):
            for start in range(0, len(keys), _CHUNK):
                chunk = keys[start : start + _CHUNK]
                for key, value, written in self._select(kind, chunk):
                    if written == checksum(kind, key, value) and _is_sound_value(kind, value):
                        found[key] = value
                    else:
                        damaged.append(key)
        if damaged:
            self._forget(kind, damaged)
        return {key: found[key] for key in dict.fromkeys(keys) if key in found}

    def _select(self, kind: str, keys: Sequence[str]) -> list[tuple[str, bytes, int]]:
        marks = ",".join("?" * len(keys))
        query = f"SELECT key, value, checksum FROM results WHERE kind = ? AND key IN ({marks})"  # noqa: S608 - marks only
        try:
            return self._connection.execute(query, (kind, *keys)).fetchall()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self._connection.close()
            self._rebuild()
            return self._connection.execute(query, (kind, *keys)).fetchall()

    def _put(self, kind: str, items: Iterable[tuple[str, bytes]]) -> None:
        rows = [(kind, key, value, checksum(kind, key, value)) for key, value in items]
        with self._lock, mapped_errors(self._path):
            try:
                self._insert(rows)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self._connection.close()
                self._rebuild()
                self._insert(rows)

    def _insert(self, rows: Sequence[tuple[str, str, bytes, int]]) -> None:
        with transaction(self._connection):
            self._connection.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)", rows)

    def _forget(self, kind: str, keys: Sequence[str]) -> None:
        self._say(
            f"{self._path}: {len(keys):,} stored results ({kind}) had a wrong checksum; they were "
            "forgotten and are computed again"
        )
        # A store that cannot be written still answers; the row fails its check next time too.
        with contextlib.suppress(sqlite3.Error), self._lock, transaction(self._connection):
            self._connection.executemany(
                "DELETE FROM results WHERE kind = ? AND key = ?", [(kind, key) for key in keys]
            )

    def _rebuild(self) -> None:
        self._connection, notice = rebuilt(self._path)
        if notice:
            self._say(notice)

    def _say(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)


def _is_sound_value(kind: str, value: object) -> bool:
    """Return whether bytes can be what this kind of result is stored as."""
    if not isinstance(value, bytes):
        return False
    if kind == _EMBEDDING:
        return len(value) % 4 == 0 and bool(np.isfinite(np.frombuffer(value, dtype="<f4")).all())
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
