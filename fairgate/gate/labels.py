"""Whether the documents that were shown have labels: some with and some without is an error."""

from __future__ import annotations

from itertools import chain

from fairgate.domain.executions import Document
from fairgate.domain.ports import Executed
from fairgate.gate.shown_documents import shown_documents
from fairgate.suites.metamorphic.documents import document_key


def label_notices(executions: Executed) -> list[str]:
    """Return a notice for each suite that was shown labelled documents and others.

    No labels at all is valid: metrics of labels are then not evaluated, with that reason.
    """
    shown: dict[str, dict[str | None, Document]] = {}
    for suite, lists in shown_documents(executions).items():
        of_suite = shown.setdefault(suite, {})
        for document in chain.from_iterable(lists):
            of_suite.setdefault(document_key(document), document)
    notices = []
    for suite, documents in shown.items():
        bare = sum(document.label is None for document in documents.values())
        if 0 < bare < len(documents):
            notices.append(
                f"suite {suite}: {bare:,} of {len(documents):,} retrieved documents carry no "
                "label, so pairs that were shown one count in no metric of labels; label them, or "
                "leave them out of the corpus"
            )
    return notices
