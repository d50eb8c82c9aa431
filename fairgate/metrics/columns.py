"""Columns: what is assessed of a suite's units, a number or a reason a row.

A column holds one number for each row (a pair, a question item), or a reason where a row has none.
A number may be a verdict (0 or 1) or any finite float: a distance, log-odds, a count of words. The
verdict on a pair is its relation's (`MetamorphicRelation.claims`). Whatever else rests on answers
is declared as `PoolColumns`: a *pool* is all answers to one source, whoever it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import eq
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fairgate.domain.executions import Document, Execution
from fairgate.domain.units import Assessed, Claim, Reading, Reason, Unit
from fairgate.stats.observations import Floats, Integers, Mask

if TYPE_CHECKING:
    from typing import Self

Codes = npt.NDArray[np.integer]
_DECIMALS = 6


class RowReasons(Mapping[int, Reason]):
    """Row to why it has no value; a byte a row, because a column may be undecided throughout."""

    __slots__ = ("codes", "words")

    def __init__(self, codes: npt.NDArray[np.uint8], words: Sequence[Reason | None]) -> None:
        """Take the place [n] of each row's reason in `words`, whose first is None: decided."""
        self.codes = codes
        self.words = tuple(words)

    def __getitem__(self, row: int) -> Reason:
        """Return the reason of a row. Raises KeyError where it is decided."""
        reason = self.words[int(self.codes[row])] if 0 <= row < len(self.codes) else None
        if reason is None:
            raise KeyError(row)
        return reason

    def __iter__(self) -> Iterator[int]:
        """Yield the rows that are not decided, in their order."""
        return iter(np.flatnonzero(self.codes).tolist())

    def __len__(self) -> int:
        """Return how many rows are not decided."""
        return int(np.count_nonzero(self.codes))


class Column:
    """One value for each of n rows: a finite number, or the reason why there is none."""

    __slots__ = ("reasons", "values")

    def __init__(self, values: Floats, reasons: RowReasons) -> None:
        """Take float64 values [n], NaN where there is a reason."""
        self.values = values
        self.reasons = reasons

    @classmethod
    def of(cls, claims: Sequence[Claim]) -> Self:
        """Make a column of its values, row by row."""
        reason_codes: dict[Reason | None, int] = {None: 0}
        codes = np.zeros(len(claims), dtype=np.uint8)
        values = np.empty(len(claims), dtype=np.float64)
        for row, claim in enumerate(claims):
            if isinstance(claim, Reason):
                codes[row] = reason_codes.setdefault(claim, len(reason_codes))
                values[row] = np.nan
            else:
                values[row] = claim
        return cls(values, RowReasons(codes, list(reason_codes)))

    def __getitem__(self, row: int) -> Claim:
        """Return the value of a row."""
        reason = self.reasons.words[self.reasons.codes[row]]
        return float(self.values[row]) if reason is None else reason

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)

    def taken(self, rows: Codes) -> Self:
        """Return the values of these rows, in their order."""
        reasons = RowReasons(self.reasons.codes[rows], self.reasons.words)
        return type(self)(self.values[rows], reasons)

    def without(self, reasons: RowReasons) -> Self:
        """Return the column in which the rows that have one of these reasons have no value."""
        words = [*self.reasons.words, *reasons.words[1:]]
        moved = reasons.codes.astype(np.uint8) + np.uint8(len(self.reasons.words) - 1)
        codes = np.where(reasons.codes == 0, self.reasons.codes, moved)
        values = np.where(reasons.codes == 0, self.values, np.nan)
        return type(self)(values, RowReasons(codes, words))

    def counts(self) -> dict[Reason, int]:
        """Return how many rows have no value for each reason."""
        numbers = np.bincount(self.reasons.codes, minlength=len(self.reasons.words)).tolist()
        counts: dict[Reason, int] = {}
        for reason, number in zip(self.reasons.words, numbers, strict=True):
            if reason is not None and number:
                counts[reason] = counts.get(reason, 0) + number
        return counts

    def having(self, wanted: Reason) -> Mask:
        """Return [n] which rows have a reason."""
        is_wanted = np.asarray([reason is wanted for reason in self.reasons.words], dtype=np.bool_)
        return np.asarray(is_wanted[self.reasons.codes], dtype=np.bool_)

    @property
    def rounded(self) -> Floats:
        """Values to six decimals, as metrics and baselines take them."""
        rounded = np.round(self.values, _DECIMALS)
        # A column of verdicts need not be kept twice.
        is_same = np.array_equal(rounded, self.values, equal_nan=True)
        return self.values if is_same else np.asarray(rounded, dtype=np.float64)


