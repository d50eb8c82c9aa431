"""Executions as the lines of a recording, as a run and a part of a run write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fairgate.domain.executions import Document, Execution
from fairgate.domain.json_text import flat

PART_MANIFEST = "shard.json"
"""In the folder of a part of a run, and in no folder of a run."""
_MOST_TEXTS = 1000
_as_json = json.JSONEncoder(ensure_ascii=False).encode
_as_text = json.encoder.encode_basestring
"""The same for a text, without what else a value could be."""


def is_shard(folder: Path) -> bool:
    """Return whether a folder holds a part of a run."""
    return (folder / PART_MANIFEST).exists()


def execution_lines(executions: Iterable[Execution]) -> Iterator[str]:
    """Yield the line of each execution, a JSON object without what is not known; no line end.

    Answers that lie near each other share documents, so their text is made once.
    """
    known: dict[int, tuple[Sequence[Document], str]] = {}
    for execution in executions:
        response, documents = execution.response, execution.documents
        answer = "null" if response is None else _as_text(response)
        line = (
            f'{{"suite": {_as_text(execution.suite)}, "key": {_as_text(execution.key)}, '
            f'"response": {answer}'
        )
        if execution.margin is not None:
            line += f', "margin": {_as_json(execution.margin)}'
        if documents is not None:
            line += f', "documents": {_text_of(documents, known)}'
        if execution.options:
            line += f', "options": {_as_json(list(execution.options))}'
        yield line + "}"


def _text_of(
    documents: Sequence[Document], known: dict[int, tuple[Sequence[Document], str]]
) -> str:
    """Return documents as JSON, from `known` where the same ones stand there; else add them."""
    listed, text = known.get(id(documents), (None, ""))
    if listed is not documents:
        text = _as_json([document_to(document) for document in documents])
        if len(known) >= _MOST_TEXTS:
            known.clear()
        known[id(documents)] = documents, text
    return text


def document_to(document: Document) -> dict[str, Any]:
    """Return what is known of a document, as recordings hold it."""
    return {name: value for name, value in flat(document).items() if value is not None}
