"""Files that we write appear whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from fairgate.domain.errors import StoreError, UsageError

_LINES_A_WRITE = 1024


class DurableFile:
    """A file being written: it is invisible until it is complete and on disk."""

    def __init__(self, file: IO[bytes]) -> None:
        """Write to an open binary file."""
        self._file = file
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        """Return the checksum of what was written so far."""
        return self._digest.hexdigest()

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._file.write(data)
        self._digest.update(data)
        self.size += len(data)


@contextlib.contextmanager
def durable_file(path: Path | str, *, option: str = "--out") -> Iterator[DurableFile]:
    """Open a file that replaces `path` at the end of the block: old content or new, never half.

    Missing folders are made. If the block raises, or the process dies, `path` stays as it was.
    What is no file (`/dev/null`, `/dev/stdout`, a pipe) is written to and never replaced. Raises
    StoreError where the disk is full or the folder cannot be written; `option` is what the message
    tells the user to change.
    """
    target = Path(path)
    if not target.name:
        raise UsageError(f"{option} names the folder {str(path)!r}; expected the name of a file")
    if _is_device(target):
        with _written_through(target, option) as file:
            yield file
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with _new_file(temporary) as file:
                yield DurableFile(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)  # noqa: PTH105 - tests replace this call
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise StoreError.of_os_error(error, path=target, option=option) from error


def _is_device(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:  # not there, or not to be seen: opening it says so
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextlib.contextmanager
def _written_through(path: Path, option: str) -> Iterator[DurableFile]:
    try:
        with path.open("wb") as file:
            yield DurableFile(file)
    except OSError as error:
        raise StoreError.of_os_error(error, path=path, option=option) from error


def write_bytes(path: Path | str, data: bytes, *, option: str = "--out") -> None:
    """Replace a file's content, whole or not at all. Raises StoreError."""
    with durable_file(path, option=option) as file:
        file.write(data)


def write_text(path: Path | str, text: str, *, option: str = "--out") -> None:
    """Replace a file's content by text in UTF-8, line ends as they are. Raises StoreError."""
    write_bytes(path, text.encode(), option=option)


def write_lines(path: Path | str, lines: Iterable[str], *, option: str = "--out") -> str:
    """Write lines as they come, each with a line end; return the SHA-256. Raises StoreError."""
    pending: list[str] = []
    with durable_file(path, option=option) as file:
        for line in lines:
            pending.append(line)
            if len(pending) == _LINES_A_WRITE:
                file.write(_joined(pending))
                pending.clear()
        file.write(_joined(pending))
        return file.sha256


def _joined(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _new_file(path: Path) -> IO[bytes]:
    # Unlike tempfile's 0600, the mode follows the umask: reports are read by other accounts.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    return os.fdopen(descriptor, "wb")


def _sync_folder(folder: Path) -> None:
    # Some file systems cannot sync a folder; the file itself is safe by then.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
