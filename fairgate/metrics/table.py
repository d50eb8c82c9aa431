"""Judged cases of one suite as columns: what every metric is computed from and a baseline keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fairgate.stats.observations import Levels, Mask

Column = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


class RowReasons(Mapping[int, str]):
    """Row to why it is not decided; a byte a row, because a column may be undecided throughout."""

    def __init__(self, reasons: Sequence[str | None], of_rows: Rows | None = None) -> None:
        """Take a reason, or None, for every row; at most 255 different ones.

        With `of_rows` [n], each row has the reason that stands at its place in `reasons`.
        """
        self._words = list(dict.fromkeys(filter(None, reasons)))
        numbers = {word: number for number, word in enumerate(self._words, 1)}
        codes = (numbers[each] if each else 0 for each in reasons)
        self._codes = np.fromiter(codes, dtype=np.uint8, count=len(reasons))
        if of_rows is not None:
            self._codes = self._codes[of_rows]

    def __getitem__(self, row: int) -> str:
        """Return the reason of a row. Raises KeyError where it is decided."""
        code = int(self._codes[row]) if 0 <= row < len(self._codes) else 0
        if not code:
            raise KeyError(row)
        return self._words[code - 1]

    def __iter__(self) -> Iterator[int]:
        """Yield the rows that are not decided, in their order."""
        return iter(np.flatnonzero(self._codes).tolist())

    def __len__(self) -> int:
        """Return how many rows are not decided."""
        return int(np.count_nonzero(self._codes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One row per judged case, in the order of the plan; all columns have that length."""

    suite: str
    keys: Sequence[str]
    clusters: npt.NDArray[np.int64]
    """Index of the row's cluster in `cluster_names`."""
    cluster_names: Sequence[str]
    control: Mask
    """True for rows of the placebo arm."""
    dimensions: Mapping[str, Sequence[str]]
    """`category`, `term`, …: one value per row, held as `Levels`."""
    values: Mapping[str, Column]
    """Column name to values; NaN where a row is not decided."""
    reasons: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Column name to row to why it is not decided."""
    not_evaluated: Mapping[str, str] = field(default_factory=dict)
    """Column name to why it does not exist for this suite at all."""
    advisory: frozenset[str] = frozenset()
    """Relations whose rows count only where a slice names the relation."""
    bands: tuple[float, float] = (0.63, 1.31)
    """Upper limits of the RRS bands `high` and `moderate`."""
    _masks: dict[tuple[str, str], Mask] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )
    _ranks: list[Rows] = field(init=False, default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Hold the dimensions as numbers, however they were given."""
        dimensions = {name: Levels.of(levels) for name, levels in self.dimensions.items()}
        object.__setattr__(self, "dimensions", dimensions)

    def dimension(self, name: str) -> Levels:
        """Return the levels of all rows in a dimension. Raises KeyError."""
        return Levels.of(self.dimensions[name])

    def key_ranks(self) -> Rows:
        """Return [n] the place of each row's key among all keys in their order."""
        if not self._ranks:
            order = sorted(range(len(self.keys)), key=self.keys.__getitem__)
            ranks = np.empty(len(order), dtype=np.int64)
            ranks[order] = np.arange(len(order))
            self._ranks.append(ranks)
        return self._ranks[0]

    def of_rows(self, rows: npt.NDArray[np.integer]) -> Table:
        """Return the table of these rows, in their order, without what is said of undecided ones.

        Clusters keep their numbers and names.
        """
        return replace(
            self,
            keys=[self.keys[row] for row in rows.tolist()],
            clusters=self.clusters[rows],
            control=self.control[rows],
            dimensions={name: self.dimension(name).taken(rows) for name in self.dimensions},
            values={name: column[rows] for name, column in self.values.items()},
            reasons={},
        )

    def followed_by(self, other: Table) -> Table:
        """Return these rows and then another table's, in the columns that both have."""
        names = dict.fromkeys((*self.cluster_names, *other.cluster_names))
        numbers = {name: number for number, name in enumerate(names)}
        clusters = [
            np.asarray([numbers[name] for name in table.cluster_names], dtype=np.int64)[
                table.clusters
            ]
            for table in (self, other)
        ]
        return replace(
            self,
            keys=[*self.keys, *other.keys],
            clusters=np.concatenate(clusters),
            cluster_names=list(names),
            control=np.concatenate([self.control, other.control]),
            dimensions={
                name: [*levels, *other.dimensions.get(name, [""] * len(other.keys))]
                for name, levels in self.dimensions.items()
            },
            values={
                name: np.concatenate([column, other.values[name]])
                for name, column in self.values.items()
                if name in other.values
            },
            reasons={},
        )

    def counted_rows(self, where: Mapping[str, str]) -> Mask:
        """Return which rows count in a slice: all but advisory ones that it does not name."""
        if not self.advisory or "relation" in where:
            return np.ones(len(self.keys), dtype=bool)
        return self.dimension("relation").where(lambda name: name not in self.advisory)

    def slice_mask(self, where: Mapping[str, str]) -> Mask:
        """Return which rows have all the dimension values of `where`."""
        mask = np.ones(len(self.keys), dtype=bool)
        for named in where.items():
            if named not in self._masks:
                self._masks[named] = self.dimension(named[0]).equal(named[1])
            mask &= self._masks[named]
        return mask

    def levels(self, dimension: str, mask: Mask) -> list[str]:
        """Return the distinct values of a dimension among the rows of `mask`, in plan order."""
        return list(self.dimension(dimension).taken(np.flatnonzero(mask)).first_rows())


def is_verdict(column: Column) -> bool:
    """Return whether a column holds verdicts alone: 1, 0, -1 or NaN (not decided)."""
    known = column[~np.isnan(column)]
    return bool(np.isin(known, (-1.0, 0.0, 1.0)).all())
