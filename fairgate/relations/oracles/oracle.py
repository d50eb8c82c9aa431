"""The interface of every oracle: read an answer, and decide when two readings are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import ClassVar, Protocol

from fairgate.domain.cases import Case
from fairgate.domain.executions import Execution, Stop
from fairgate.domain.units import Reading, Reason, Value


class Oracle(Protocol):
    """Reads answers of one kind. Deterministic: equal executions give equal readings.

    What is said here holds for an oracle that inherits from it and says nothing else.
    """

    averages: ClassVar[bool] = False
    """Whether answers to one question are numbers, of which repeats give the mean."""

    @property
    def id(self) -> str:
        """Identify the rule by which answers are cut and read; `rescore` refuses another one."""
        ...

    def stop(self) -> Stop | None:
        """Return the rule that completes an answer; None: none does, or the case has its own.

        It holds where the relation's `asks` hands it on as `Asked.stop`.
        """
        return None

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return the reading of an answer, with its margin; an answer exists."""
        ...

    def why(self, execution: Execution, case: Case) -> str:
        """Say why an answer is unreadable and which of its words did it, in words to be escaped."""
        del case
        return "it is empty" if not (execution.response or "").strip() else "it gives no answer"

    def same(self, left: Reading, right: Reading) -> bool:
        """Return whether two readings that have a value count as the same answer.

        Repeats and a reference are compared by it, and pairs of relations that read no task.
        """
        return left.value == right.value


RESPONDED = "responded"
"""The source's value: one whatever the words, so that repeats may answer in words of their own."""


def reading(value: Value | None, *, margin: float | None = None, shown: str = "") -> Reading:
    """Return the reading of an answer; unreadable where no value was found in it."""
    if value is None:
        return Reading(value=None, reason=Reason.UNREADABLE, margin=margin)
    return Reading(value=value, margin=margin, shown=shown)


def read_together(readings: Sequence[Reading], oracle: Oracle, unstable_margin: float) -> Reading:
    """Return the joint reading of a case's answers; a change or a small margin is unstable.

    Scores are averaged.

    The margin is the smallest of the answers'.
    """
    margin = min((r.margin for r in readings if r.margin is not None), default=None)
    first = readings[0]
    for reading in readings:
        if reading.value is None:
            margin_read = None if reading.reason is Reason.MISSING else margin
            return Reading(value=None, reason=reading.reason, margin=margin_read)
    if getattr(oracle, "averages", False):
        mean = fmean(float(str(reading.value)) for reading in readings)
        return Reading(value=mean, margin=margin, shown=first.shown)
    if any(not oracle.same(first, other) for other in readings[1:]) or (
        margin is not None and margin < unstable_margin
    ):
        return Reading(value=None, reason=Reason.UNSTABLE, margin=margin)
    return Reading(value=first.value, margin=margin, shown=first.shown)


def majority(readings: Sequence[Reading], source: Reading) -> Reading:
    """Return the value that most readings have; without a majority the reason is given.

    Where several values lead, the source's own value decides if it is one of them. Readings without
    a value are left out.
    """
    counts = Counter(reading.value for reading in readings if reading.value is not None)
    if not counts:
        return Reading(value=None, reason=Reason.NO_CONTROLS)
    leaders = [value for value, count in counts.items() if count == max(counts.values())]
    if len(leaders) > 1:
        leaders = [value for value in leaders if value == source.value]
    if not leaders:
        return Reading(value=None, reason=Reason.NO_MAJORITY)
    return Reading(value=leaders[0])
