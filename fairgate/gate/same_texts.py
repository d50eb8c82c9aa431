"""Whether retrieval had a choice: documents with equal texts suit every query equally."""

from __future__ import annotations

from collections.abc import Sequence

from fairgate.domain.executions import Document
from fairgate.domain.ports import Executed
from fairgate.gate.shown_documents import shown_documents


def same_text_notices(executions: Executed) -> list[str]:
    """Return a notice for each suite whose retrieved documents all have the same text."""
    return [
        f"suite {suite}: all documents that were retrieved have the same text, so what is shown "
        "cannot differ and retrieval metrics show nothing; check the corpus"
        for suite, lists in shown_documents(executions).items()
        if max(map(len, lists)) > 1 and _has_one_text(lists)
    ]


def _has_one_text(lists: Sequence[Sequence[Document]]) -> bool:
    texts = {document.text for documents in lists for document in documents}
    return len(texts) == 1 and None not in texts
