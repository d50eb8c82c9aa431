"""A recorded system with some of its executions replaced: what the gate is given for a mutant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairgate.domain.cases import TestPlan
from fairgate.domain.executions import Document, Execution
from fairgate.domain.ports import NOTHING, Executed, Progress, SystemUnderTest, Vectors
from fairgate.features.mutation.mutants import CaseId


class RememberedVectors:
    """Embeddings of documents, each text embedded once for all mutants."""

    def __init__(self, system: SystemUnderTest) -> None:
        """Take the system that embeds."""
        self._system = system
        self._rows: dict[str, int] = {}
        self._matrix: Vectors | None = None

    def of(self, documents: Sequence[Document]) -> Vectors | None:
        """Return float32 `[n, d]`; None where a text is not known or nothing embeds it."""
        texts = [document.text for document in documents if document.text is not None]
        if len(texts) < len(documents):
            return self._system.vectors(documents)
        fresh = {d.text: d for d in documents if d.text is not None and d.text not in self._rows}
        if fresh:
            found = self._system.vectors(list(fresh.values()))
            if found is None:
                return None
            start = len(self._rows)
            self._rows |= {text: start + number for number, text in enumerate(fresh)}
            self._matrix = found if self._matrix is None else np.vstack([self._matrix, found])
        if self._matrix is None:
            return self._system.vectors(documents)
        rows: Vectors = self._matrix[[self._rows[text] for text in texts]]
        return rows


@dataclass(frozen=True, slots=True)
class MutatedSystem:
    """A recorded system some of whose executions are replaced. Implements `SystemUnderTest`."""

    executions: Executed
    replaced: Mapping[CaseId, Execution]
    remembered: RememberedVectors

    def execute(
        self, plan: TestPlan, progress: Progress, earlier: Executed = NOTHING
    ) -> Mapping[CaseId, Execution]:
        """Return the executions of the plan's cases; missing ones are left out."""
        del progress, earlier
        found: dict[CaseId, Execution] = {}
        for case in plan.cases:
            key = case.suite, case.key
            execution = self.replaced.get(key) or self.executions.get(key)
            if execution is not None:
                found[key] = execution
        return found

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Return the embeddings of the documents."""
        return self.remembered.of(documents)
