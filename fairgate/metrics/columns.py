"""Columns of a suite's table that are computed from all answers to one source.

A column holds one number for each row (a pair, a question item), or a reason where a row has none.
A number may be a verdict (0 or 1) or any finite float: a distance, log-odds, a count of words. The
verdict on a pair is its relation's (`MetamorphicRelation.claims`). Whatever else rests on answers
is declared as `PoolColumns`: a *pool* is all answers to one source, whoever it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from fairgate.domain.executions import Document, Execution
from fairgate.domain.units import Reading, Reason, Unit

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

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
        """Whether the answer is to neutral wording."""
        return self.unit is not None and self.unit.is_control


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """All answers to one source under one relation.

    Quarantined pairs and those whose changed document was not taken are no members: their rows get
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
