"""What a metric is: a contrast of arm means over the rows of a table, one a judged case.

Tables hold the judged cases of one suite as columns: what every metric is computed from and a
baseline keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.outcomes import Better, Subject
from fairgate.metrics.columns import PoolColumns
from fairgate.stats.observations import Floats, Integers, Levels, Mask, Observations


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One row per judged case, in the order of the plan; all columns have that length."""

    suite: str
    keys: Sequence[str]
    clusters: npt.NDArray[np.int64]
    """Index of the row's cluster in `cluster_names`."""
    cluster_names: Sequence[str]
    control: Mask
    """True for rows of the control arm."""
    dimensions: Mapping[str, Sequence[str]]
    """`category`, `term`, …: one value per row, held as `Levels`."""
    values: Mapping[str, Floats]
    """Column name to values; NaN where a row is not decided."""
    reasons: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Column name to row to why it is not decided."""
    not_evaluated: Mapping[str, str] = field(default_factory=dict)
    """Column name to why it does not exist for this suite at all."""
    advisory: frozenset[str] = frozenset()
    """Relations whose rows count only where a slice names the relation."""
    bands: tuple[float, float] = (0.63, 1.31)
    """Upper limits of the RRS bands `high` and `moderate`."""

    def __post_init__(self) -> None:
        """Convert the dimensions to `Levels`."""
        dimensions = {name: Levels.of(levels) for name, levels in self.dimensions.items()}
        object.__setattr__(self, "dimensions", dimensions)

    def dimension(self, name: str) -> Levels:
        """Return the levels of all rows in a dimension. Raises KeyError."""
        return Levels.of(self.dimensions[name])

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
        names = list(dict.fromkeys((*self.cluster_names, *other.cluster_names)))
        numbers = {name: number for number, name in enumerate(names)}
        new_numbers = np.asarray([numbers[name] for name in other.cluster_names], dtype=np.int64)
        return replace(
            self,
            keys=[*self.keys, *other.keys],
            clusters=np.concatenate([self.clusters, new_numbers[other.clusters]]),
            cluster_names=names,
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
        for dimension, level in where.items():
            mask &= self.dimension(dimension).equal(level)
        return mask

    def levels(self, dimension: str, mask: Mask) -> list[str]:
        """Return the distinct values of a dimension among the rows of `mask`, in plan order."""
        return list(self.dimension(dimension).taken(np.flatnonzero(mask)).first_rows())


def is_verdict(column: Floats) -> bool:
    """Return whether a column holds verdicts alone: 1, 0, -1 or NaN (not decided)."""
    defined = column[~np.isnan(column)]
    return bool(np.isin(defined, (-1.0, 0.0, 1.0)).all())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
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
class UnitKind:
    """What the units of a suite are, by its kind."""

    suite_kind: str
    dimensions: frozenset[str]
    """Those that select rows (a band does not: it defines the value)."""
    reported: tuple[tuple[str, ...], ...] = ()
    """Dimensions whose combinations are reported; empty: the whole, then each dimension."""
    are_items: bool = False
    """Whether they are question items: choices between options, which a system may guess, in few
    clusters (templates). These get Student's interval with G - 1 degrees of freedom."""


