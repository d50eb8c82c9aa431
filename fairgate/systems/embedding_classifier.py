"""Classifies texts by a multinomial logistic head over their embeddings: small, and offline.

A head is one JSON file: `labels`, `embedder` (the name of the encoder that it was trained over),
`weights` (a row of numbers for each label) and `bias`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairgate.domain.classifiers import Classified
from fairgate.domain.errors import ModelError
from fairgate.domain.ports import Embedder


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Weights over an embedding, and what they were trained over."""

    labels: tuple[str, ...]
    embedder: str
    weights: npt.NDArray[np.float64]
    """`[labels, dimensions]`"""
    bias: npt.NDArray[np.float64]
    """`[labels]`"""
    digest: str
    """Hash of the file."""


def read_head(path: Path) -> Head:
    """Return the head in a file of the package. Raises ModelError where it is damaged."""
    try:
        content = path.read_bytes()
        data = json.loads(content)
        head = Head(
            labels=tuple(map(str, data["labels"])),
            embedder=str(data["embedder"]),
            weights=np.asarray(data["weights"], dtype=np.float64),
            bias=np.asarray(data["bias"], dtype=np.float64),
            digest=hashlib.sha256(content).hexdigest()[:32],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{str(path)!r} is no readable classifier head ({error}); install FairGate again"
        ) from error
    fits = head.weights.ndim == 2 and head.weights.shape[0] == len(head.labels) == len(head.bias)
    if not fits or not np.isfinite(head.weights).all() or not np.isfinite(head.bias).all():
        raise ModelError(
            f"{str(path)!r} has weights of shape {head.weights.shape} for {len(head.labels)} "
            "labels, or values that are not finite; install FairGate again"
        )
    return head


@dataclass(frozen=True)
class EmbeddingClassifier:
    """A port `Classifier`: the embedder's vectors under a head. Implements no batching of its own.

    Each text is scored by itself in float64, so its label depends on its vector alone.
    """

    head: Head
    embedder: Embedder
    _known: dict[str, Classified] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        """Identify the head's file and the embedder."""
        return f"embedding-classifier/1:{self.head.digest}:{self.embedder.fingerprint}"

    def classify(self, texts: Sequence[str]) -> list[Classified]:
        """Return what each text is, in order. Raises ModelError."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            vectors = self.embedder.embed(new)
            if vectors.shape != (len(new), self.head.weights.shape[1]):
                raise ModelError(
                    f"the embedder gave vectors of shape {vectors.shape} for {len(new)} texts; the "
                    f"classifier wants {self.head.weights.shape[1]} numbers a text"
                )
            for text, vector in zip(new, vectors, strict=True):
                self._known[text] = self._decided(vector.astype(np.float64))
        return [self._known[text] for text in texts]

    def _decided(self, vector: npt.NDArray[np.float64]) -> Classified:
        scores = (self.head.weights * vector).sum(axis=1) + self.head.bias
        order = np.argsort(-scores, kind="stable")
        margin = float(scores[order[0]] - scores[order[1]])
        return Classified(label=self.head.labels[order[0]], margin=round(margin, 4))
