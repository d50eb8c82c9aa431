"""What a metric is: a contrast of arm means over the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

from fairgate.domain.measurements import Better
from fairgate.metrics.table import Column, Rows, Table
from fairgate.stats.observations import Mask, Observations


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A group of rows whose mean enters the metric with a weight."""

    weight: float
    select: Callable[[Table], Mask]
    sliced: bool = True
    """Whether `where` narrows this arm; the control arm is the same for every slice."""
    ignores: frozenset[str] = frozenset()
    """Dimensions of `where` that do not narrow this arm: without documents, no retriever does."""
    always: frozenset[str] = frozenset()
    """Dimensions that narrow it even if `sliced` is False: each relation has its own controls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number that a rule can gate on. Equal `version` means comparable with a baseline."""

    id: str
    title: str
    """Plain words for the report's readers."""
    column: str
    arms: tuple[Arm, ...]
    reference: str
    better: Better = Better.LOWER
    dimensions: tuple[str, ...] = ("category", "term", "relation")
    version: int = 1
    is_rate: bool = True
    """Rates are fractions in [0, 1] (nets in [-1, 1]), shown times 100; scores as they are."""
    row_limits: tuple[float, float] = (0.0, 1.0)
    """Least and greatest value that a row can have."""
    violations: bool = True
    """Whether a value of 1 is a violated pair, so that violations can be counted."""
    values: Callable[[Table, Mapping[str, str]], Column] | None = None
    """Derives a row's value from the table and the slice; None takes the column as it is."""
    row_dimensions: frozenset[str] = frozenset({"category", "term", "relation"})
    """Those of the `where` dimensions that select rows (a band does not: it defines the value)."""
    compares_terms: bool = False
    """Whether the value is the largest difference between terms instead of the contrast itself."""
    comparable: bool = True
    """Whether a regression rule may compare it with a baseline, case by case."""
    suite_kind: str = "metamorphic"
    """Kind of the suites that have this metric."""
    reported: tuple[tuple[str, ...], ...] = ()
    """Dimensions whose combinations are reported; empty: the whole, then each dimension."""
    claim: str = ""
    """A plain sentence that states the value, with `{}` in its place; empty: the title.

    With `violations` of one arm, `{}` is a count: `9 of 80 answers`."""
    counted: str = "answers"
    """What violations are counted among."""
    neutral: str = ""
    """Metric of neutral wording to compare the value with; empty where there is none."""
    trend: tuple[str, ...] | None = None
    """Dimensions of the slices that reports show beside the baseline even where no rule does."""
    is_key_figure: bool = False
    """Whether reports give the value of a whole suite even where no rule asks for it."""
    of_planned: bool = False
    """Whether undecided rows count, too, as ones that violate nothing: a share of all planned."""
    relation: str = ""
    """The only relation (or family, `genfair/*`) whose rows have it; empty: every relation's."""
    of_combinations: bool = False
    """Whether it judges pairs of attributes, and not the attributes by themselves."""
    student: bool = False
    """Whether few clusters get Student's interval with G - 1 degrees of freedom (SPEC 4)."""

    @property
    def tells_apart(self) -> bool:
        """Return whether it compares identities, with each other or with neutral wording.

        Another one rises as well where everybody fares worse.
        """
        compares = self.compares_terms or len(self.arms) > 1 or self.column == "controlled"
        return compares or self.better is Better.TOWARD_ZERO

    @property
    def least(self) -> float:
        """Return the least value that the metric can have: no bound below it can be broken."""
        return sum(min(arm.weight * limit for limit in self.row_limits) for arm in self.arms)

    @property
    def greatest(self) -> float:
        """Return the greatest value that the metric can have."""
        return sum(max(arm.weight * limit for limit in self.row_limits) for arm in self.arms)


class _Keys(Sequence[str]):
    """The keys of some rows; only comparisons read them, and most slices are not compared."""

    def __init__(self, keys: Sequence[str], rows: npt.NDArray[np.int64]) -> None:
        self._keys = keys
        self._rows = rows

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return _Keys(self._keys, self._rows[place])
        return self._keys[int(self._rows[place])]

    def __iter__(self) -> Iterator[str]:
        return (self._keys[row] for row in self._rows.tolist())

    def __len__(self) -> int:
        return len(self._rows)


def observed_rows(
    metric: Metric, table: Table, where: Mapping[str, str]
) -> tuple[Rows, npt.NDArray[np.int8]]:
    """Return the rows [n] that `metric` uses in the slice `where`, and the arm [n] of each."""
    rows_of = {k: v for k, v in where.items() if k in metric.row_dimensions}
    arms = np.full(len(table.keys), -1, dtype=np.int8)
    for index, arm in enumerate(metric.arms):
        kept = {
            name: value
            for name, value in rows_of.items()
            if (name not in arm.ignores if arm.sliced else name in arm.always)
        }
        mask = arm.select(table) & table.counted_rows(where) & table.slice_mask(kept)
        arms[mask] = index
    rows = np.flatnonzero(arms >= 0)
    return rows, arms[rows]


def observe(metric: Metric, table: Table, where: Mapping[str, str]) -> Observations:
    """Return what `metric` is computed from in the slice `where`, arm by arm."""
    column = metric.values(table, where) if metric.values else table.values[metric.column]
    if metric.of_planned:
        column = np.nan_to_num(column, nan=0.0)
    rows, arms = observed_rows(metric, table, where)
    return Observations(
        keys=_Keys(table.keys, rows),
        clusters=table.clusters[rows],
        arms=arms,
        values=column[rows],
        weights=tuple(arm.weight for arm in metric.arms),
        n_clusters=len(table.cluster_names),
    )


def demographic_rows(table: Table) -> Mask:
    """Select the follow-ups that carry a demographic."""
    return ~table.control


def control_rows(table: Table) -> Mask:
    """Select the placebo follow-ups."""
    return table.control


OWN_CONTROLS = frozenset({"relation"})
DEMOGRAPHIC = (Arm(weight=1.0, select=demographic_rows),)
CONTROL = (Arm(weight=1.0, select=control_rows, sliced=False, always=OWN_CONTROLS),)
NET = (*DEMOGRAPHIC, Arm(weight=-1.0, select=control_rows, sliced=False, always=OWN_CONTROLS))