class ReadingColumn:
    """How the answers in one role were read: `codes` [n] are places in `readings`; -1: none."""

    __slots__ = ("codes", "readings")

    def __init__(self, codes: Codes, readings: Sequence[Reading]) -> None:
        """Take the codes [n], and the different readings."""
        self.codes = codes
        self.readings = readings

    def __getitem__(self, row: int) -> Reading:
        """Return the reading of a row. Raises KeyError where nothing was asked in the role."""
        code = int(self.codes[row])
        if code < 0:
            raise KeyError(row)
        return self.readings[code]

    def __contains__(self, row: object) -> bool:
        """Return whether a row has a reading."""
        return isinstance(row, int) and bool(self.codes[row] >= 0)

    def replaced(self, others: Mapping[int, Reading]) -> ReadingColumn:
        """Return the column with other readings in some rows."""
        if not others:
            return self
        reading_codes: dict[Reading, int] = {}
        different = [*self.readings]
        codes = self.codes.copy()
        for row, reading in others.items():
            if reading not in reading_codes:
                reading_codes[reading] = len(different)
                different.append(reading)
            codes[row] = reading_codes[reading]
        return ReadingColumn(codes, different)


class _RowView(Mapping[str, Any]):
    """One row of several columns, by their names."""

    __slots__ = ("columns", "row")

    def __init__(self, columns: Mapping[str, Any], row: int) -> None:
        self.columns = columns
        self.row = row

    def __getitem__(self, name: str) -> Any:
        return self.columns[name][self.row]

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)


class _RowReadings(_RowView):
    """The readings of one row, of the roles that it has."""

    __slots__ = ()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[str]:
        return (role for role, column in self.columns.items() if self.row in column)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AssessedSuite(Sequence[Assessed]):
    """The assessed units of one suite as columns; reads like the list of its rows."""

    units: Sequence[Unit]
    readings: Mapping[str, ReadingColumn]
    """By role."""
    columns: Mapping[str, Column]
    decisive: str
    """Name of the column that says whether a unit counts as decided."""
    alike: Integers | None = None
    """Rows with the same number [n] have the same readings and values; None: not known."""

    @classmethod
    def of(cls, rows: Sequence[Assessed]) -> AssessedSuite:
        """Make columns of rows; those of a suite have the same claims."""
        if isinstance(rows, AssessedSuite):
            return rows
        roles = dict.fromkeys(role for row in rows for role in row.readings)
        return cls(
            units=[row.unit for row in rows],
            readings={
                role: _reading_column([row.readings.get(role) for row in rows]) for role in roles
            },
            columns={
                name: Column.of([row.claims[name] for row in rows])
                for name in (rows[0].claims if rows else ())
            },
            decisive=rows[0].decisive if rows else "",
        )

    def __getitem__(self, row: Any) -> Any:
        """Return a row, or the list of several."""
        if isinstance(row, slice):
            return [AssessedRow(self, number) for number in range(*row.indices(len(self)))]
        return AssessedRow(self, range(len(self))[row])

    def __iter__(self) -> Iterator[Assessed]:
        """Yield the rows; each is made when it is asked for."""
        for row in range(len(self.units)):
            yield AssessedRow(self, row)

    def __len__(self) -> int:
        """Return the number of units."""
        return len(self.units)

    @property
    def decisions(self) -> Column:
        """The decisive column."""
        return self.columns[self.decisive] if self.units else Column.of(())


class AssessedRow(Assessed):
    """A row of an assessed suite, looked up when it is asked."""

    __slots__ = ("row", "suite")
    suite: AssessedSuite
    row: int

    def __init__(self, suite: AssessedSuite, row: int) -> None:
        """Take the suite, and the row's place in it."""
        object.__setattr__(self, "suite", suite)
        object.__setattr__(self, "row", row)

    @property
    def unit(self) -> Unit:
        """What was assessed."""
        return self.suite.units[self.row]

    @property
    def readings(self) -> Mapping[str, Reading]:
        """Its readings by role."""
        return _RowReadings(self.suite.readings, self.row)

    @property
    def claims(self) -> Mapping[str, Claim]:
        """Its value in every column."""
        return _RowView(self.suite.columns, self.row)

    @property
    def decisive(self) -> str:
        """Name of the column that says whether it counts as decided."""
        return self.suite.decisive

    @property
    def decision(self) -> Claim:
        """The decisive column's value."""
        return self.suite.columns[self.suite.decisive][self.row]

    @property
    def number(self) -> int | None:
        """What rows of its suite share whose readings and values are equal; None: not known."""
        return None if self.suite.alike is None else int(self.suite.alike[self.row])

    def __eq__(self, other: object) -> bool:
        """Return whether all that is known of both is equal."""
        if not isinstance(other, Assessed):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _FIELDS)

    __hash__ = None  # type: ignore[assignment]


