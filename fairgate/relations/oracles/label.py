"""The label oracle: the first of the task's labels that an answer contains as a whole word.

The rule is written down in docs/reference/reading-answers.md. Source: P1 section 4.3 (Set
Equivalence MRT); SPEC section 3, "Label oracle".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from fairgate.domain.cases import Case, Task
from fairgate.domain.executions import Execution, Stop
from fairgate.domain.units import Reading, Reason
from fairgate.relations.oracles.negation import Negation
from fairgate.relations.oracles.phrases import (
    finished_part,
    first_phrase,
    raw_place,
    readable_part,
    repeats,
)

LABEL_RULE = "label/3"
"""Identifies how labelled answers are cut and read; `rescore` refuses another one."""

_NOTHING: Mapping[str, str] = {}
_MOST_KNOWN = 4096


@lru_cache(maxsize=4096)
def read_label(text: str, task: Task, shown: str = "") -> str | None:
    """Return the label in an answer, by the task's own rules; None where there is none."""
    negated = dict(task.negated)
    return first_label(text, task.labels, negated=negated, marker=task.marker, shown=shown)


def first_label(
    text: str,
    labels: Sequence[str],
    *,
    negated: Mapping[str, str] = _NOTHING,
    marker: str = "",
    shown: str = "",
) -> str | None:
    """Return the label in `text`, as the task spells it; None where there is none.

    `negated` names what a label means when it is directly denied ("not toxic"); without an entry a
    denied label is unreadable. With a `marker`, reading begins behind it. `shown`: the text that is
    asked about; what an answer repeats of it is no part of what it says.
    """
    stop = Stop(phrases=tuple(labels), marker=marker, shown=shown)
    found = first_phrase(readable_part(text, marker), stop)
    if found is None:
        return None
    label = labels[found.number]
    if found.negation is Negation.NONE:
        return label
    return negated.get(label) if found.negation is Negation.DIRECT else None


@lru_cache(maxsize=4096)
def label_place(text: str, stop: Stop) -> tuple[str, int] | None:
    """Return the label that `text` says first, denied or not, and where it begins."""
    found = first_phrase(readable_part(text, stop.marker), stop)
    if found is None:
        return None
    return stop.phrases[found.number], raw_place(text, found.start, stop.marker)


@lru_cache(maxsize=4096)
def is_label_complete(text: str, stop: Stop) -> bool:
    """Return whether `first_label` can no longer change, whatever is appended to `text`.

    True only if something already follows the label (so that "positive" is not the start of
    "positively") and no longer label can still result from the text so far.
    """
    found = first_phrase(finished_part(text, stop.marker), stop)
    return found is not None and found.is_complete


@dataclass(frozen=True, slots=True)
class LabelOracle:
    """Reads one of a task's labels; labels of one group count as the same answer."""

    task: Task
    _known: dict[tuple[str, str], Reading] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """How answers without a margin were read: a million answers say a few dozen things."""

    @property
    def id(self) -> str:
        """Return the rule by which labels are read and generation stops."""
        return LABEL_RULE

    def stop(self) -> Stop:
        """Return the task's labels, and where reading begins."""
        return Stop(phrases=self.task.labels, marker=self.task.marker)

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return the first label of the answer's group; unreadable where it names none."""
        text, shown = execution.response or "", case.text or case.query
        if not repeats(text, shown):
            shown = ""
        if execution.margin is not None:
            return self._read(text, shown, execution.margin)
        found = self._known.get((text, shown))
        if found is None:
            found = self._read(text, shown, None)
            if len(self._known) < _MOST_KNOWN:
                self._known[text, shown] = found
        return found

    def _read(self, text: str, shown: str, margin: float | None) -> Reading:
        label = read_label(text, self.task, shown)
        if label is None:
            return Reading(value=None, reason=Reason.UNREADABLE, margin=margin)
        return Reading(value=self.task.canonical(label), margin=margin, shown=label)

    def same(self, left: Reading, right: Reading) -> bool:
        """Return whether both are labels of the same group."""
        return left.value == right.value
