"""Files that we write appear whole or not at all, each by itself or several together.

`parts.json` names each file and the SHA-256 of its bytes. It is replaced last, so a process that
dies between two of the others leaves a folder that shows it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from fairgate.domain.errors import DataError, StoreError, UsageError
from fairgate.io.regular import opened
from fairgate.io.tables import read_json_object

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
    try:
        if target.exists() and not (target.is_file() or target.is_dir()):
            with target.open("wb") as file:
                yield DurableFile(file)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
        try:
            with _new_file(temporary) as new:
                yield new
            os.replace(temporary, target)  # noqa: PTH105 - tests replace this call
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        # Some file systems cannot sync a folder; the file itself is safe by then.
        with contextlib.suppress(OSError), _opened_folder(target.parent) as descriptor:
            os.fsync(descriptor)
    except OSError as error:
        raise StoreError.of_os_error(error, path=target, option=option) from error


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[DurableFile]:
    """Open a file that must not be there; at the end of the block it is on disk."""
    with path.open("xb", buffering=_BUFFER) as file:
        yield DurableFile(file)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _opened_folder(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_bytes(path: Path | str, data: bytes, *, option: str = "--out") -> None:
    """Replace a file's content, whole or not at all. Raises StoreError."""
    with durable_file(path, option=option) as file:
        file.write(data)


def write_text(path: Path | str, text: str, *, option: str = "--out") -> None:
    """Replace a file's content by text in UTF-8, line ends as they are. Raises StoreError."""
    write_bytes(path, text.encode(), option=option)


def write_lines(path: Path | str, lines: Iterable[str], *, option: str = "--out") -> str:
    """Write lines as they come, each with a line end; return the SHA-256. Raises StoreError."""
    with durable_file(path, option=option) as file:
        for data in _blocks(f"{line}\n" for line in lines):
            file.write(data)
        return file.sha256


def _blocks(pieces: Iterable[str]) -> Iterator[bytes]:
    """Yield the pieces as bytes, many short ones together."""
    block: list[str] = []
    characters = 0
    for piece in pieces:
        block.append(piece)
        characters += len(piece)
        if characters >= _BLOCK:
            yield "".join(block).encode()
            block.clear()
            characters = 0
    yield "".join(block).encode()


def write_parts(folder: Path, files: Mapping[str, Iterable[str]], *, option: str = "--out") -> None:
    """Replace files of a folder, which is made if need be; the texts come in pieces.

    All are complete and on disk before the first is replaced, so a full disk changes nothing.
    Files that have these bytes already, and other files of the folder, stay. Raises StoreError.
    """
    stage = folder / f".{secrets.token_hex(6)}.tmp"
    try:
        stage.mkdir(parents=True)
        try:
            parts = {name: _staged(stage / name, pieces) for name, pieces in files.items()}
            text = json.dumps({"schema_version": 1, "parts": parts}, indent=1) + "\n"
            whole = {**parts, PARTS: _staged(stage / PARTS, [text])}
            with _alone(folder):
                for name in [name for name, sha in whole.items() if _sha256(folder, name) != sha]:
                    os.replace(stage / name, folder / name)  # noqa: PTH105 - tests replace this call
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    except OSError as error:
        raise StoreError.of_os_error(error, path=folder, option=option) from error


def add_part(folder: Path, name: str, text: str, *, option: str = "--out") -> None:
    """Write a file of a folder beside those that were written together, if there are any."""
    try:
        parts = read_json_object(folder / PARTS).get("parts")
    except DataError:
        parts = None
    write_text(folder / name, text, option=option)
    whole = {**(parts if isinstance(parts, dict) else {}), name: _sha256(folder, name)}
    record = {"schema_version": 1, "parts": whole}
    write_text(folder / PARTS, json.dumps(record, indent=1) + "\n", option=option)


def _staged(path: Path, pieces: Iterable[str]) -> str:
    """Write a new file; return its SHA-256."""
    with _new_file(path) as file:
        for data in _blocks(pieces):
            file.write(data)
    return file.sha256


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep two runs that end at the same moment from mixing their files."""
    import fcntl

    with _opened_folder(folder) as descriptor:
        # Some file systems lock no folder; `parts.json` then tells what was mixed.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        with contextlib.suppress(OSError):
            os.fsync(descriptor)


def check_parts(folder: Path, names: Iterable[str]) -> None:
    """Raise DataError unless all files that are named, among them `names`, are of one writing."""
    again = "run again, and leave the folder as the run wrote it"
    record = read_json_object(folder / PARTS)
    parts = record.get("parts")
    if not isinstance(parts, dict) or not all(isinstance(sha, str) for sha in parts.values()):
        raise DataError(f"{folder / PARTS}: names no files; {again}")
    wanted = dict.fromkeys((*parts, *names))
    for name in wanted:
        _require_readable(folder / name)
    differing = [name for name in wanted if _sha256(folder, name) != parts.get(name)]
    if differing:
        raise DataError(
            f"{folder}: its files are of different runs or were edited: {', '.join(differing)} "
            f"{'is' if len(differing) == 1 else 'are'} not what {PARTS} names; {again}"
        )


def is_part(file: Path) -> bool:
    """Whether a file is one of those that were written together into its folder, as it is."""
    if file.name == PARTS:
        return True
    try:
        parts = read_json_object(file.parent / PARTS).get("parts")
    except DataError:
        return False
    return isinstance(parts, dict) and parts.get(file.name, "") == _sha256(file.parent, file.name)


def _require_readable(path: Path) -> None:
    """Raise DataError where there is a file and the system does not let it be read."""
    try:
        with opened(path) as file:
            file.read(1)
    except (FileNotFoundError, IsADirectoryError):
        return
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); check its permissions, and the disk"
        ) from error


def _sha256(folder: Path, name: str) -> str | None:
    """Return the checksum of a file of the folder; None where there is none, or a link."""
    # A name from the file may lead anywhere; only files of the folder are parts of it.
    path = folder / name
    if Path(name).name != name or path.is_symlink() or not path.is_file():
        return None
    with contextlib.suppress(OSError), opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return None