_FIELDS = ("unit", "readings", "claims", "decisive")


def _reading_column(readings: Sequence[Reading | None]) -> ReadingColumn:
    reading_codes: dict[Reading, int] = {}
    codes = [
        -1 if reading is None else reading_codes.setdefault(reading, len(reading_codes))
        for reading in readings
    ]
    return ReadingColumn(np.asarray(codes, dtype=np.int32), list(reading_codes))


class AssessedUnits(Sequence[Assessed]):
    """The assessed units of all suites, suite by suite; reads like the list of its rows."""

    __slots__ = ("suites",)

    def __init__(self, suites: Mapping[str, AssessedSuite]) -> None:
        """Take the suites by name, in their order."""
        self.suites = suites

    @classmethod
    def of(cls, rows: Iterable[Assessed]) -> AssessedUnits:
        """Make columns of rows, suite by suite."""
        if isinstance(rows, AssessedUnits):
            return rows
        if isinstance(rows, AssessedSuite):
            return cls({rows.units[0].suite: rows} if rows else {})
        suites: dict[str, list[Assessed]] = {}
        for row in rows:
            suites.setdefault(row.unit.suite, []).append(row)
        return cls({name: AssessedSuite.of(several) for name, several in suites.items()})

    def __getitem__(self, row: Any) -> Any:
        """Return a row, or the list of several."""
        if isinstance(row, slice):
            return [self[number] for number in range(*row.indices(len(self)))]
        number = range(len(self))[row]
        for suite in self.suites.values():
            if number < len(suite):
                return suite[number]
            number -= len(suite)
        raise IndexError(row)

    def __iter__(self) -> Iterator[Assessed]:
        """Yield the rows; each is made when it is asked for."""
        return chain.from_iterable(self.suites.values())

    def __len__(self) -> int:
        """Return the number of units."""
        return sum(map(len, self.suites.values()))

    def __eq__(self, other: object) -> bool:
        """Return whether all rows are equal."""
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]


VectorsOf: TypeAlias = "Callable[[Sequence[Document]], npt.NDArray[np.float32] | None]"
"""Documents to unit vectors `[n, d]`; None where a text is not known or nothing embeds it."""
Values: TypeAlias = Sequence[float | Reason]
"""A finite number, or the reason why there is none, for each member of a pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolAnswer:
    """The answers to one case of a pool: one, or one for each repeat."""

    key: str
    """Key of the case."""
    unit: Unit | None
    """The pair whose follow-up it is; None for the source."""
    reading: Reading
    """All repeats as the relation's oracle reads them together."""
    executions: Sequence[Execution]
    """What the system did, a repeat each; empty where nothing was answered."""
    responses: Sequence[str]
    """The text of each execution without thinking; executions without a response are left out."""

    @property
    def is_control(self) -> bool:
        """Whether the answer is to control prompts."""
        return self.unit is not None and self.unit.is_control


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """All answers to one source under one relation.

    Pairs whose changed document was not taken are no members: their rows get
    that reason in every column.
    """

    relation: str
    source: PoolAnswer
    members: Sequence[PoolAnswer]
    """The follow-ups of both arms, in the order of the plan: the rows that get a value."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoolColumns:
    """Columns that one function computes from pools.

    `compute` takes all pools of the suite, in the order of the plan, and what embeds texts. It
    yields for each pool the values of its members under each of `names`. It must be deterministic
    and must not depend on the order of the pools.
    """

    names: tuple[str, ...]
    """Columns that it writes; a metric names one of them as its `column`."""
    compute: Callable[[Sequence[Pool], VectorsOf], Iterable[Mapping[str, Values]]]
    not_evaluated: Mapping[Reason, str] = field(default_factory=dict)
    """What reports say where no row of a column has a value, by the commonest reason."""


def pool_by_pool(
    names: Sequence[str],
    values_of: Callable[[Pool], Mapping[str, Values]],
    not_evaluated: Mapping[Reason, str] | None = None,
) -> PoolColumns:
    """Make columns whose values in a pool depend on that pool alone."""

    def compute(pools: Sequence[Pool], vectors: VectorsOf) -> Iterable[Mapping[str, Values]]:
        del vectors
        return map(values_of, pools)

    return PoolColumns(names=tuple(names), compute=compute, not_evaluated=not_evaluated or {})
