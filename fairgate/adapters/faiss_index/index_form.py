"""Whether the parts of an index on disk have the form that searching in them takes for granted.

Checksums find damage; this finds parts that were made, with their checksums, by something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.json_text import read_json


class DamagedIndexError(Exception):
    """The folder is there but cannot be trusted; the index is built again."""


def read_manifest(raw: bytes, version: int, names: tuple[str, ...]) -> dict[str, Any]:
    """Return a manifest whose values have the types that they must have.

    Raises DamagedIndexError, and ValueError for what is no JSON.
    """
    manifest = read_json(raw)
    if not isinstance(manifest, dict) or manifest.get("schema_version") != version:
        raise DamagedIndexError("made by another version")
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
    return manifest


def check_table(table: object, documents: int) -> Mapping[str, list[Any]]:
    """Return the ids and labels where there is one of each a document."""
    ids = table.get("ids") if isinstance(table, dict) else None
    labels = table.get("labels") if isinstance(table, dict) else None
    if (
        not isinstance(ids, list)
        or not isinstance(labels, list)
        or not len(ids) == len(labels) == documents
        or not all(isinstance(id_, str) for id_ in ids)
        or not all(label is None or isinstance(label, str) for label in labels)
        or len(set(ids)) < documents
    ):
        raise DamagedIndexError("table.json does not hold an id and a label a document")
    return {"ids": ids, "labels": labels}


def check_arrays(
    vectors: npt.NDArray[Any],
    offsets: npt.NDArray[Any],
    *,
    shape: tuple[int, int],
    text_bytes: int,
) -> None:
    """Raise DamagedIndexError unless vectors and offsets belong to documents of this size."""
    if vectors.shape != shape or vectors.dtype != np.dtype("<f4"):
        raise DamagedIndexError("vectors.npy has another shape")
    if (
        offsets.shape != (shape[0] + 1,)
        or offsets.dtype != np.dtype("<i8")
        or offsets[0] != 0
        or offsets[-1] != text_bytes
        or (np.diff(offsets) <= 0).any()
    ):
        raise DamagedIndexError("offsets.npy does not fit documents.jsonl")
