"""Whether the parts of an index on disk have the form that searching in them takes for granted.

Checksums find damage; this finds parts that were made, with their checksums, by something else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.json_text import read_json

VECTORS = np.dtype("<f4")
OFFSETS = np.dtype("<i8")
ROWS = np.dtype([("key", "<u8", (4,)), ("crc", "<u4")])
"""SHA-256 of embedder and text (`embedding_key`), and the CRC-32 of the vector."""
IDS = np.dtype([("hash", "<u8"), ("position", "<i8")])
"""Hash of an id, and which document has it; ascending."""

Rows = npt.NDArray[np.void]


class DamagedIndexError(Exception):
    """The folder is there but cannot be trusted; the index is built again."""


class OutdatedIndexError(Exception):
    """The folder is sound, in the form of another version; the index is built again."""


def read_manifest(raw: bytes, version: int, names: tuple[str, ...]) -> dict[str, Any]:
    """Return a manifest whose values have the types that they must have.

    Raises DamagedIndexError, OutdatedIndexError, and ValueError for what is no JSON.
    """
    manifest: Any = read_json(raw)
    found = manifest.get("schema_version") if isinstance(manifest, dict) else None
    if type(found) is not int:
        raise DamagedIndexError("the manifest names no version")
    if found != version:
        raise OutdatedIndexError
    files = manifest.get("files")
    parts = [files.get(name) for name in names] if isinstance(files, dict) else [None]
    sound = (
        all(
            isinstance(part, dict)
            and type(part.get("bytes")) is int
            and isinstance(part.get("sha256"), str)
            for part in parts
        )
        and type(manifest.get("documents")) is int
        and type(manifest.get("dimensions")) is int
        and manifest["documents"] > 0
    )
    if not sound:
        raise DamagedIndexError("the manifest lacks a part, or holds a value of another type")
    return dict(manifest)


def check_arrays(
    vectors: npt.NDArray[Any],
    offsets: npt.NDArray[Any],
    *,
    shape: tuple[int, int],
    text_bytes: int,
) -> None:
    """Raise DamagedIndexError unless vectors and offsets belong to documents of this size."""
    if vectors.shape != shape or vectors.dtype != VECTORS or not vectors.flags.c_contiguous:
        raise DamagedIndexError("vectors.npy has another shape")
    if (
        offsets.shape != (shape[0] + 1,)
        or offsets.dtype != OFFSETS
        or offsets[0] != 0
        or offsets[-1] != text_bytes
        or (np.diff(offsets) <= 0).any()
    ):
        raise DamagedIndexError("offsets.npy does not fit documents.jsonl")


def check_columns(rows: npt.NDArray[Any], ids: npt.NDArray[Any], documents: int) -> None:
    """Raise DamagedIndexError unless there is a row and an id of every document."""
    if rows.shape != (documents,) or rows.dtype != ROWS:
        raise DamagedIndexError("rows.npy has another shape")
    if (
        ids.shape != (documents,)
        or ids.dtype != IDS
        or (ids["hash"][1:] < ids["hash"][:-1]).any()
        or (np.sort(ids["position"]) != np.arange(documents)).any()
    ):
        raise DamagedIndexError("ids.npy does not hold every document once")
