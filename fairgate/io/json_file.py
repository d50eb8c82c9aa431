"""FairGate's own JSON files, which may have been edited, as objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairgate.domain.errors import DataError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.io.lines import unreadable

MOST_BYTES = 256 << 20


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
