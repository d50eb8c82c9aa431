"""Tables of texts as the user names them, and the documents that they hold."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusSpec:
    """Where a table of texts is and which of its columns matter; None finds a column by name."""

    path: str
    id: str | None = None
    text: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusDocument:
    """One document of a corpus: the text that is embedded, shown and compared."""

    id: str
    text: str
    label: str | None = None


def embedding_key(embedder: str, text: str) -> str:
    """Return the key of a text's embedding: it depends on the embedder and the text alone."""
    return hashlib.sha256(f"{embedder}\x00{text}".encode()).hexdigest()
