"""Which documents the answers of a run rest on: many answers rest on few lists of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairgate.domain.executions import Document
from fairgate.domain.ports import Executed


def shown_documents(executions: Executed) -> Mapping[str, Sequence[Sequence[Document]]]:
    """Return the different lists of documents by suite, in the order in which they came.

    A list that many answers share stands there once; answers without documents have none.
    """
    found: dict[str, dict[int, Sequence[Document]]] = {}
    for (suite, _), execution in executions.items():
        documents = execution.documents
        if documents:
            of_suite = found.get(suite)
            if of_suite is None:
                of_suite = found[suite] = {}
            of_suite[id(documents)] = documents
    return {suite: list(lists.values()) for suite, lists in found.items()}
