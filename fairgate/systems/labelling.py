"""Labels for documents that a system returns without: `labels: {file: …}`, or a classifier."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from fairgate.domain.cases import SYSTEM_RETRIEVER, Case
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Document, Execution
from fairgate.domain.ports import NOTHING, Executed, OpenSystem, Progress, Runtime, Vectors
from fairgate.domain.schema import Names, Role, Strict, Text
from fairgate.domain.wording import quoted
from fairgate.io.named_files import existing
from fairgate.suites.metamorphic.policy import ClassifierField, long_classifier
from fairgate.systems.resources import Resources

if TYPE_CHECKING:
    from fairgate.domain.cases import Classifier

_OWN = (None, SYSTEM_RETRIEVER)
"""Cases whose documents the system finds itself, and no collection of a suite."""


class LabelsPolicy(Strict):
    """Where the labels of returned documents come from if the system gives none."""

    file: Annotated[Text | None, Names(Role.LABELS)] = Field(
        default=None,
        description="A table with one row per document.",
    )
    classifier: Annotated[ClassifierField | None, Names(Role.CLASSIFIER)] = Field(
        default=None,
        description="Labels the documents that the file does not name.",
    )

    @model_validator(mode="after")
    def _names_a_source(self) -> Self:
        if self.file is None and self.classifier is None:
            raise ValueError("names nothing that gives labels; add `file` or `classifier`")
        return self


LabelsField = Annotated[LabelsPolicy | None, Field(description="Labels of its documents.")]


class PlacedLabels(NamedTuple):
    """A policy's `labels`."""

    place: tuple[str, ...]
    """Below `system`."""
    chosen: LabelsPolicy

    def problems(self, runtime: Runtime) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the place below `system`, with the sentence, of a file that cannot be used."""
        try:
            if self.chosen.file is not None:
                _read(self.chosen, runtime)
        except DataError as error:
            yield (*self.place, "file"), str(error)


def labelled(system: OpenSystem, labels: PlacedLabels | None, resources: Resources) -> OpenSystem:
    """Return the system with its documents labelled; as it is where the policy names no labels."""
    return system if labels is None else LabelledSystem(system, labels.chosen, resources)


class LabelledSystem:
    """An opened system whose documents are labelled behind it; it never sees those labels.

    What a document says itself always counts.
    """

    def __init__(self, inner: OpenSystem, policy: LabelsPolicy, resources: Resources) -> None:
        """Take the system and the policy of its labels; nothing is read yet."""
        self._inner = inner
        self._policy = policy
        self._resources = resources
        self.unlabelled: dict[tuple[str, str], Execution] = {}
        """Executions as the inner system gave them, by (suite, key)."""
        self._came_back = False
        self._seen: dict[str, str | None] = {}
        """Ids of documents that came back, each with the label that the system gave it."""
        self._notices: list[str] = []
        resources.collect(self._notices)

    def execute(
        self, cases: Sequence[Case], progress: Progress, earlier: Executed = NOTHING
    ) -> Executed:
        """Return the inner system's executions, with labels on the documents it found."""
        without = {
            name: self.unlabelled.get(name, execution) for name, execution in earlier.items()
        }
        executions = dict(self._inner.execute(cases, progress, without))
        self.unlabelled |= executions
        own = [(c.suite, c.key) for c in cases if c.retriever in _OWN]
        return executions | self._labelled(
            {name: executions[name] for name in own if name in executions}
        )

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return the inner system's embeddings."""
        return self._inner.vectors(documents)

    def under_test(self) -> dict[str, str]:
        """Return the system's own facts, and a fingerprint of the source of labels."""
        sources = [str(sorted(self._by_id.items()))] if self._policy.file is not None else []
        if self._classifier is not None:
            sources.append(self._classifier.fingerprint)
        digest = hashlib.sha256("\0".join(sources).encode()).hexdigest()
        return {**self._inner.under_test(), "document labels": digest[:12]}

    def _labelled(self, executions: Executed) -> dict[tuple[str, str], Execution]:
        """Return the executions with a label on every document that has one or can be given one."""
        bare = [
            d
            for execution in executions.values()
            for d in execution.documents or ()
            if d.label is None
        ]
        texts = list(dict.fromkeys(d.text for d in bare if d.text and d.id not in self._by_id))
        read: dict[str, str] = {}
        if self._classifier is not None and texts:
            labels = self._classifier.classify(texts)
            read = {text: classified.label for text, classified in zip(texts, labels, strict=True)}

        def filled(document: Document) -> Document:
            self._came_back = True
            if document.id is not None:
                self._seen.setdefault(document.id, document.label)
            if document.label is not None:
                return document
            own = None if document.id is None else self._by_id.get(document.id)
            return replace(document, label=own or read.get(document.text or ""))

        labelled_now = {
            name: execution._replace(
                documents=execution.documents and tuple(map(filled, execution.documents))
            )
            for name, execution in executions.items()
        }
        self._notices[:] = self._remarks()
        return labelled_now

    def _remarks(self) -> Iterator[str]:
        """Yield how the file fits what came back."""
        name, seen, by_id = self._policy.file, self._seen, self._by_id
        matching = [id_ for id_ in seen if id_ in by_id]
        unknown = [id_ for id_, own in seen.items() if own is None and id_ not in by_id]
        if name is None or not self._came_back:
            return
        if not matching:
            theirs = f"such as {quoted(next(iter(seen)))}" if seen else "of none"
            yield (
                f"{name}: none of its {len(by_id):,} ids is one of a document that came back (it "
                f"has ids such as {quoted(next(iter(by_id)))}, the documents {theirs}), so it "
                "labels nothing"
            )
        elif unknown and self._policy.classifier is None:
            yield (
                f"{name}: {len(unknown):,} of {len(seen):,} documents that came back are not in "
                f"it, the first is {quoted(unknown[0])}; add their labels"
            )
        other = [(id_, own) for id_ in matching if (own := seen[id_]) not in (None, by_id[id_])]
        for id_, own in other[:1]:
            yield (
                f"{name}: for {len(other):,} documents the system itself gives another label, "
                f"which counts; the first is {quoted(id_)}: {quoted(own or '')}, in the file "
                f"{quoted(by_id[id_])}"
            )

    @cached_property
    def _by_id(self) -> Mapping[str, str]:
        return _read(self._policy, self._resources.runtime) if self._policy.file else {}

    @cached_property
    def _classifier(self) -> Classifier | None:
        from fairgate.systems.classifiers import open_classifier

        if (policy := self._policy.classifier) is None:
            return None
        return open_classifier(self._resources.runtime, long_classifier(policy), None)


def _read(policy: LabelsPolicy, runtime: Runtime) -> Mapping[str, str]:
    from fairgate.retrieval.corpus import read_document_labels

    path = existing(policy.file or "", runtime.root, confined=runtime.confined)
    return read_document_labels(str(path))
