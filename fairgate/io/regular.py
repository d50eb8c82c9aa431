"""Opening what is read: regular files, since nothing else is sure to end.

A pipe waits for somebody who writes, a device may give bytes for ever.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader, TextIOWrapper
from pathlib import Path

from fairgate.domain.errors import DataError, ExitCode

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class IrregularFileError(DataError, OSError):
    """A path leads to a pipe, a socket or a device."""

    exit_code = ExitCode.USAGE

    def __str__(self) -> str:
        """Return the path and what it leads to."""
        return f"{self.filename}: {self.strerror}"


def opened(path: str | Path) -> BufferedReader:
    """Open a regular file to read its bytes.

    Raises IrregularFileError for what could be waited for without end, OSError as `open` does, and
    ValueError for what is no name of a file.
    """
    return open(path, "rb", opener=_regular)


def content_of(path: str | Path) -> bytes:
    """Return the bytes of a regular file; raises as `opened` does."""
    with opened(path) as file:
        return file.read()


def text_of(path: str | Path, errors: str = "strict") -> str:
    """Return the text of a regular file in UTF-8; raises as `opened` does, and UnicodeError."""
    with TextIOWrapper(opened(path), "utf-8", errors) as file:
        return file.read()


def require_regular(path: str | Path | int, name: str = "") -> None:
    """Raise IrregularFileError where a path, or a descriptor, is of no file and no folder.

    `name` is what a descriptor's file is called. Raises OSError where there is nothing.
    """
    if kind := _KINDS.get(stat.S_IFMT(os.stat(path).st_mode)):  # noqa: PTH116 (descriptors, too)
        reason = f"is {kind}; expected a regular file: write its content into one"
        raise IrregularFileError(errno.EINVAL, reason, name or str(path))


def _regular(path: str, flags: int) -> int:
    require_regular(path)  # before a device is opened
    # Whoever replaces it meanwhile by a pipe is not waited for.
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    try:
        require_regular(descriptor, path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
