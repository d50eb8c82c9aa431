"""What every index that searches a corpus shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import CorpusDocument, Document
from fairgate.domain.ports import Vectors

DECIMALS = 5
Scores = npt.NDArray[np.float64]
RowNumbers = npt.NDArray[np.int64]


class Corpus(Protocol):
    """Documents in a fixed order."""

    @property
    def fingerprint(self) -> str:
        """Identify the documents."""
        ...

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield the documents in their order, ids unique."""
        ...


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


def ranked(rows: RowNumbers, scores: Scores, decimals: int) -> tuple[RowNumbers, Scores]:
    """Return rows and rounded scores by (-score, row), best first; `rows` ascend.

    Rounded first, so that the last bits of a float decide no order; `+ 0.0` turns -0.0 into 0.0.
    """
    rounded = scores.round(decimals) + 0.0
    order = np.argsort(-rounded, kind="stable")
    return rows[order], rounded[order]


def as_found(document: CorpusDocument, score: float) -> Document:
    """Return a document of the corpus as a search returns it."""
    return Document(id=document.id, text=document.text, label=document.label, score=score)


class IndexInMemory:
    """What searches all documents of a corpus, read when it is first asked. Has no vectors."""

    def __init__(self, corpus: Corpus) -> None:
        """Name the corpus; nothing is read yet."""
        self._corpus = corpus

    def vectors(self, document_ids: Sequence[str]) -> Vectors | None:
        """Return None: distances between documents mean nothing."""
        del document_ids
        return None

    @cached_property
    def _documents(self) -> list[CorpusDocument]:
        """Raises RetrievalError where there are none."""
        documents = list(self._corpus.documents())
        require_documents(len(documents))
        return documents

    def _best_documents(self, rows: RowNumbers, scores: Scores, top_k: int) -> list[Document]:
        """Return the best of these rows, which ascend."""
        best = zip(
            *(column[:top_k].tolist() for column in ranked(rows, scores, DECIMALS)), strict=True
        )
        return [as_found(self._documents[row], score) for row, score in best]
