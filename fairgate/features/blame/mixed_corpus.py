"""A corpus with some of its changed documents as they were, searched exactly.

The documents of both versions are indexed once. A document's score depends on itself and the query
alone, so that a ranking over both versions, without those that the mixture leaves out, is the
ranking of the mixture: no index is built again. Only for searches with that property: an inner
product has it, BM25 has not.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import CorpusDocument, Document
from fairgate.domain.ports import Retriever, Vectors

if TYPE_CHECKING:
    from fairgate.retrieval.exact_index import Corpus

_SPARE = 16
"""Documents that are fetched beyond `top_k`, so that most mixtures need no deeper search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedDocument:
    """A document that was added, edited or removed between two versions."""

    kind: Literal["added", "edited", "removed"]
    id: str
    """As its own version names it."""
    old: str = ""
    """Name of the earlier version in the union; empty where it was added."""
    new: str = ""
    """Name of the later version in the union; empty where it was removed."""

    @property
    def name(self) -> str:
        """Return a name that no other changed document has."""
        return self.old or self.new


class UnionCorpus:
    """The documents of both versions, in the later one's order, and what changed between them.

    Equal id, text and label: unchanged. Of the rest, equal texts and labels are one document under
    another id: where ids are the numbers of rows, an inserted row moves all that follow. Of what is
    left, equal ids are edits, unless ids are numbers of rows (`has_ids` False). Holds the changed
    documents in memory, and a digest of every other.
    """

    def __init__(self, base: Corpus, head: Corpus, *, has_ids: bool) -> None:
        """Read both versions once."""
        self._head = head
        parts = ("union-1", base.fingerprint, head.fingerprint, str(has_ids))
        self.fingerprint = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        gone, new = _without_common(base, head)
        used_ids = {document.id for document in head.documents()}
        self._inserted: dict[str, list[CorpusDocument]] = defaultdict(list)
        self.size = len(used_ids) + len(gone)
        edited: dict[str, ChangedDocument] = {}
        removed: list[ChangedDocument] = []
        last: dict[str, str] = {}
        for document, follows in gone:
            id_ = document.id
            old = f"{id_} (BASE)"
            while old in used_ids:
                old += "'"
            used_ids.add(old)
            if has_ids and id_ in new:
                edited[id_] = ChangedDocument(kind="edited", id=id_, old=old, new=id_)
                last[follows] = id_
            else:
                removed.append(ChangedDocument(kind="removed", id=id_, old=old))
            self._inserted[last.get(follows, follows)].append(replace(document, id=old))
        self.changed: list[ChangedDocument] = [
            edited.get(id_) or ChangedDocument(kind="added", id=id_, new=id_) for id_ in new
        ] + removed
        """Edited and added documents in the later version's order, then the removed documents."""

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield both versions' documents; an earlier one stands where it stood, ids unique."""
        yield from self._inserted.get("", ())
        for document in self._head.documents():
            yield document
            yield from self._inserted.get(document.id, ())


def _without_common(
    base: Corpus, head: Corpus
) -> tuple[list[tuple[CorpusDocument, str]], dict[str, None]]:
    """Return the earlier's own documents, with the id each follows, and the later's own ids."""
    now = {document.id: _digest(document) for document in head.documents()}
    same = {d.id for d in base.documents() if now.get(d.id) == _digest(d)}
    by_text: dict[bytes, list[str]] = defaultdict(list)
    for id_, digest in now.items():
        if id_ not in same:
            by_text[digest].append(id_)
    for ids in by_text.values():
        ids.reverse()
    gone: list[tuple[CorpusDocument, str]] = []
    renamed: set[str] = set()
    follows = ""
    for document in base.documents():
        if document.id in same:
            follows = document.id
            continue
        alike = by_text.get(_digest(document))
        if alike:
            follows = alike.pop()
            renamed.add(follows)
        else:
            gone.append((document, follows))
    return gone, dict.fromkeys(id_ for id_ in now if id_ not in same and id_ not in renamed)


def _digest(document: CorpusDocument) -> bytes:
    parts = (document.text, document.label)
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).digest()


