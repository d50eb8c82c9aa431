"""Text classifiers by the names that policies give them: embedded ones, and folders."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from fairgate.domain.classifiers import Classifier
from fairgate.domain.errors import DataError
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import quoted
from fairgate.io.embedded_names import embedded_path, find
from fairgate.suites.metamorphic.policy import ClassifierPolicy
from fairgate.systems.embedding_classifier import EmbeddingClassifier, read_head

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
    from fairgate.onnx.classifier import OnnxClassifier

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


@lru_cache(maxsize=8)  # suites and the tests of one process share the model
def _with_head(path: Path, threads: int) -> EmbeddingClassifier:
    """Return an embedded classifier; always on the CPU, so that every machine reads alike."""
    from fairgate.onnx.encoder import OnnxEncoder

    head = read_head(path)
    folder = embedded_path("models", head.embedder)
    if folder is None:
        raise DataError(f"{str(path)!r} names no embedded encoder; install FairGate again")
    return EmbeddingClassifier(head=head, embedder=OnnxEncoder(folder, threads=threads))
