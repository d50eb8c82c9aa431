"""Text classifiers by the names that policies give them: bundled ones, and folders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairgate.domain.cases import Classified, Classifier
from fairgate.domain.errors import DataError, ModelError
from fairgate.domain.ports import Runtime
from fairgate.domain.wording import quoted
from fairgate.io.named_files import bundled_path, find
from fairgate.io.regular import content_of
from fairgate.suites.metamorphic.policy import ClassifierPolicy

if TYPE_CHECKING:
    from fairgate.onnx.encoder import OnnxEncoder


def open_classifier(
    runtime: Runtime, policy: ClassifierPolicy, allowed: Sequence[str] | None
) -> Classifier:
    """Return the classifier that a policy names; `allowed` are the labels it may give, None: any.

    No model is loaded before the first text. Raises DataError where there is none of that name or
    its labels do not fit, ModelError where its folder is incomplete.
    """
    path = find("classifiers", policy.model, runtime.root, confined=runtime.confined)
    if path == bundled_path("classifiers", policy.model):
        if policy.labels:
            raise DataError(f"{quoted(policy.model)} is bundled and needs no `labels`; remove them")
        classifier = _bundled(path, runtime.threads)
        for label in classifier.labels if allowed is not None else ():
            if label not in (allowed or ()):
                raise DataError(
                    f"{quoted(policy.model)} gives {quoted(label)}, expected one of "
                    f"{', '.join(allowed or ())}; name another classifier"
                )
        return classifier
    from fairgate.onnx.encoder import OnnxClassifier

    return OnnxClassifier(
        path,
        policy.labels,
        allowed,
        batch_size=runtime.batch_size,
        threads=runtime.threads,
        device=runtime.device,  # type: ignore[arg-type]
    )


@dataclass(frozen=True, kw_only=True)
class EmbeddingClassifier:
    """A port `Classifier`: the embedder's vectors under a head. Implements no batching of its own.

    Each text is scored by itself in float64, so its label depends on its vector alone.

    The head is a multinomial logistic one, a JSON file: `labels`, `embedder` (the name of the
    encoder that it was trained over), `weights` (a row of numbers for each label) and `bias`.
    """

    labels: tuple[str, ...]
    weights: npt.NDArray[np.float64]
    """`[labels, dimensions]`"""
    bias: npt.NDArray[np.float64]
    """`[labels]`"""
    digest: str
    """Hash of the head's file."""
    embedder: OnnxEncoder
    _known: dict[str, Classified] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        """Identify the head's file and the embedder."""
        return f"embedding-classifier/1:{self.digest}:{self.embedder.fingerprint}"

    def cuts(self, text: str) -> bool:
        """Return whether a text is longer than what the embedder reads of it. Raises ModelError."""
        return self.embedder.cuts(text)

    def classify(self, texts: Sequence[str]) -> list[Classified]:
        """Classify each text, in order. Raises ModelError."""
        if new := [text for text in dict.fromkeys(texts) if text not in self._known]:
            vectors = self.embedder.embed(new)
            if vectors.shape != (len(new), self.weights.shape[1]):
                raise ModelError(
                    f"the embedder gave vectors of shape {vectors.shape} for {len(new)} texts; the "
                    f"classifier wants {self.weights.shape[1]} numbers a text"
                )
            for text, vector in zip(new, vectors, strict=True):
                scores = (self.weights * vector.astype(np.float64)).sum(axis=1) + self.bias
                first, second = np.argsort(-scores, kind="stable")[:2]
                margin = round(float(scores[first] - scores[second]), 4)
                self._known[text] = Classified(label=self.labels[first], margin=margin)
        return [self._known[text] for text in texts]


@lru_cache(maxsize=8)  # suites and the tests of one process share the model
def _bundled(path: Path, threads: int) -> EmbeddingClassifier:
    """Return a classifier of the package; always on the CPU, so that every machine reads alike.

    Raises ModelError where its file is damaged.
    """
    from fairgate.onnx.encoder import OnnxEncoder
    from fairgate.onnx.encoder_settings import NO_PROMPTS

    try:
        content = content_of(path)
        data = json.loads(content)
        labels, embedder = tuple(map(str, data["labels"])), str(data["embedder"])
        weights = np.asarray(data["weights"], dtype=np.float64)
        bias = np.asarray(data["bias"], dtype=np.float64)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{str(path)!r} is no readable classifier head ({error}); install FairGate again"
        ) from error
    fits = weights.ndim == 2 and weights.shape[0] == len(labels) == len(bias)
    if not fits or not np.isfinite(weights).all() or not np.isfinite(bias).all():
        raise ModelError(
            f"{str(path)!r} has weights of shape {weights.shape} for {len(labels)} "
            "labels, or values that are not finite; install FairGate again"
        )
    if (folder := bundled_path("models", embedder)) is None:
        raise DataError(f"{str(path)!r} names no bundled encoder; install FairGate again")
    return EmbeddingClassifier(
        labels=labels,
        weights=weights,
        bias=bias,
        digest=hashlib.sha256(content).hexdigest()[:32],
        embedder=OnnxEncoder(folder, threads=threads, choice=NO_PROMPTS),
    )
