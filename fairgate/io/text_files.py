"""Text files read strictly, as lines or one JSON object, with the place of each fault."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairgate.domain.errors import DataError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.wording import harmless

MAX_LINE_BYTES = 8 * 2**20
MAX_TEXT_CHARACTERS = 2**20
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
MOST_BYTES = 256 << 20


def read_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield `(line number from 1, line with its line end)`; a UTF-8 byte order mark is skipped.

    Streams. Raises DataError with `path:line` for bytes that are not UTF-8, for NUL bytes and for
    lines over 8 MiB, and for files that cannot be read.
    """
    number = 0
    try:
        with Path(path).open("rb") as file:
            while raw := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if number == 1:
                    _refuse_utf16(raw, path)
                    raw = raw.removeprefix(_UTF8_BOM)
                yield number, _decoded(raw, f"{path}:{number}")
    except OSError as error:
        raise unreadable(path, error) from error


def _refuse_utf16(raw: bytes, path: str) -> None:
    if raw.startswith(_UTF16_BOMS):
        raise DataError(f"{path}:1: the file is UTF-16; expected UTF-8: save it as UTF-8")


def _decoded(raw: bytes, place: str) -> str:
    if len(raw) > MAX_LINE_BYTES:
        raise DataError(
            f"{place}: the line is longer than {MAX_LINE_BYTES:,} bytes; expected one record a "
            "line: check the line ends, or remove the record"
        )
    if (nul := raw.find(0)) >= 0:
        raise DataError(
            f"{place}: NUL byte at byte {nul} of the line; expected text: the file is binary, "
            "UTF-16 without a mark, or damaged"
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        near = raw[max(0, error.start - 12) : error.start + 4]
        raise DataError(
            f"{place}: byte {error.start} of the line (0x{raw[error.start]:02x}, in {near!r}) is "
            "not UTF-8; expected UTF-8 throughout: convert the file, with iconv for instance"
        ) from error


def unreadable(path: str, error: OSError) -> DataError:
    """Return the DataError with the reason why a file cannot be read and the next step."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: no such file; expected an existing file: check the path")
    if isinstance(error, IsADirectoryError):
        return DataError(f"{path}: is a folder; expected a file")
    reason = error.strerror or type(error).__name__
    return DataError(f"{path}: cannot be read ({reason}); check the path and its permissions")


def checked_text(value: object, place: str, column: str) -> str:
    """Return `value` where it is a text that can be stored: no NUL, no half surrogate, ≤ 1 MiB."""
    if not isinstance(value, str):
        raise DataError(
            f"{place}: {column!r} holds {capped(value)} ({type(value).__name__}); expected text"
        )
    if len(value) > MAX_TEXT_CHARACTERS:
        raise DataError(
            f"{place}: {column!r} holds {len(value):,} characters; at most "
            f"{MAX_TEXT_CHARACTERS:,} are taken: split the text, or clean the table with "
            "`fairgate corpus prepare`, which drops such rows and counts them"
        )
    if "\x00" in value:
        raise DataError(f"{place}: {column!r} holds a NUL character; remove it")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"{place}: {column!r} holds half a surrogate pair at character "
                f"{error.start}, which is not text; remove or complete it"
            ) from error
    return value


def capped(value: object, limit: int = 60) -> str:
    """Return `repr(value)`, shortened and harmless: hostile values meet terminals and logs."""
    if isinstance(value, str | bytes):
        value = value[: limit + 1]
    text = harmless(repr(value))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def file_sha256(path: str) -> str:
    """Return the SHA-256 of a file's bytes; an unchanged file is hashed once a process."""
    try:
        state = os.stat(path)  # noqa: PTH116 - one call gives the whole identity
        return _sha256_of(path, state.st_size, state.st_mtime_ns, state.st_ino)
    except OSError as error:
        raise unreadable(path, error) from error


@functools.lru_cache(maxsize=64)
def _sha256_of(path: str, _size: int, _mtime_ns: int, _inode: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_whole(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return a file's bytes. Raises DataError where it cannot be read or is larger than allowed."""
    try:
        with path.open("rb") as file:
            raw = file.read(most_bytes + 1)
    except OSError as error:
        raise unreadable(str(path), error) from error
    except ValueError as error:  # a NUL byte in the name
        raise DataError(f"{str(path)!a}: is no name of a file ({error})") from error
    if len(raw) > most_bytes:
        raise DataError(
            f"{path}: larger than {most_bytes >> 20} MiB; expected a file that we wrote"
        )
    return raw


def read_json_object(path: Path, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """Return the object in a JSON file. Raises DataError with `path:line:column`."""
    try:
        value = read_json(read_whole(path, most_bytes))
    except JsonError as error:
        place = f"{path}:{error.line}:{error.column}" if error.line else str(path)
        raise DataError(f"{place}: {error}; expected the file as it was written") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: holds a {type(value).__name__}; expected a JSON object")
    return value
