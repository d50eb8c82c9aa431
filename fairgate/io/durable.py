"""Files that we write appear whole or not at all, each by itself or several together.

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

from fairgate.domain.errors import DataError, StoreError, UsageError
from fairgate.io.text_files import read_json_object

_LINES_A_WRITE = 1024
PARTS = "parts.json"
_BUFFER = 1 << 20
_BLOCK = 1 << 16
"""Characters that are written at once, if pieces are shorter."""


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
