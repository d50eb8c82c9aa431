"""An embedder that never embeds a text twice, across runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from fairgate.domain.errors import BudgetError, ModelError
from fairgate.domain.executions import embedding_key
from fairgate.domain.ports import Embedder, Vectors

BATCH = 256
"""Texts between two writes to the store, if nothing else is said: what a killed process loses."""


class VectorStore(Protocol):
    """Stores vectors by key."""

    def get_vectors(self, keys: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors of those keys that are there."""
        ...

    def put_vectors(self, items: Iterable[tuple[str, Vectors]]) -> None:
        """Store vectors durably."""
        ...


class CachedEmbedder:
    """An Embedder with a store: equal results, and only new texts are computed.

    Texts that are new are embedded shortest first in batches, each stored before the next begins.
    """

    def __init__(self, embedder: Embedder, store: VectorStore, batch: int = BATCH) -> None:
        """Store what `embedder` computes in `store`, `batch` texts at a time."""
        self._batch = batch
        self._embedder = embedder
        self._store = store

    @property
    def fingerprint(self) -> str:
        """Identify model, pooling and precision: the embedder's own fingerprint."""
        return self._embedder.fingerprint

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 `[len(texts), dimensions]`, L2-normalised, independent of batching."""
        fingerprint = self.fingerprint
        keys = [embedding_key(fingerprint, text) for text in texts]
        stored = self._store.get_vectors(list(dict.fromkeys(keys)))
        if len({len(vector) for vector in stored.values()}) > 1:
            stored = {}  # which of them are right is not known
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in stored}
        pending = sorted(new, key=lambda key: (len(new[key]), key))
        for start in range(0, len(pending), self._batch):
            batch = pending[start : start + self._batch]
            try:
                vectors = self._embedder.embed([new[key] for key in batch])
            except BudgetError as error:
                raise error.with_left(len(pending) - start - len(batch)) from None
            if vectors.shape[:1] != (len(batch),) or not np.isfinite(vectors).all():
                raise ModelError(
                    f"the embedder {fingerprint[:60]!r} returned vectors of shape {vectors.shape} "
                    f"for {len(batch)} texts, or values that are not finite; expected one finite "
                    "vector a text: check the model"
                )
            if any(len(vector) != vectors.shape[1] for vector in stored.values()):
                raise ModelError(
                    f"the embedder {fingerprint[:60]!r} returned vectors of {vectors.shape[1]} "
                    "numbers where the store has others under its name; expected one length: "
                    "delete the store, or name another place with --cache"
                )
            rows = dict(zip(batch, vectors, strict=True))
            self._store.put_vectors(rows.items())
            stored.update(rows)
        if not keys:
            return np.zeros((0, 0), dtype=np.float32)
        return np.stack([stored[key] for key in keys]).astype(np.float32, copy=False)
