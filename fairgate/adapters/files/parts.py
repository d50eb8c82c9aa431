"""Files that belong together: replaced together, and known to belong together when they are read.

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

from fairgate.adapters.files.json_file import read_json_object
from fairgate.domain.errors import DataError, StoreError

PARTS = "parts.json"
_BUFFER = 1 << 20


def write_parts(folder: Path, files: Mapping[str, Iterable[str]], *, option: str = "--out") -> None:
    """Replace files of a folder, which is made if need be; the texts come in pieces.

    All are complete and on disk before the first is replaced, so a full disk changes nothing.
    Other files of the folder stay. Raises StoreError.
    """
    stage = folder / f".{secrets.token_hex(6)}.tmp"
    try:
        stage.mkdir(parents=True)
        try:
            parts = {name: _written(stage / name, pieces) for name, pieces in files.items()}
            text = json.dumps({"schema_version": 1, "parts": parts}, indent=1) + "\n"
            _written(stage / PARTS, [text])
            with _alone(folder):
                for name in (*parts, PARTS):
                    os.replace(stage / name, folder / name)  # noqa: PTH105 - tests replace this call
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    except OSError as error:
        raise StoreError.of_os_error(error, path=folder, option=option) from error


def _written(path: Path, pieces: Iterable[str]) -> str:
    """Write a new file to the disk and return the SHA-256 of its bytes."""
    digest = hashlib.sha256()
    with path.open("xb", buffering=_BUFFER) as file:
        for piece in pieces:
            data = piece.encode()
            file.write(data)
            digest.update(data)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


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
    """Raise DataError unless all parts of a folder, among them `names`, are of one writing."""
    again = "run again, and leave the folder as the run wrote it"
    found = read_json_object(folder / PARTS)
    parts = found.get("parts")
    if not isinstance(parts, dict) or not all(isinstance(sha, str) for sha in parts.values()):
        raise DataError(f"{folder / PARTS}: names no parts; {again}")
    wanted = dict.fromkeys((*parts, *names))
    differing = [name for name in wanted if _sha256(folder, name) != parts.get(name)]
    if differing:
        raise DataError(
            f"{folder}: its parts are of different runs or were edited: {', '.join(differing)} "
            f"{'is' if len(differing) == 1 else 'are'} not what {PARTS} names; {again}"
        )


def _sha256(folder: Path, name: str) -> str | None:
    # A name from the file may lead anywhere; only files of the folder are parts of it.
    if Path(name).name != name or not (folder / name).is_file():
        return None
    with (folder / name).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
