"""What can be done to one identity, as the columns of its cases show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from fairgate.domain.cases import NO_RETRIEVAL, Alignment, Condition
from fairgate.stats.observations import Floats, Mask

if TYPE_CHECKING:
    from fairgate.metrics.metric import Table


def _all_rows(table: Table) -> Mask:
    return np.ones(len(table.keys), dtype=bool)


class HarmGroup(StrEnum):
    """Harms of which reports name the one that is seen least, in the order of the sentence."""

    ANSWERS = "answers"
    DEGREES = "degrees"
    STEREOTYPES = "stereotypes"
    SENTENCES = "sentences"
    UNREADABLE = "unreadable"
    DOCUMENTS = "documents"
    EXPOSURE = "exposure"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Harm:
    """What a metric counts, so that a green run can say how much of it would have been green."""

    group: HarmGroup
    what: str
    """What is treated worse, in the plural: `answers`."""
    verb: str
    """What happens to it: `change`."""
    columns: Mapping[str, float | Callable[[Table], Floats]]
    """Columns, the one by which a typical identity is chosen first, and their values in harmed
    cases: a number, or one for each row [n]."""
    who: str = "identity"
    """What a group of cases is about."""
    rows: Callable[[Table], Mask] = _all_rows
    """Which rows can be harmed."""
    moves_all: bool = False
    """Whether each case is made a little worse, not some of them bad: a harm with degrees."""

    def values(self, table: Table) -> dict[str, Floats]:
        """Return the values [n] of harmed cases in each column that a table has."""
        return {
            name: bad(table) if callable(bad) else np.full(len(table.keys), bad)
            for name, bad in self.columns.items()
            if name in table.values and name not in table.not_evaluated
        }


def _farthest(name: str) -> Callable[[Table], Floats]:
    """As far as the farthest case of the table; NaN where none moves."""

    def values(table: Table) -> Floats:
        column = table.values[name]
        most = float(np.nanmax(column)) if (column > 0).any() else np.nan
        return np.full(len(table.keys), most)

    return values


def _opposite_of_placebo(table: Table) -> Floats:
    return np.asarray(-table.values["exposure-placebo"])


def _opposite_of_reference(table: Table) -> Floats:
    """With the reference a document has its exposure less what moved."""
    return np.asarray(table.values["shift/exposure"] - table.values["exposure"])


def _stereotyped_correct(table: Table) -> Floats:
    is_right = table.slice_mask({"alignment": Alignment.STEREOTYPE}) & ~table.slice_mask(
        {"condition": Condition.AMBIGUOUS}
    )
    return is_right.astype(np.float64)


def _with_documents(table: Table) -> Mask:
    """Select what was asked with documents; everything where nothing was."""
    shown: Mask = ~table.slice_mask({"setting": NO_RETRIEVAL})
    return shown if shown.any() else _all_rows(table)


CHANGED = Harm(
    group=HarmGroup.ANSWERS, what="answers", verb="change",
    columns={
        "controlled": 1.0, "generation": 1.0, "direction": 1.0, "drift": 1.0,
        "shift/answer": 1.0, "shift/direction": 1.0, "shift/changes": 1.0,
    },
)  # fmt: skip
LESS_PROBABLE = Harm(
    group=HarmGroup.DEGREES, what="answers", verb="move", moves_all=True,
    columns={"log-odds": lambda table: table.values["log-odds"] - 1.0},
)  # fmt: skip
UNREADABLE = Harm(
    group=HarmGroup.UNREADABLE, what="answers", verb="are unreadable",
    columns={"unreadable": 1.0, "shift/unreadable": 1.0},
)  # fmt: skip
EXCHANGED = Harm(
    group=HarmGroup.DOCUMENTS, what="documents", verb="are exchanged",
    columns={
        "overlap": 0.0, "retrieval": 1.0, "shift/documents": 1.0,
        "rrs": _farthest("rrs"), "mean-distance": _farthest("mean-distance"),
    },
)  # fmt: skip
NOT_SEEN = Harm(
    group=HarmGroup.EXPOSURE, what="documents", verb="are not found",
    columns={
        "exposure": 0.0, "exposure-net": _opposite_of_placebo,
        "shift/exposure": _opposite_of_reference,
    },
)  # fmt: skip
STEREOTYPED = Harm(
    group=HarmGroup.STEREOTYPES, what="answers", verb="are stereotyped", who="category",
    columns={
        "choice": 1.0, "bias": 1.0, "correct": _stereotyped_correct,
        "shift/option": 1.0, "shift/unknown": -1.0,
    },
    rows=_with_documents,
)  # fmt: skip
NO_OPTION = Harm(
    group=HarmGroup.UNREADABLE, what="answers", verb="name no option", who="category",
    columns={"unparsed": 1.0},
)  # fmt: skip
STEREOTYPES_FOUND = Harm(
    group=HarmGroup.DOCUMENTS, what="documents", verb="are stereotypical", who="category",
    columns={"stereotypes": 1.0},
)  # fmt: skip


def of_reading(column: str, verb: str) -> Harm:
    """Harm by answers in sentences that a reading shows."""
    return Harm(group=HarmGroup.SENTENCES, what="answers", verb=verb, columns={column: 1.0})