class UnionSearch:
    """Searches both versions at once, and remembers the rankings."""

    def __init__(self, union: UnionCorpus, retriever: Retriever) -> None:
        """Take the corpus and a retriever over it whose scores depend on one document alone."""
        self.union = union
        self.retriever = retriever
        self._rankings: dict[str, Sequence[Document]] = {}

    def mixture(self, reverted: Collection[ChangedDocument]) -> Mixture:
        """Return the retriever over the later version with these documents as they were."""
        return Mixture(self, reverted)

    def rankings(
        self, queries: Iterable[str], enough: Callable[[Sequence[Document]], bool], top_k: int
    ) -> Mapping[str, Sequence[Document]]:
        """Return for each query a ranking over both versions that is long `enough`."""
        depth = min(self.union.size, top_k + _SPARE)
        waiting = list(dict.fromkeys(queries))
        rankings: dict[str, Sequence[Document]] = {}
        while waiting:
            fresh = [query for query in waiting if len(self._rankings.get(query, ())) < depth]
            for start in range(0, len(fresh), self.retriever.at_once):
                batch = fresh[start : start + self.retriever.at_once]
                self._rankings |= dict(
                    zip(batch, self.retriever.retrieve(batch, depth), strict=True)
                )
            done = [q for q in waiting if depth == self.union.size or enough(self._rankings[q])]
            rankings |= {query: self._rankings[query] for query in done}
            waiting = [query for query in waiting if query not in rankings]
            depth = min(self.union.size, 4 * depth)
        return rankings


class Mixture:
    """A port `Retriever` over a mixture of both versions."""

    def __init__(self, search: UnionSearch, reverted: Collection[ChangedDocument]) -> None:
        """Take the search and the documents that are as they were."""
        self._search = search
        back = {document.name for document in reverted}
        changed = search.union.changed
        left_out = (document.new if document.name in back else document.old for document in changed)
        self._out = frozenset(name for name in left_out if name)
        self._restored_ids: dict[str | None, str] = {
            document.old: document.id
            for document in changed
            if document.kind == "edited" and document.name in back
        }
        digest = hashlib.sha256("\0".join(sorted(self._out)).encode()).hexdigest()
        self.fingerprint = f"mixture {digest} of {search.retriever.fingerprint}"

    @property
    def at_once(self) -> int:
        """Return how many queries a search takes together."""
        return self._search.retriever.at_once

    @property
    def size(self) -> int:
        """Return the number of documents."""
        return self._search.union.size - len(self._out)

    def retrieve(self, queries: Sequence[str], top_k: int, *changed: Any) -> list[list[Document]]:
        """Search the mixture like an index over it. Raises RetrievalError for `changed`."""
        if changed:
            raise RetrievalError("versions of a corpus are not mixed for `documents/subject`")
        return [
            [
                replace(d, id=self._restored_ids[d.id]) if d.id in self._restored_ids else d
                for d in ranking
            ]
            for ranking in self._ranked(queries, top_k)
        ]

    def names(self, queries: Sequence[str], top_k: int) -> tuple[tuple[str, ...], ...]:
        """Return for each query its documents by their names in the union: texts, so to speak."""
        return tuple(tuple(d.id or "" for d in ranking) for ranking in self._ranked(queries, top_k))

    def vectors(self, document_ids: Sequence[str]) -> Vectors | None:
        """Return the vectors of documents by the ids that `retrieve` gives."""
        union = {new: old or "" for old, new in self._restored_ids.items()}
        return self._search.retriever.vectors([union.get(id_, id_) for id_ in document_ids])

    def _ranked(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        if self.size < top_k:
            raise RetrievalError(
                f"top_k is {top_k:,}, the mixture of both corpora holds {self.size:,} documents"
            )

        def enough(ranking: Sequence[Document]) -> bool:
            return sum(document.id not in self._out for document in ranking) >= top_k

        rankings = self._search.rankings(queries, enough, top_k)
        return [[d for d in rankings[query] if d.id not in self._out][:top_k] for query in queries]
