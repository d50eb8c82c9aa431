"""Delta debugging: the smallest part of a whole that still has a property.

A. Zeller and R. Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE Transactions
on Software Engineering 28 (2002) 183-200. Ever smaller chunks are left out as long as the property
stays; at the end no single element can be left out (1-minimal). Only complements are tried: with
k of n elements needed that takes O(k log n) trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from fairgate.domain.errors import FairGateError

T = TypeVar("T")


class OutOfQuestions(FairGateError):  # noqa: N818 (no error: the best so far counts)
    """No further question may be asked."""


def smaller_and_smaller(
    elements: Sequence[T], holds: Callable[[Sequence[T]], bool]
) -> Iterator[Sequence[T]]:
    """Yield what still has the property, ever smaller.

    `elements` as a whole have it. The last one is 1-minimal where nothing is raised; nothing is
    yielded where no element can be left out. Deterministic for a property that is.
    """
    smallest = list(elements)
    size = max(1, len(smallest) // 2)
    while True:
        is_smaller = False
        start = 0
        while start < len(smallest):
            candidate = [*smallest[:start], *smallest[start + size :]]
            if candidate and holds(candidate):
                smallest, is_smaller = candidate, True
                yield smallest
            else:
                start += size
        if size == 1 and not is_smaller:
            return
        size = max(1, size // 2)
