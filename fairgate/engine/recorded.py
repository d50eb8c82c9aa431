"""A system under test that remembers: answers produced elsewhere, or by an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from fairgate.domain.cases import TestPlan
from fairgate.domain.executions import Document, Execution
from fairgate.engine.ports import NOTHING, Embedder, Executed, Progress, Vectors


class Recording(Protocol):
    """Executions by suite and key."""

    def lookup(self, suite: str, key: str) -> Execution | None:
        """Return the execution of a case; None where the recording lacks it."""
        ...


class RecordedSystem:
    """Looks cases up; embeds the recorded documents' texts only when RRS asks for it."""

    def __init__(self, recording: Recording, embedder: Callable[[], Embedder | None]) -> None:
        """Take a recording and a way to get an embedder, called at most once and only if needed."""
        self._recording = recording
        self._embedder = embedder

    def execute(
        self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING
    ) -> Mapping[tuple[str, str], Execution]:
        """Return the recorded executions of the plan's cases; missing ones are left out."""
        del earlier  # a recording knows which documents it was shown
        progress.start("look up", len(plan.cases), len(plan.cases))
        found = {
            (case.suite, case.key): execution
            for case in plan.cases
            if (execution := self._recording.lookup(case.suite, case.key)) is not None
        }
        progress.finish()
        return found

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return embeddings of the documents' texts; None where a text is not known."""
        texts = [document.text for document in documents if document.text is not None]
        if len(texts) < len(documents):
            return None
        embedder = self._embedder()
        return None if embedder is None else embedder.embed(texts)