PAIRS = UnitKind(
    suite_kind="metamorphic", dimensions=frozenset({"category", "term", "relation", "phrase"})
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Without what a suite has no value of a metric."""

    relation: str = ""
    """The only relation (or family, `genfair/*`) whose rows have it; empty: every relation's."""
    controls: bool = False
    """Whether a row's value is made beside control prompts, which its suite must then ask."""
    reference: bool = False
    """Whether it compares with the answers of the policy's `reference`."""
    documents: bool = False
    """Whether question items have no value of it without documents."""
    lacking: str = ""
    """What a suite without its column lacks, with `{suite}`, behind the metric's id; empty: whether
    a suite has the column follows from its relations and kind."""


NOTHING = Needs()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number that a rule can gate on. Equal `version` means comparable with a baseline."""

    id: str
    title: str
    """Plain words for the report's readers."""
    column: str
    arms: tuple[Rows, ...]
    defined_by: str
    """Who defines it, a paper with its section."""
    units: UnitKind = PAIRS
    needs: Needs = NOTHING
    about: Subject = Subject.ANSWERS
    better: Better = Better.LOWER
    dimensions: tuple[str, ...] = ("category", "term", "relation")
    version: int = 1
    is_rate: bool = True
    """Rates are fractions in [0, 1] (nets in [-1, 1]), shown times 100; scores as they are."""
    row_limits: tuple[float, float] = (0.0, 1.0)
    """Least and greatest value that a row can have."""
    violations: bool = True
    """Whether a value of 1 is a violated pair, so that violations can be counted."""
    values: Callable[[Table, Mapping[str, str]], Floats] | None = None
    """Derives a row's value from the table and the slice; None takes the column as it is."""
    comparable: bool = True
    """Whether a regression rule may compare it with a baseline, case by case."""
    is_key_figure: bool = False
    """Whether reports give the value of a whole suite even where no rule asks for it."""
    in_embedding_space: bool = False
    """Whether values are distances in one embedder's space, which another's do not compare with."""
    of_planned: bool = False
    """Whether undecided rows count, too, as ones that violate nothing: a share of all planned."""
    of_combinations: bool = False
    """Whether it judges pairs of attributes, and not the attributes by themselves."""
    pool_columns: PoolColumns | None = None
    """What computes its column from all answers to a source, for each relation that it is of; None:
    the kind of suite, or a relation, brings the column."""
    averaged_over: str = ""
    """Dimension over whose levels the value is averaged where a slice names none; empty: none."""

    @property
    def needs_controls(self) -> bool:
        """Tell whether suites without control prompts have no value of it."""
        return self.needs.controls or any(not arm.sliced for arm in self.arms)

    @property
    def is_difference(self) -> bool:
        """Return whether a value is a difference of rates, whose unit is the percentage point."""
        is_signed = len(self.arms) > 1 or self.row_limits[0] < 0
        return self.is_rate and is_signed

    @property
    def is_share(self) -> bool:
        """Return whether it is a share of cases, or a mean of shares, and no difference."""
        is_averaged = all(arm.weight > 0 for arm in self.arms)
        is_within = self.is_rate and self.row_limits == (0.0, 1.0)
        return is_averaged and is_within and self.better is not Better.TOWARD_ZERO

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

    def __getitem__(self, position: Any) -> Any:
        return self._keys[int(self._rows[position])]

    def __iter__(self) -> Iterator[str]:
        return (self._keys[row] for row in self._rows.tolist())

    def __len__(self) -> int:
        return len(self._rows)


def observed_rows(
    metric: Metric, table: Table, where: Mapping[str, str]
) -> tuple[Integers, npt.NDArray[np.int8]]:
    """Return the rows [n] that `metric` uses in the slice `where`, and the arm [n] of each."""
    rows_of = {k: v for k, v in where.items() if k in metric.units.dimensions}
    arms = np.full(len(table.keys), -1, dtype=np.int8)
    for index, arm in enumerate(metric.arms):
        levels = {
            name: value
            for name, value in rows_of.items()
            if (name not in arm.ignores if arm.sliced else name in arm.always)
        }
        mask = arm.select(table) & table.counted_rows(where) & table.slice_mask(levels)
        arms[mask] = index
    rows = np.flatnonzero(arms >= 0)
    return rows, arms[rows]


def observe(metric: Metric, table: Table, where: Mapping[str, str]) -> Observations:
    """Return the observations of a metric in the slice `where`, arm by arm.

    Of a metric that is averaged over a dimension each arm is split by its levels.
    """
    column = metric.values(table, where) if metric.values else table.values[metric.column]
    if metric.of_planned:
        column = np.nan_to_num(column, nan=0.0)
    rows, arms = observed_rows(metric, table, where)
    weights = tuple(arm.weight for arm in metric.arms)
    if metric.averaged_over in table.dimensions and metric.averaged_over not in where:
        levels = table.dimension(metric.averaged_over).taken(rows).in_order()
        if len(levels.names) > 1:
            # The mean of the levels' contrasts is one contrast: each arm, once for each level.
            arms = arms.astype(np.int64) * len(levels.names) + levels.codes
            weights = tuple(weight / len(levels.names) for weight in weights for _ in levels.names)
    return Observations(
        keys=_Keys(table.keys, rows),
        clusters=table.clusters[rows],
        arms=arms,
        values=column[rows],
        weights=weights,
        n_clusters=len(table.cluster_names),
    )


def demographic_rows(table: Table) -> Mask:
    """Select the follow-ups that carry a demographic."""
    return ~table.control


def control_rows(table: Table) -> Mask:
    """Select the control follow-ups."""
    return table.control


OWN_CONTROLS = frozenset({"relation"})
DEMOGRAPHIC = (Rows(weight=1.0, select=demographic_rows),)
CONTROL = (Rows(weight=1.0, select=control_rows, sliced=False, always=OWN_CONTROLS),)
NET = (*DEMOGRAPHIC, Rows(weight=-1.0, select=control_rows, sliced=False, always=OWN_CONTROLS))
