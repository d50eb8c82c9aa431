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
from fairgate.oracles.negation import Negation
from fairgate.oracles.phrases import finished_part, first_phrase, raw_place, readable_part

LABEL_RULE = "label/2"
"""Identifies how labelled answers are cut and read; `rescore` refuses another one."""

_NOTHING: Mapping[str, str] = {}
_MOST_KNOWN = 4096


@lru_cache(maxsize=4096)
def read_label(text: str, task: Task) -> str | None:
    """Return the label in an answer, by the task's own rules; None where there is none."""
    return first_label(text, task.labels, negated=dict(task.negated), marker=task.marker)


def first_label(
    text: str, labels: Sequence[str], *, negated: Mapping[str, str] = _NOTHING, marker: str = ""
) -> str | None:
    """Return the label in `text`, as the task spells it; None where there is none.

    `negated` names what a label means when it is directly denied ("not toxic"); without an entry a
    denied label is unreadable. With a `marker`, reading begins behind it.
    """
    stop = Stop(phrases=tuple(labels), marker=marker)
    found = first_phrase(readable_part(text, marker), stop)
    if found is None:
        return None
    label = labels[found.number]
    if found.negation is Negation.NONE:
        return label
    return negated.get(label) if found.negation is Negation.DIRECT else None


@lru_cache(maxsize=4096)
def label_place(text: str, labels: tuple[str, ...], marker: str = "") -> tuple[str, int] | None:
    """Return the label that stands first in `text`, denied or not, and where it begins."""
    stop = Stop(phrases=labels, marker=marker)
    found = first_phrase(readable_part(text, marker), stop)
    return None if found is None else (labels[found.number], raw_place(text, found.start, marker))


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
    _known: dict[str, Reading] = field(default_factory=dict, init=False, repr=False, compare=False)
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
        del case
        text = execution.response or ""
        if execution.margin is not None:
            return self._read(text, execution.margin)
        found = self._known.get(text)
        if found is None:
            found = self._read(text, None)
            if len(self._known) < _MOST_KNOWN:
                self._known[text] = found
        return found

    def _read(self, text: str, margin: float | None) -> Reading:
        label = read_label(text, self.task)
        if label is None:
            return Reading(value=None, reason=Reason.UNREADABLE, margin=margin)
        return Reading(value=self.task.canonical(label), margin=margin, shown=label)

    def same(self, left: Reading, right: Reading) -> bool:
        """Return whether both are labels of the same group."""
        return left.value == right.value
