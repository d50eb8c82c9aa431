"""An embedder whose vectors follow from the text alone."""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


class HashEmbedder:
    """Unit vectors drawn from a text's hash; remembers how many texts it was asked for."""

    def __init__(self, dimensions: int = 16, fingerprint: str = "hash-embedder") -> None:
        self.dimensions = dimensions
        self.fingerprint = fingerprint
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.embedded += texts
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        seeds = [int.from_bytes(hashlib.sha256(t.encode()).digest()[:8], "big") for t in texts]
        draws = [np.random.default_rng(seed).standard_normal(self.dimensions) for seed in seeds]
        rows = np.stack(draws)
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


class TableEmbedder:
    """Given vectors for given texts, as they are."""

    fingerprint = "table-embedder"

    def __init__(self, vectors: dict[str, Sequence[float]]) -> None:
        self._vectors = vectors

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.array([self._vectors[text] for text in texts], dtype=np.float32)
