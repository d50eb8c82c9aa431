"""Bundles as zip files with one possible form, so that nothing can be hidden in one.

Members are stored, in the order of their names, with fixed times and modes. A file with any other
byte is refused: reading makes the archive again from its members and compares it. Stored members
cannot expand, so a file's size limits what reading it takes.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

from fairgate.domain.errors import DataError
from fairgate.domain.wording import quoted
from fairgate.io.json_file import read_whole

MOST_BYTES = 512 << 20
_TIME = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100644 << 16
_UNIX = 3
_BROKEN = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    ValueError,
    ArithmeticError,
    LookupError,
    struct.error,
    EOFError,
    OSError,
)
"""What zipfile raises for archives that are none, are cut off, or need what it does not do."""
_AGAIN = "expected the file as `fairgate bundle` wrote it; get it again, or bundle the run again"


def zipped(members: Mapping[str, bytes]) -> bytes:
    """Return the archive of the members. Equal members give equal bytes, on every machine."""
    return _archive(members).getvalue()


def _archive(members: Mapping[str, bytes]) -> io.BytesIO:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, _TIME)
            info.create_system, info.external_attr = _UNIX, _REGULAR_FILE
            archive.writestr(info, members[name])
    return memory


def unzipped(path: Path, known: frozenset[str]) -> dict[str, bytes]:
    """Return the members of a bundle by name; `known` are the names that it may have.

    Raises DataError for whatever `zipped` would not have written.
    """
    data = read_whole(path, MOST_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            _check_members(path, infos, known, len(data))
            members = {info.filename: archive.read(info) for info in infos}
    except _BROKEN as error:
        raise DataError(f"{path}: no bundle ({quoted(str(error))[:120]}); {_AGAIN}") from error
    digest = hashlib.sha256(data).digest()
    del data  # a bundle may be large: never more of it at once than its members and one archive
    if hashlib.sha256(_archive(members).getbuffer()).digest() != digest:
        raise DataError(
            f"{path}: its bytes are not those of a bundle with these members (other times, modes, "
            f"order, or data beside them); {_AGAIN}"
        )
    return members


def _check_members(
    path: Path, infos: list[zipfile.ZipInfo], known: frozenset[str], size: int
) -> None:
    """Raise DataError before anything is read that takes more than the file itself."""
    names = [info.filename for info in infos]
    unknown = sorted(set(names) - known)
    if unknown:
        raise DataError(f"{path}: has the member {quoted(unknown[0])}, which no bundle has")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{path}: has the member {twice} twice; {_AGAIN}")
    packed = [info.filename for info in infos if info.compress_type != zipfile.ZIP_STORED]
    if packed or sum(info.file_size for info in infos) > size:
        which = packed[0] if packed else "its members"
        raise DataError(f"{path}: {which} would expand; a bundle's members are stored; {_AGAIN}")
