"""The two versions of a repository's files that a change separates."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Protocol

from fairgate.domain.errors import UsageError
from fairgate.domain.wording import quoted
from fairgate.io.embedded_names import existing


class Files(Protocol):
    """A version of the repository's files, by path from its root."""

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes, None where this version has no such file."""
        ...


class Checkout:
    """The files that are checked out; no path leaves the root, links included."""

    def __init__(self, root: Path) -> None:
        """Read below `root`."""
        self._root = root

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes. Raises DataError where the path leads out of the root."""
        if not (self._root / path).exists():
            return None
        found = existing(path, self._root, confined=True)
        try:
            return found.read_bytes() if found.is_file() else None
        except OSError as error:
            raise UsageError(f"{quoted(path)} cannot be read: {error.strerror}") from error

    def link_to(self, path: str) -> str:
        """Return the first link on the way to a file, itself included; empty: there is none."""
        way = [*reversed(PurePosixPath(path).parents), PurePosixPath(path)]
        return next((str(part) for part in way if (self._root / part).is_symlink()), "")
