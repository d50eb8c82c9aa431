"""Files that belong together: replaced together, and known to belong together when they are read.

`parts.json` names each file and the SHA-256 of its bytes. It is replaced last, so a process that
dies between two of the others leaves a folder that shows it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from fairgate.domain.errors import DataError, StoreError
from fairgate.io.json_file import read_json_object

PARTS = "parts.json"
_BUFFER = 1 << 20
_BLOCK = 1 << 16
"""Characters that are written at once, if pieces are shorter."""


def write_parts(folder: Path, files: Mapping[str, Iterable[str]], *, option: str = "--out") -> None:
    """Replace files of a folder, which is made if need be; the texts come in pieces.

    All are complete and on disk before the first is replaced, so a full disk changes nothing.
    Files that have these bytes already, and other files of the folder, stay. Raises StoreError.
    """
    stage = folder / f".{secrets.token_hex(6)}.tmp"
    try:
        stage.mkdir(parents=True)
        try:
            with contextlib.ExitStack() as stack:
                made = {
                    name: _Made(stage / name, folder / name, pieces, stack)
                    for name, pieces in files.items()
                }
                parts = {name: one.sha256 for name, one in made.items()}
                text = json.dumps({"schema_version": 1, "parts": parts}, indent=1) + "\n"
                made[PARTS] = _Made(stage / PARTS, folder / PARTS, [text], stack)
                with _alone(folder):
                    replaced = [name for name, one in made.items() if one.is_to_replace()]
                    for name in replaced:
                        os.replace(stage / name, folder / name)  # noqa: PTH105 - tests replace this call
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    except OSError as error:
        raise StoreError.of_os_error(error, path=folder, option=option) from error


class _Made:
    """A file with its new bytes: written beside the old one, unless that one has them."""

    def __init__(
        self, path: Path, old: Path, pieces: Iterable[str], stack: contextlib.ExitStack
    ) -> None:
        """Compare the pieces with the old file as they come; from where they differ, write."""
        digest, same = hashlib.sha256(), 0
        self._path, self._old = path, old
        self._kept = _opened(old, stack)
        self._then = _identity(os.fstat(self._kept.fileno())) if self._kept else ()
        file: IO[bytes] | None = None
        for data in _blocks(pieces):
            digest.update(data)
            if file is None and self._kept and self._kept.read(len(data)) == data:
                same += len(data)
                continue
            file = file or self._begun(same, stack)
            file.write(data)
        self.sha256 = digest.hexdigest()
        if file is None and (self._kept is None or self._kept.read(1)):
            file = self._begun(same, stack)
        if file is not None:
            self._kept = None
            _to_disk(file)

    def _begun(self, same: int, stack: contextlib.ExitStack) -> IO[bytes]:
        """Open the new file, with the first bytes of the old one."""
        file = stack.enter_context(self._path.open("xb", buffering=_BUFFER))
        if same and self._kept:
            self._kept.seek(0)
            while same:
                data = self._kept.read(min(same, _BUFFER))
                file.write(data)
                same -= len(data)
        return file

    def is_to_replace(self) -> bool:
        """Return whether the new file takes the old one's place: asked when nobody else may write.

        It does, too, where another process has replaced the old one since it was compared.
        """
        if self._kept is None:
            return True
        with contextlib.suppress(OSError):
            if _identity(self._old.lstat()) == self._then:
                return False
        self._kept.seek(0)
        with self._path.open("xb", buffering=_BUFFER) as file:
            shutil.copyfileobj(self._kept, file)
            _to_disk(file)
        with self._path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != self.sha256:
                raise OSError(errno.EBUSY, f"{self._old.name} is being edited by somebody else")
        return True


def _blocks(pieces: Iterable[str]) -> Iterator[bytes]:
    """Yield the pieces as bytes, many short ones together."""
    held: list[str] = []
    characters = 0
    for piece in pieces:
        held.append(piece)
        characters += len(piece)
        if characters >= _BLOCK:
            yield "".join(held).encode()
            held.clear()
            characters = 0
    yield "".join(held).encode()


def _opened(path: Path, stack: contextlib.ExitStack) -> IO[bytes] | None:
    """Open a plain file for comparing; None where there is none, or a link."""
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb", _BUFFER)
    except OSError:
        return None
    stack.enter_context(file)
    return file if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep two runs that end at the same moment from mixing their files."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # Some file systems lock no folder; `parts.json` then tells what was mixed.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_parts(folder: Path, names: Iterable[str]) -> None:
    """Raise DataError unless all files that are named, among them `names`, are of one writing."""
    again = "run again, and leave the folder as the run wrote it"
    found = read_json_object(folder / PARTS)
    parts = found.get("parts")
    if not isinstance(parts, dict) or not all(isinstance(sha, str) for sha in parts.values()):
        raise DataError(f"{folder / PARTS}: names no files; {again}")
    wanted = dict.fromkeys((*parts, *names))
    differing = [name for name in wanted if _sha256(folder, name) != parts.get(name)]
    if differing:
        raise DataError(
            f"{folder}: its files are of different runs or were edited: {', '.join(differing)} "
            f"{'is' if len(differing) == 1 else 'are'} not what {PARTS} names; {again}"
        )


def _sha256(folder: Path, name: str) -> str | None:
    # A name from the file may lead anywhere; only files of the folder are parts of it.
    if Path(name).name != name or not (folder / name).is_file():
        return None
    with (folder / name).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
