"""Sparse retrieval: BM25 (bm25s) over words, or over pairs of characters where there are no words.

Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009; variant and parameters are
bm25s' defaults (Lucene's: k1 = 1.5, b = 0.75), written out here because scores depend on them.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from fairgate.domain.errors import UsageError
from fairgate.domain.executions import Document
from fairgate.retrieval.exact_index import DECIMALS, IndexInMemory, require_depth

_VERSION = "bm25-1"
"""Part of the fingerprint: raise it when the same corpus would give other documents or scores."""
_K1, _B, _METHOD = 1.5, 0.75, "lucene"
_WORDS = re.compile(r"\w+")
_UNSPACED = re.compile(
    "[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f]+"
)


def tokens(text: str) -> list[str]:
    """Return the terms of a text: lower-case words, and character pairs of unspaced scripts.

    Korean, Japanese and Chinese are cut into overlapping pairs of characters (a lone character
    stays one), the usual analysis without a dictionary. No stop words, no stemming.
    """
    terms: list[str] = []
    for word in _WORDS.findall(unicodedata.normalize("NFKC", text).casefold()):
        end = 0
        for run in _UNSPACED.finditer(word):
            terms += [word[end : run.start()]] if run.start() > end else []
            piece = run.group()
            terms += [piece[i : i + 2] for i in range(max(1, len(piece) - 1))]
            end = run.end()
        terms += [word[end:]] if end < len(word) else []
    return terms


NO_BM25 = "the retriever `bm25` needs bm25s, which is not installed: pip install 'fairgate[bm25]'"


class Bm25Index(IndexInMemory):
    """A port `Retriever`: documents by (-score, document order), scores rounded to 5 decimals.

    Built in memory when it is first asked. Has no vectors.
    """

    at_once = 64
    """Each query is searched by itself, so that more in one call gain nothing."""

    @property
    def fingerprint(self) -> str:
        """Identify corpus, analysis and parameters."""
        parts = (_VERSION, self._corpus.fingerprint, _METHOD, str(_K1), str(_B))
        return hashlib.sha256("\x00".join(parts).encode()).hexdigest()

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        """Return for each query its `top_k` documents. Raises RetrievalError if there are fewer."""
        require_depth(top_k, len(self._documents))
        return [self._search(query, top_k) for query in queries]

    def _search(self, query: str, top_k: int) -> list[Document]:
        index, vocabulary = self._index
        terms = [term for term in tokens(query) if term in vocabulary]
        scores = np.zeros(len(self._documents), dtype=np.float64)
        if terms:
            scores = np.asarray(index.get_scores(terms), dtype=np.float64)
        # Rounding moves a score by half a unit of the last place: what is below cannot belong.
        least = np.partition(scores, -top_k)[-top_k] - 2 * 10.0**-DECIMALS
        near = np.flatnonzero(scores >= least)
        return self._best_documents(near, scores[near], top_k)

    @cached_property
    def _index(self) -> tuple[Any, frozenset[str]]:
        """Return the index and its terms."""
        try:
            import bm25s
        except ImportError as error:
            raise UsageError(NO_BM25) from error
        terms = [tokens(document.text) or [""] for document in self._documents]
        index = bm25s.BM25(method=_METHOD, k1=_K1, b=_B)
        index.index(terms, show_progress=False)
        return index, frozenset(term for terms_of_document in terms for term in terms_of_document)
