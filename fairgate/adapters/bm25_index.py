"""Sparse retrieval: BM25 (bm25s) over words, or over pairs of characters where there are no words.

Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009; variant and parameters are
bm25s' defaults (Lucene's: k1 = 1.5, b = 0.75), written out here because scores depend on them.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from fairgate.domain.corpora import CorpusDocument
from fairgate.domain.errors import RetrievalError, UsageError
from fairgate.domain.executions import Document
from fairgate.engine.ports import Vectors

_VERSION = "bm25-1"
"""Part of the fingerprint: raise it when the same corpus would give other documents or scores."""
_K1, _B, _METHOD = 1.5, 0.75, "lucene"
_DECIMALS = 5
_WORDS = re.compile(r"\w+")
_UNSPACED = re.compile(
    "[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f]+"
)


class Corpus(Protocol):
    """Documents in a fixed order."""

    @property
    def fingerprint(self) -> str:
        """Identify the documents."""
        ...

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield the documents in their order, ids unique."""
        ...


def tokens(text: str) -> list[str]:
    """Return the terms of a text: lower-case words, and character pairs of unspaced scripts.

    Korean, Japanese and Chinese are cut into overlapping pairs of characters (a lone character
    stays one), the usual analysis without a dictionary. No stop words, no stemming.
    """
    found: list[str] = []
    for word in _WORDS.findall(unicodedata.normalize("NFKC", text).casefold()):
        end = 0
        for run in _UNSPACED.finditer(word):
            found += [word[end : run.start()]] if run.start() > end else []
            piece = run.group()
            found += [piece[i : i + 2] for i in range(max(1, len(piece) - 1))]
            end = run.end()
        found += [word[end:]] if end < len(word) else []
    return found


class Bm25Index:
    """A port `Retriever`: documents by (-score, document order), scores rounded to 5 decimals.

    Built in memory when it is first asked. Has no vectors.
    """

    def __init__(self, corpus: Corpus) -> None:
        """Name the corpus; nothing is read yet."""
        self._corpus = corpus

    @property
    def fingerprint(self) -> str:
        """Identify corpus, analysis and parameters."""
        parts = (_VERSION, self._corpus.fingerprint, _METHOD, str(_K1), str(_B))
        return hashlib.sha256("\x00".join(parts).encode()).hexdigest()

    @property
    def has_labels(self) -> bool:
        """Return whether every document carries a label."""
        return all(document.label is not None for document in self._documents)

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        """Return for each query its `top_k` documents. Raises RetrievalError if there are fewer."""
        size = len(self._documents)
        if not 1 <= top_k <= size:
            raise RetrievalError(
                f"top_k is {top_k:,}, the collection holds {size:,} documents; expected 1 to "
                f"{size:,}: lower `top_k`, or add documents"
            )
        return [self._search(query, top_k) for query in queries]

    def vectors(self, document_ids: Sequence[str]) -> Vectors | None:
        """Return None: words are no embedding."""
        del document_ids
        return None

    def _search(self, query: str, top_k: int) -> list[Document]:
        terms = [term for term in tokens(query) if term in self._vocabulary]
        scores = np.zeros(len(self._documents), dtype=np.float64)
        if terms:
            scores = np.asarray(self._index.get_scores(terms), dtype=np.float64)
        scores = scores.round(_DECIMALS) + 0.0
        best = np.argsort(-scores, kind="stable")[:top_k]
        return [
            Document(id=d.id, text=d.text, label=d.label, score=float(scores[row]))
            for row, d in ((row, self._documents[row]) for row in best.tolist())
        ]

    @cached_property
    def _documents(self) -> list[CorpusDocument]:
        found = list(self._corpus.documents())
        if not found:
            raise RetrievalError("the collection holds no documents; expected at least one")
        return found

    @cached_property
    def _terms(self) -> list[list[str]]:
        return [tokens(document.text) or [""] for document in self._documents]

    @cached_property
    def _vocabulary(self) -> frozenset[str]:
        return frozenset(term for terms in self._terms for term in terms)

    @cached_property
    def _index(self) -> Any:
        try:
            import bm25s
        except ImportError as error:
            raise UsageError(
                "the retriever `bm25` needs bm25s, which is not installed: "
                "pip install 'fairgate[bm25]'"
            ) from error
        index = bm25s.BM25(method=_METHOD, k1=_K1, b=_B)
        index.index(self._terms, show_progress=False)
        return index
