"""New vectors of a great index that is being built: a build that was killed goes on where it was.

`.unfinished-<fingerprint>/` beside the index: `rows` and `vectors-<dimensions>`, to which batches
are appended in the same order. What was written in half is excluded: rows are taken only
where their checksum is that of their vector.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from fairgate.domain.ports import Vectors
from fairgate.retrieval.index_folder import ROWS, VECTORS, Rows

PREFIX = ".unfinished-"
_NAME = re.compile(r"vectors-([1-9]\d{0,5})")


class UnfinishedVectors:
    """A port `VectorStore` of CachedEmbedder that is only written; `unfinished` reads it."""

    def __init__(self, target: Path) -> None:
        """Keep what is embedded for the index `target`; nothing is written yet.

        One process at a time: within `sole_builder`.
        """
        self._folder = target.with_name(f"{PREFIX}{target.name}")
        self._rows: int | None = None

    def get_vectors(self, keys: Sequence[str]) -> dict[str, Vectors]:
        """Return none: what is known was looked for before."""
        del keys
        return {}

    def put_vectors(self, items: Iterable[tuple[str, Vectors]]) -> None:
        """Append a batch of vectors of one length. Raises OSError."""
        batch = list(items)
        vectors = np.stack([vector for _, vector in batch]).astype(VECTORS, copy=False)
        rows = np.zeros(len(batch), dtype=ROWS)
        keys = b"".join(bytes.fromhex(key) for key, _ in batch)
        rows["key"] = np.frombuffer(keys, dtype="<u8").reshape(-1, 4)
        rows["crc"] = [zlib.crc32(vector) for vector in vectors]
        if self._rows is None:
            self._rows = self._begun(vectors.shape[1])
        path = self._folder / f"vectors-{vectors.shape[1]}"
        _append(path, self._rows * vectors[0].nbytes, vectors.tobytes())
        _append(self._folder / "rows", self._rows * ROWS.itemsize, rows.tobytes())
        self._rows += len(batch)

    def forget_vectors(self, keys: Sequence[str]) -> None:
        """Do nothing: all go together."""

    def remove(self) -> None:
        """Remove them: the index is whole."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _begun(self, dimensions: int) -> int:
        """Return how many rows of this length are there, in a folder that holds no others."""
        found = read_unfinished(self._folder)
        if found is not None and found[1].shape[1] == dimensions:
            return len(found[0])
        self.remove()
        self._folder.mkdir()
        return 0


def unfinished(root: Path) -> Iterator[tuple[Rows, Vectors]]:
    """Yield rows and vectors of builds that did not end."""
    for folder in sorted(root.glob(f"{PREFIX}*")):
        found = read_unfinished(folder)
        if found is not None:
            yield found


def read_unfinished(folder: Path) -> tuple[Rows, Vectors] | None:
    """Return rows and vectors, mapped; None where there is none that can be read."""
    with contextlib.suppress(OSError, ValueError):
        (path,) = folder.glob("vectors-*")
        name = _NAME.fullmatch(path.name)
        if name is None:
            return None
        size = int(name[1])
        count = path.stat().st_size // (size * VECTORS.itemsize)
        count = min(count, (folder / "rows").stat().st_size // ROWS.itemsize)
        if count:
            rows = np.memmap(folder / "rows", dtype=ROWS, mode="r", shape=(count,))
            return rows, np.memmap(path, dtype=VECTORS, mode="r", shape=(count, size))
    return None


def _append(path: Path, end: int, data: bytes) -> None:
    """Write at `end`; what stands behind it was written in half."""
    with path.open("r+b" if path.exists() else "wb") as file:
        file.truncate(end)
        file.seek(end)
        file.write(data)
