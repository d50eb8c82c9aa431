"""Cases as arrays: decided values in arms, clustered by source, and levels of dimensions.

Every number that a rule can name is a contrast of arm means, `sum_a weights[a] * mean_a`:

* ASR: one arm, weight 1, values 0 (satisfied) and 1 (violated);
* ASR net: arms demographic (+1) and control (-1);
* Diff-Bias on disambiguated items: arms biased contexts (+1) and counter contexts (-1);
* RRS: one arm, weight 1, real values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import BaselineError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observations:
    """Values of n cases; NaN marks an undecided one, which enters no mean.

    `keys` are unique within a set of observations, `clusters` [n]
    in 0..n_clusters-1, `arms` [n] index into `weights`, `values` float64 [n]. A cluster (source,
    template) may have no case, or none in some arm.
    """

    keys: Sequence[str]
    clusters: npt.NDArray[np.integer]
    arms: npt.NDArray[np.integer]
    values: Floats
    weights: tuple[float, ...]
    n_clusters: int

    @property
    def decided(self) -> Mask:
        """Flag [n]: the case has a value."""
        return ~np.isnan(self.values)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterTotals:
    """Sums and counts of the decided values, float64 [G, A] each, and the arms' weights [A].

    `informative` is the number of clusters that an interval can rest on: of those with a value
    above the smallest one seen (a violation) and those with a value below the largest, the
    smaller count. It is 0 where all values are equal.
    """

    sums: Floats
    counts: Floats
    weights: Floats
    informative: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairedObservations:
    """Cases decided in the run and in the baseline, matched by key, in the run's order.

    `now` and `base` share keys, clusters and arms; clusters are renumbered 0..G-1 over those that
    have a pair.
    """

    now: Observations
    base: Observations
    decided_once: tuple[str, ...] = ()
    """Keys of both runs that only one of them decided."""

    @property
    def difference(self) -> Observations:
        """Observations of `now - base`; their estimate is the change."""
        return replace(self.now, values=self.now.values - self.base.values)

    @property
    def n_discordant(self) -> int:
        """Count the pairs whose value differs between the runs."""
        return int(np.count_nonzero(self.now.values != self.base.values))


def contrast(totals: ClusterTotals) -> float:
    """Return the estimate from cluster totals; NaN if an arm has no decided case."""
    counts = totals.counts.sum(axis=0)
    if not len(counts) or not counts.all():
        return float("nan")
    return float(np.dot(totals.weights, totals.sums.sum(axis=0) / counts))


def estimate(obs: Observations) -> float:
    """Return the contrast of arm means; NaN if an arm has no decided case."""
    return contrast(cluster_totals(obs))


def cluster_totals(obs: Observations) -> ClusterTotals:
    """Return sums and counts of the decided values by cluster and arm; O(n)."""
    decided = obs.decided
    n_arms = len(obs.weights)
    clusters = obs.clusters[decided].astype(np.int64)
    cells = clusters * n_arms + obs.arms[decided]
    values = obs.values[decided]
    size, shape = obs.n_clusters * n_arms, (obs.n_clusters, n_arms)
    informative = 0
    if len(values):
        above = np.bincount(clusters[values > values.min()])
        below = np.bincount(clusters[values < values.max()])
        informative = min(int(np.count_nonzero(above)), int(np.count_nonzero(below)))
    return ClusterTotals(
        sums=np.bincount(cells, weights=values, minlength=size).astype(np.float64).reshape(shape),
        counts=np.bincount(cells, minlength=size).reshape(shape).astype(np.float64),
        weights=np.asarray(obs.weights, dtype=np.float64),
        informative=informative,
    )


def select(obs: Observations, where: Mask) -> Observations:
    """Return the cases flagged in `where` [n]; clusters keep their numbers, arms their weights."""
    positions = np.flatnonzero(where)
    return replace(
        obs,
        keys=_keys_at(obs, positions),
        clusters=obs.clusters[positions],
        arms=obs.arms[positions],
        values=obs.values[positions],
    )


def pair_by_key(now: Observations, base: Observations) -> PairedObservations:
    """Match two runs by case key and keep the cases that both decided.

    Cluster numbers may differ between the runs (they are only names), but cases of one cluster
    must be of one cluster in the other. Raises BaselineError for a case that changed its arm or
    cluster. O(n) time and memory.
    """
    keys, base_keys = list(now.keys), list(base.keys)
    now_rows: Integers = np.arange(len(keys), dtype=np.int64)
    base_rows = now_rows
    if keys != base_keys:
        base_positions = {key: row for row, key in enumerate(base_keys)}
        matches = [
            (row, base_positions[key]) for row, key in enumerate(keys) if key in base_positions
        ]
        pairs = np.asarray(matches, dtype=np.int64).reshape(-1, 2)
        now_rows, base_rows = pairs[:, 0], pairs[:, 1]
    moved = now.arms[now_rows] != base.arms[base_rows]
    # A cluster is a set of cases, so its number may change but its members may not part or join.
    first_now, label_now = np.unique(now.clusters[now_rows], return_inverse=True)
    first_base, label_base = np.unique(base.clusters[base_rows], return_inverse=True)
    image, origin = np.zeros(len(first_now), np.int64), np.zeros(len(first_base), np.int64)
    image[label_now], origin[label_base] = label_base, label_now
    moved |= (image[label_now] != label_base) | (origin[label_base] != label_now)
    if moved.any():
        key = now.keys[int(now_rows[int(np.argmax(moved))])]
        raise BaselineError(
            f"case {key!r:.80} belongs to another arm or source in the baseline; "
            "expected the same design in both: accept a new baseline"
        )
    decided_now, decided_base = now.decided[now_rows], base.decided[base_rows]
    both = decided_now & decided_base
    once = now_rows[decided_now != decided_base]
    now_rows, base_rows = now_rows[both], base_rows[both]
    used, clusters = np.unique(now.clusters[now_rows], return_inverse=True)
    paired = Observations(
        keys=_keys_at(now, now_rows),
        clusters=clusters.astype(np.int64),
        arms=now.arms[now_rows],
        values=now.values[now_rows],
        weights=now.weights,
        n_clusters=len(used),
    )
    return PairedObservations(
        now=paired,
        base=replace(paired, values=base.values[base_rows]),
        decided_once=tuple(_keys_at(now, once)),
    )


def _keys_at(obs: Observations, positions: npt.NDArray[np.integer]) -> list[str]:
    # Keys of many rows may be looked up one by one: a list of all is quicker.
    keys = list(obs.keys) if len(positions) else []
    return [keys[position] for position in positions.tolist()]


class Levels(Sequence[str]):
    """The level of every row: `codes` unsigned [n] are places in `names`, which are different.

    Reads like the list of the rows' texts, at a byte or two a row. `names` stand in the order of
    their first rows where it was made of texts; rows that were left out may leave unused names.
    """

    __slots__ = ("codes", "names")

    def __init__(self, codes: npt.NDArray[np.integer], names: Sequence[str]) -> None:
        """Take the indices [n] of the rows' levels in `names`."""
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
        code = self.names.index(text) if text in self.names else -1
        return np.asarray(self.codes == code, dtype=np.bool_)

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
        code_of_name = {name: position for position, name in enumerate(names)}
        codes = [code_of_name.get(name, 0) for name in self.names]
        return Levels(np.asarray(codes, dtype=np.int64)[self.codes], names)


def joined(left: Levels, right: Levels, sign: str) -> Levels:
    """Return a level for each row, made of two: both texts with a sign between them."""
    pairs = left.codes.astype(np.int64) * len(right.names) + right.codes
    used, codes = np.unique(pairs, return_inverse=True)
    several = (divmod(pair, len(right.names)) for pair in used.tolist())
    return Levels(codes, [f"{left.names[a]}{sign}{right.names[b]}" for a, b in several])
