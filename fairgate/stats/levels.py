"""A dimension of a table as small numbers: which of few different texts each row has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]


class Levels(Sequence[str]):
    """The level of every row: `codes` unsigned [n] are places in `names`, which are different.

    Reads like the list of the rows' texts, at a byte or two a row. `names` stand in the order of
    their first rows where it was made of texts; rows that were left out may leave unused names.
    """

    __slots__ = ("codes", "names")

    def __init__(self, codes: npt.NDArray[np.integer], names: Sequence[str]) -> None:
        """Take the places [n] of the rows' levels in `names`."""
        self.codes = codes.astype(np.min_scalar_type(max(0, len(names) - 1)), copy=False)
        self.names = tuple(names)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Levels:
        """Return the levels whose rows have these texts; levels as they are."""
        if isinstance(texts, Levels):
            return texts
        numbers: dict[str, int] = {}
        codes = [numbers.setdefault(text, len(numbers)) for text in texts]
        return cls(np.asarray(codes, dtype=np.int64), list(numbers))

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> Levels: ...

    def __getitem__(self, row: int | slice) -> str | Levels:
        """Return the text of a row, or the levels of some rows."""
        if isinstance(row, slice):
            return Levels(self.codes[row], self.names)
        return self.names[int(self.codes[row])]

    def __iter__(self) -> Iterator[str]:
        """Yield the text of each row."""
        return map(self.names.__getitem__, self.codes.tolist())

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.codes)

    def where(self, holds: Callable[[str], bool]) -> Mask:
        """Return [n] in which rows the text is one for which something holds; asked once a text."""
        chosen = np.asarray([holds(name) for name in self.names], dtype=np.bool_)
        return chosen[self.codes] if len(chosen) else np.zeros(len(self), dtype=np.bool_)

    def equal(self, text: str) -> Mask:
        """Return [n] which rows have a text."""
        return self.where(lambda name: name == text)

    def taken(self, rows: npt.NDArray[np.integer]) -> Levels:
        """Return the levels of these rows, in their order."""
        return Levels(self.codes[rows], self.names)

    def first_rows(self) -> dict[str, int]:
        """Return each text that a row has, with the first such row, in the order of these rows."""
        used, first = np.unique(self.codes, return_index=True)
        order = np.argsort(first)
        names = [self.names[code] for code in used[order].tolist()]
        return dict(zip(names, first[order].tolist(), strict=True))

    def in_order(self) -> Levels:
        """Return equal levels whose names are sorted, without unused ones."""
        names = sorted(self.first_rows())
        places = {name: place for place, name in enumerate(names)}
        found = [places.get(name, 0) for name in self.names]
        return Levels(np.asarray(found, dtype=np.int64)[self.codes], names)


def joined(left: Levels, right: Levels, sign: str) -> Levels:
    """Return a level for each row, made of two: both texts with a sign between them."""
    pairs = left.codes.astype(np.int64) * len(right.names) + right.codes
    used, codes = np.unique(pairs, return_inverse=True)
    several = (divmod(pair, len(right.names)) for pair in used.tolist())
    return Levels(codes, [f"{left.names[a]}{sign}{right.names[b]}" for a, b in several])
