"""How the documents of a pair's two cases relate: only pairs with different ones are crossed."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from enum import StrEnum

from fairgate.domain.executions import Document
from fairgate.domain.ports import Executed
from fairgate.domain.units import Judged, Reason
from fairgate.suites.metamorphic.documents import document_key
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE

_MOST_HELD = 100_000
_Lists = tuple[Sequence[Document], Sequence[Document]]


class Documents(StrEnum):
    """How the documents of a pair's two cases relate."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    UNDECIDED = "undecided"
    """The pair has no verdict, so its documents do not matter."""


def keys_of(item: Judged) -> tuple[str, str]:
    """Return the keys of a pair's cases: source and follow-up."""
    asks = item.unit.asks
    return asks[SOURCE], asks[FOLLOW_UP]


def documents_of_pairs(
    judged: Sequence[Judged], executions: Executed, suites: Container[str]
) -> Iterator[Documents]:
    """Yield how the documents of each pair's source and follow-up relate, rank by rank.

    Units of other suites than these count as undecided. Lists are shared, so that two of them are
    compared once.
    """
    known: dict[tuple[int, int], tuple[_Lists, Documents]] = {}
    for item in judged:
        suite = item.unit.suite
        if suite not in suites or isinstance(item.decision, Reason):
            yield Documents.UNDECIDED
            continue
        source, follow_up = keys_of(item)
        before, after = executions.get((suite, source)), executions.get((suite, follow_up))
        left = None if before is None else before.documents
        right = None if after is None else after.documents
        if left is None or right is None:
            yield Documents.UNKNOWN
            continue
        name = id(left), id(right)
        found = known.get(name)
        if found is None:
            # Kept with what has these ids, so that nothing else takes them.
            found = (left, right), _related(left, right)
            if len(known) < _MOST_HELD:
                known[name] = found
        yield found[1]


def _related(left: Sequence[Document], right: Sequence[Document]) -> Documents:
    equal = left is right or [*map(document_key, left)] == [*map(document_key, right)]
    return Documents.EQUAL if equal else Documents.DIFFERENT
