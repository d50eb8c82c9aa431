"""What every index that searches a corpus shares: the corpus, its size, the order of results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fairgate.domain.corpora import CorpusDocument
from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import Document

Scores = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


class Corpus(Protocol):
    """Documents in a fixed order."""

    @property
    def fingerprint(self) -> str:
        """Identify the documents."""
        ...

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield the documents in their order, ids unique."""
        ...


def all_documents(corpus: Corpus) -> list[CorpusDocument]:
    """Return the documents of a corpus that is searched in memory. Raises RetrievalError."""
    found = list(corpus.documents())
    require_documents(len(found))
    return found


def require_documents(size: int) -> None:
    """Raise RetrievalError where a corpus is empty."""
    if not size:
        raise RetrievalError("the corpus holds no documents; expected at least one")


def require_depth(top_k: int, size: int) -> None:
    """Raise RetrievalError where a corpus holds fewer than `top_k` documents."""
    if not 1 <= top_k <= size:
        raise RetrievalError(
            f"top_k is {top_k:,}, the corpus holds {size:,} documents; expected 1 to {size:,}: "
            "lower `top_k`, or add documents"
        )


def ranked(rows: Rows, scores: Scores, decimals: int) -> tuple[Rows, Scores]:
    """Return rows and rounded scores by (-score, row), best first; `rows` ascend.

    Rounded first, so that the last bits of a float decide no order; `+ 0.0` turns -0.0 into 0.0.
    """
    rounded = scores.round(decimals) + 0.0
    order = np.argsort(-rounded, kind="stable")
    return rows[order], rounded[order]


def as_found(document: CorpusDocument, score: float) -> Document:
    """Return a document of the corpus as a search returns it."""
    return Document(id=document.id, text=document.text, label=document.label, score=score)
