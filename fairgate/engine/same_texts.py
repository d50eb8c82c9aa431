"""Whether retrieval had a choice: documents with equal texts suit every query equally."""

from __future__ import annotations

from fairgate.engine.ports import Executed


def same_text_notices(executions: Executed) -> list[str]:
    """Return a notice for each suite whose retrieved documents all have the same text."""
    texts: dict[str, set[str | None]] = {}
    most: dict[str, int] = {}
    for (suite, _), execution in executions.items():
        documents = execution.documents or ()
        texts.setdefault(suite, set()).update(document.text for document in documents)
        most[suite] = max(most.get(suite, 0), len(documents))
    return [
        f"suite {suite}: all documents that were retrieved have the same text, so what is shown "
        "cannot differ and retrieval metrics show nothing; check the corpus"
        for suite, found in texts.items()
        if most[suite] > 1 and len(found) == 1 and None not in found
    ]
