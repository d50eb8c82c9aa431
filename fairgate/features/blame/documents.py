"""What changed between two versions of a corpus, searched with any part of it taken back.

The documents of both versions are indexed once. By an inner product a document's score depends on
itself and the query alone, so that a ranking over both versions, without those that a mixture
leaves out, is the ranking of the mixture.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from fairgate.domain.errors import RetrievalError
from fairgate.domain.executions import CorpusDocument, Document
from fairgate.domain.ports import Retriever, Vectors

if TYPE_CHECKING:
    from fairgate.retrieval.exact_index import Corpus


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


class UnionCorpus:
    """The later version's documents, then what the earlier one has of its own; held in memory.

    Documents are the same by their id, or where there is no column of ids by text and label.
    """

    def __init__(self, base: Corpus, head: Corpus, *, has_ids: bool) -> None:
        """Read both versions once."""
        parts = ("union-2", base.fingerprint, head.fingerprint, str(has_ids))
        self.fingerprint = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        before, after = (dict(_named(corpus, has_ids=has_ids)) for corpus in (base, head))
        self._documents = list(after.values())
        self.changed: list[ChangedDocument] = []
        """Edited and added documents in the later version's order, then the removed ones."""
        names = {document.id for document in self._documents}
        for name in {**after, **before}:
            then, now = before.get(name), after.get(name)
            if then is None and now is not None:
                self.changed.append(ChangedDocument(kind="added", id=now.id, new=now.id))
            elif then is not None and (now is None or _content(now) != _content(then)):
                old = f"{then.id} (BASE)"
                while old in names:
                    old += "'"
                names.add(old)
                self._documents.append(replace(then, id=old))
                kind: Literal["edited", "removed"] = "removed" if now is None else "edited"
                new = "" if now is None else now.id
                self.changed.append(ChangedDocument(kind=kind, id=then.id, old=old, new=new))

    @property
    def size(self) -> int:
        """Return the number of documents of both versions, those that did not change once."""
        return len(self._documents)

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield both versions' documents, ids unique."""
        return iter(self._documents)


def _named(corpus: Corpus, *, has_ids: bool) -> Iterator[tuple[Hashable, CorpusDocument]]:
    """Yield each document with what makes it the same in both versions."""
    equal: Counter[Hashable] = Counter()
    for document in corpus.documents():
        content = _content(document)
        equal[content] += 1
        yield document.id if has_ids else (content, equal[content]), document


def _content(document: CorpusDocument) -> tuple[str, str | None]:
    return document.text, document.label


class UnionSearch:
    """Searches both versions at once, and remembers the rankings."""

    def __init__(self, union: UnionCorpus, retriever: Retriever) -> None:
        """Take the corpus and a retriever over it whose scores depend on one document alone."""
        self.union = union
        self.retriever = retriever
        self._rankings: dict[tuple[str, int], list[Document]] = {}

    def rankings(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        """Return for each query a ranking that holds the first `top_k` of any mixture."""
        depth = min(self.union.size, top_k + len(self.union.changed))
        fresh = [q for q in dict.fromkeys(queries) if (q, depth) not in self._rankings]
        for start in range(0, len(fresh), self.retriever.at_once):
            batch = fresh[start : start + self.retriever.at_once]
            found = self.retriever.retrieve(batch, depth)
            self._rankings |= {
                (query, depth): ranking for query, ranking in zip(batch, found, strict=True)
            }
        return [self._rankings[query, depth] for query in queries]


class Mixture:
    """A port `Retriever` over the later version with some documents as they were."""

    def __init__(self, search: UnionSearch, reverted: Collection[ChangedDocument]) -> None:
        """Take the search and the documents that are as they were."""
        self._search = search
        back = frozenset(reverted)
        left_out = (each.new if each in back else each.old for each in search.union.changed)
        self._out = frozenset(name for name in left_out if name)
        self._ids: dict[str | None, str] = {each.old: each.id for each in back if each.new}
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
                replace(document, id=self._ids.get(document.id, document.id))
                for document in ranking
                if document.id not in self._out
            ][:top_k]
            for ranking in self._search.rankings(queries, top_k)
        ]

    def vectors(self, document_ids: Sequence[str]) -> Vectors | None:
        """Return the vectors of documents by the ids that `retrieve` gives."""
        union = {new: old or "" for old, new in self._ids.items()}
        return self._search.retriever.vectors([union.get(id_, id_) for id_ in document_ids])


def smallest_part(
    changed: Sequence[ChangedDocument], holds: Callable[[Sequence[ChangedDocument]], bool]
) -> list[ChangedDocument]:
    """Return a part that still has a property, and has it no more without any one document.

    `changed` as a whole has it. Ever smaller chunks are left out as long as the property stays;
    with k of n documents needed that takes O(k log n) trials: delta debugging, of which only
    complements are tried (A. Zeller and R. Hildebrandt, "Simplifying and isolating
    failure-inducing input", IEEE Transactions on Software Engineering 28 (2002) 183-200).
    """
    part = list(changed)
    size = len(part)
    is_smaller = True
    while size > 1 or is_smaller:
        size = max(1, size // 2)
        is_smaller = False
        start = 0
        while start < len(part):
            candidate = [*part[:start], *part[start + size :]]
            if candidate and holds(candidate):
                part, is_smaller = candidate, True
            else:
                start += size
    return part
