"""Results by content in one SQLite file: what was computed once is never computed again."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import resource
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from fairgate.domain.errors import StoreError
from fairgate.domain.ports import Vectors

T = TypeVar("T")

_CHUNK = 500
_EMBEDDING = "embedding"
_ROWS_AT_ONCE = 500
_SCHEMA_VERSION = 1
_OF_SQLITE, _LOCK = ("-wal", "-shm"), ".lock"
_BESIDE = (*_OF_SQLITE, _LOCK)
"""Ends of the names of a store's other files."""
_BUSY_SECONDS = 60.0
_RETRY_SECONDS = 0.01
_TABLE = """
CREATE TABLE IF NOT EXISTS results (
    kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (kind, key))
"""
_INSERT = "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)"
_SELECT = "SELECT key, value, checksum FROM results WHERE kind = ? AND key"
_DELETE = "DELETE FROM results WHERE kind = ? AND key = ?"
_NOT_WRITABLE = (
    "cannot be written ({text}); make the folder writable, or name another place with --cache"
)
_ERRORS = {
    "full": "the disk is full; results stored so far are kept: free some space and run again, or "
    "name another place with --cache",
    "readonly": _NOT_WRITABLE,
    "unable to open": _NOT_WRITABLE,
    "locked": "another process has held the store for over {seconds:.0f} s; end it, or name "
    "another place with --cache",
    "": "the result store failed ({text}); name another place with --cache, or delete the file",
}
"""By what SQLite says, what users are told."""


