"""What a replica of an unchanged system uses in place of its retriever's order and its store."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from fairgate.domain.executions import Document
from fairgate.domain.ports import Retriever, Vectors


class Reordered:
    """A retriever whose lists are shown in another order, the same for every query.

    Ranks are exchanged alike everywhere, so metrics of the retrieval do not move; the prompts do.
    """

    def __init__(self, inner: Retriever, seed: int) -> None:
        """Take the retriever and the number that names the order."""
        self._inner = inner
        self._seed = seed

    @property
    def fingerprint(self) -> str:
        """Identify retriever and order."""
        return f"{self._inner.fingerprint} order {self._seed}"

    @property
    def at_once(self) -> int:
        """Return what the retriever says."""
        return self._inner.at_once

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        """Return the retriever's documents in this order."""
        order = list(range(top_k))
        random.Random(self._seed).shuffle(order)  # noqa: S311 (no secret)
        return [
            [found[rank] for rank in order if rank < len(found)]
            for found in self._inner.retrieve(queries, top_k)
        ]

    def vectors(self, document_ids: Sequence[str]) -> Vectors | None:
        """Return what the retriever returns."""
        return self._inner.vectors(document_ids)


class NoStore:
    """A result store that keeps nothing: every question is asked again."""

    def get_many(self, kind: str, keys: Sequence[str]) -> Mapping[str, str]:
        """Return nothing."""
        del kind, keys
        return {}

    def put_many(self, kind: str, items: Iterable[tuple[str, str]]) -> None:
        """Discard the results."""
        del kind
        for _ in items:
            pass
