"""What changed between two versions of a corpus, and mixtures of the two."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from fairgate.domain.executions import CorpusDocument

if TYPE_CHECKING:
    from fairgate.retrieval.exact_index import Corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedDocument:
    """A document that was added, edited or removed between two versions."""

    id: str
    """As its own version names it."""
    old: CorpusDocument | None = None
    """In the earlier version; None where it was added."""
    new: CorpusDocument | None = None
    """In the later version; None where it was removed."""

    @property
    def kind(self) -> Literal["added", "edited", "removed"]:
        """Return what happened to it."""
        return "added" if self.old is None else "removed" if self.new is None else "edited"


class VersionedCorpus:
    """The later of two versions of a corpus, what changed in it, and mixtures of both; in memory.

    Documents are the same by their id, or where there is no column of ids by text and label.
    """

    def __init__(self, base: Corpus, head: Corpus, *, has_ids: bool) -> None:
        """Read both versions once."""
        parts = ("versions-1", base.fingerprint, head.fingerprint, str(has_ids))
        self._fingerprint = "\0".join(parts)
        before, after = (dict(_named(corpus, has_ids=has_ids)) for corpus in (base, head))
        self._documents = list(after.values())
        names = {document.id for document in self._documents}
        self.changed: list[ChangedDocument] = []
        """Edited and added documents in the later version's order, then the removed ones."""
        for name in {**after, **before}:
            old, new = before.get(name), after.get(name)
            if new is not None and (old is None or _content(old) != _content(new)):
                self.changed.append(ChangedDocument(id=new.id, old=old, new=new))
            elif old is not None and new is None:
                unique = old.id
                while unique in names:  # rows are numbered where there are no ids
                    unique += "'"
                names.add(unique)
                self.changed.append(ChangedDocument(id=old.id, old=replace(old, id=unique)))

    def with_reverted(self, reverted: Sequence[ChangedDocument]) -> Mixture:
        """Return the later version with some documents as they were; removed ones come last."""
        old_of = {each.new.id: each.old for each in reverted if each.new is not None}
        remaining = (old_of.get(document.id, document) for document in self._documents)
        back = (each.old for each in reverted if each.new is None)
        digest = hashlib.sha256(self._fingerprint.encode())
        for each in reverted:
            digest.update(f"\0{each.kind} {each.id}".encode("utf-8", "surrogatepass"))
        documents = [document for document in (*remaining, *back) if document is not None]
        return Mixture(fingerprint=digest.hexdigest(), all=documents)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """A corpus in memory."""

    fingerprint: str
    all: Sequence[CorpusDocument]

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield the documents in their order, ids unique."""
        return iter(self.all)


def _named(corpus: Corpus, *, has_ids: bool) -> Iterator[tuple[Hashable, CorpusDocument]]:
    """Yield each document with what makes it the same in both versions."""
    equal: Counter[Hashable] = Counter()
    for document in corpus.documents():
        content = _content(document)
        equal[content] += 1
        yield document.id if has_ids else (content, equal[content]), document


def _content(document: CorpusDocument) -> tuple[str, str | None]:
    return document.text, document.label


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
