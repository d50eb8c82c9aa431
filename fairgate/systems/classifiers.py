"""Text classifiers by the names that policies give them: embedded ones, and folders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairgate.domain.cases import Classified, Classifier
from fairgate.domain.errors import DataError, ModelError
from fairgate.domain.ports import Embedder, Runtime
from fairgate.domain.wording import quoted
from fairgate.io.named_files import embedded_path, find
from fairgate.suites.metamorphic.policy import ClassifierPolicy

KIND = "classifiers"


def open_classifier(
    runtime: Runtime, named: ClassifierPolicy, allowed: Sequence[str] | None
) -> Classifier:
    """Return the classifier that a policy names; `allowed` are the labels it may give, None: any.

    No model is loaded before the first text. Raises DataError where there is none of that name or
    its labels do not fit, ModelError where its folder is incomplete.
    """
    path = find(KIND, named.model, runtime.root, confined=runtime.confined)
    if path == embedded_path(KIND, named.model):
        return _embedded(path, named, allowed, runtime.threads)
    from fairgate.onnx.encoder import OnnxClassifier

    return OnnxClassifier(
        path,
        named.labels,
        allowed,
        batch_size=runtime.batch_size,
        threads=runtime.threads,
        device=runtime.device,  # type: ignore[arg-type]
    )


def _embedded(
    path: Path, named: ClassifierPolicy, allowed: Sequence[str] | None, threads: int
) -> Classifier:
    if named.labels:
        raise DataError(f"{quoted(named.model)} is embedded and needs no `labels`; remove them")
    found = _with_head(path, threads)
    strange = [label for label in found.head.labels if label not in (allowed or ())]
    if strange and allowed is not None:
        raise DataError(
            f"{quoted(named.model)} gives {quoted(strange[0])}, expected one of "
            f"{', '.join(allowed)}; name another classifier"
        )
    return found


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

    The head is a multinomial logistic one, a JSON file: `labels`, `embedder` (the name of the
    encoder that it was trained over), `weights` (a row of numbers for each label) and `bias`.
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


@lru_cache(maxsize=8)  # suites and the tests of one process share the model
def _with_head(path: Path, threads: int) -> EmbeddingClassifier:
    """Return an embedded classifier; always on the CPU, so that every machine reads alike."""
    from fairgate.onnx.encoder import OnnxEncoder

    head = read_head(path)
    folder = embedded_path("models", head.embedder)
    if folder is None:
        raise DataError(f"{str(path)!r} names no embedded encoder; install FairGate again")
    return EmbeddingClassifier(head=head, embedder=OnnxEncoder(folder, threads=threads))