class SqliteResultStore:
    """Stores texts and vectors by `(kind, key)` across runs, killed processes and threads.

    Write-ahead logging: a batch is stored whole or not at all, and a process that dies loses at
    most the batch it was writing. Every row has a checksum: a damaged row is forgotten, a damaged
    file is moved aside to `<name>.corrupt-<n>` and what is readable in it is kept; both are listed
    in `notices`. Several processes may use one file.
    """

    def __init__(self, path: Path | str) -> None:
        """Open the store, or make it. Raises StoreError, also where a file of it is a link."""
        self._path = Path(path)
        for file in (Path(f"{path}{suffix}") for suffix in ("", *_BESIDE)):
            if file.is_symlink():
                raise StoreError(
                    f"{file}: is a link, and nothing is stored through one; remove it, or name "
                    "another place with --cache"
                )
        self._lock = threading.RLock()
        self.notices: list[str] = []
        with self._mapped_errors():
            try:
                self._connection = _opened(self._path)
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._rebuild()

    def close(self) -> None:
        """Release the file. Stored results stay."""
        with self._lock:
            self._connection.close()

    def fold(self) -> None:
        """Move the log's rows into the file; what others hold open or a full disk keeps, stays."""
        with contextlib.suppress(sqlite3.Error), self._lock:
            self._connection.execute("PRAGMA busy_timeout = 0")
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {int(1000 * _BUSY_SECONDS)}")

    def copy_to(self, path: Path) -> None:
        """Write everything that is stored into one new file. Raises StoreError."""
        with self._lock, self._mapped_errors():
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
        values = self._get(_EMBEDDING, keys)
        return {key: np.frombuffer(value, dtype="<f4") for key, value in values.items()}

    def put_vectors(self, items: Iterable[tuple[str, Vectors]]) -> None:
        """Store float32 vectors, all or none. Raises StoreError."""
        self._put(_EMBEDDING, ((key, vector.astype("<f4").tobytes()) for key, vector in items))

    def _get(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        values: dict[str, bytes] = {}
        damaged: list[str] = []
        with self._lock, self._mapped_errors():
            for start in range(0, len(keys), _CHUNK):
                chunk = keys[start : start + _CHUNK]
                query = f"{_SELECT} IN ({','.join('?' * len(chunk))})"
                rows = self._repaired(partial(self._selected, query, (kind, *chunk)))
                for key, value, written in rows:
                    if written == checksum(kind, key, value) and _is_sound_value(kind, value):
                        values[key] = value
                    else:
                        damaged.append(key)
        if damaged:
            self._say(
                f"{self._path}: {len(damaged):,} stored results ({kind}) had a wrong checksum; "
                "they were forgotten and are computed again"
            )
            # A store that cannot be written still answers; the row fails its check next time too.
            with contextlib.suppress(sqlite3.Error), self._lock:
                self._delete(kind, damaged)
        return {key: values[key] for key in dict.fromkeys(keys) if key in values}

    def _selected(self, query: str, values: Sequence[str]) -> list[tuple[str, bytes, int]]:
        return self._connection.execute(query, values).fetchall()

    def _put(self, kind: str, items: Iterable[tuple[str, bytes]]) -> None:
        rows = [(kind, key, value, checksum(kind, key, value)) for key, value in items]
        with self._lock, self._mapped_errors():
            self._repaired(lambda: _write(self._connection, _INSERT, rows))

    def _delete(self, kind: str, keys: Iterable[str]) -> None:
        _write(self._connection, _DELETE, [(kind, key) for key in keys])

    def _repaired(self, work: Callable[[], T]) -> T:
        """Run an operation, and once more after the damaged file was repaired."""
        try:
            return work()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            self._connection.close()
            self._rebuild()
            return work()

    def _rebuild(self) -> None:
        """Move the damaged file aside, start a new one and copy over what is still readable."""
        path = self._path
        with Path(f"{path}{_LOCK}").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another process may have repaired the file while this one waited.
            with contextlib.suppress(sqlite3.DatabaseError):
                self._connection = _opened(path)
                if self._connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                    return
                self._connection.close()
            names = (Path(f"{path}.corrupt-{n}") for n in itertools.count(1))
            aside = next(name for name in names if not name.exists())
            for suffix in ("", *_OF_SQLITE):
                with contextlib.suppress(FileNotFoundError):
                    Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
            self._connection = _opened(path)
            readable = 0
            for batch in _readable_rows(aside):
                good = [row for row in batch if row[3] == checksum(*row[:3])]
                _write(self._connection, _INSERT, good)
                readable += len(good)
        self._say(
            f"{path}: the result store was damaged; it was moved to {aside.name} and rebuilt with "
            f"the {readable:,} results that were readable; the others are computed again"
        )

    @contextlib.contextmanager
    def _mapped_errors(self) -> Iterator[None]:
        """Turn what the system and SQLite raise in the block into a StoreError with a next step."""
        try:
            yield
        except OSError as error:
            raise StoreError.of_os_error(error, path=self._path, option="--cache") from error
        except sqlite3.Error as error:
            text = str(error)
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith("SQLITE_IOERR") and _has_size_limit():
                too_large = OSError(errno.EFBIG, text)
                raise StoreError.of_os_error(
                    too_large, path=self._path, option="--cache"
                ) from error
            reason = next(reason for words, reason in _ERRORS.items() if words in text)
            reason = reason.format(text=text, seconds=_BUSY_SECONDS)
            raise StoreError(f"{self._path}: {reason}") from error

    def _say(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)


def _has_size_limit() -> bool:
    """Whether this process may write files up to a size only (`ulimit -f`)."""
    return resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY


def checksum(kind: str, key: str, value: bytes | str) -> int:
    """Return the checksum of a row, which is compared when the row is read."""
    raw = value if isinstance(value, bytes) else str(value).encode()
    return zlib.crc32(raw, zlib.crc32(f"{kind}\x00{key}\x00".encode()))


def _opened(path: Path) -> sqlite3.Connection:
    """Return a connection to the file, which is made where there is none. Raises StoreError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in (0, _SCHEMA_VERSION):
        raise StoreError(
            f"{path}: is a store of version {version}, made by another FairGate; "
            f"expected version {_SCHEMA_VERSION}: name another place with --cache, or delete it"
        )
    connection.execute("PRAGMA synchronous = NORMAL")
    if version == 0:
        _log_writes_ahead(connection)
        # Twice is no fault: another process may be at it, or have died between the two.
        connection.execute(_TABLE)
        connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
    columns = connection.execute("SELECT name FROM pragma_table_info('results')").fetchall()
    if [name for (name,) in columns] != ["kind", "key", "value", "checksum"]:
        raise sqlite3.DatabaseError("malformed: the table of results is missing or changed")


def _log_writes_ahead(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; SQLite itself does not wait for another that switches too."""
    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return


def _write(
    connection: sqlite3.Connection, statement: str, rows: Iterable[tuple[object, ...]]
) -> None:
    """Execute a statement for all rows, or for none of them."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany(statement, rows)
        connection.execute("COMMIT")
    except BaseException:
        # After a full disk SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Return whether an error says that the file is damaged, not that it is in use or full."""
    if isinstance(error, sqlite3.OperationalError):
        return "malformed" in str(error)
    return not isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError)


def _readable_rows(damaged: Path) -> Iterator[list[tuple[str, str, bytes, int]]]:
    source = sqlite3.connect(damaged)
    try:
        rows = source.execute("SELECT kind, key, value, checksum FROM results")
        while batch := rows.fetchmany(_ROWS_AT_ONCE):
            yield batch
    except sqlite3.DatabaseError:
        return
    finally:
        source.close()


def _is_sound_value(kind: str, value: object) -> bool:
    """Return whether bytes can be what this kind of result is stored as."""
    if not isinstance(value, bytes):
        return False
    try:
        if kind == _EMBEDDING:
            return bool(np.isfinite(np.frombuffer(value, dtype="<f4")).all())
        value.decode()
    except ValueError:  # no Unicode, or no whole number of float32
        return False
    return True
