"""Which label of a task an answer says.

The rules are written down in docs/reference/reading-answers.md. Source: P1 section 4.3 (Set
Equivalence MRT), which reads the first label that is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from fairgate.domain.cases import Case, Task
from fairgate.domain.executions import Execution, Stop
from fairgate.domain.units import Reading
from fairgate.relations.oracles.oracle import Oracle, reading
from fairgate.relations.oracles.reading import (
    forms_of,
    may_repeat,
    own_part,
    pattern_of,
    raw_place,
    readable_part,
)
from fairgate.relations.oracles.statements import MOST_READ, Statement, statement
from fairgate.relations.oracles.text import spoken_spans, unknown_control

LABEL_RULE = "label/9"
"""Identifies how labelled answers are cut and read; `rescore` refuses another one."""
FIRST_NAMED_RULE = "first-named/1"
"""The same for the rule of the studies: the first label that is named, whatever is said of it."""

_NOTHING: Mapping[str, str] = {}
_MOST_REASONS, _MOST_KNOWN = 3, 4096


def read_label(text: str, task: Task, shown: str = "") -> str | None:
    """Return the label in an answer, by the task's own rules; None where there is none."""
    return _label(text, stop_of(task), shown)


def first_label(
    text: str,
    labels: Sequence[str],
    *,
    negated: Mapping[str, str] = _NOTHING,
    marker: str = "",
    shown: str = "",
) -> str | None:
    """Return the label that `text` says, as the task spells it; None where there is none.

    `negated` names what a label means when it is directly denied ("not toxic"); without an entry a
    denied label is unreadable. With a `marker`, reading begins behind it. `shown`: the text that is
    asked about; what an answer repeats of it is no part of what it says.
    """
    stop = Stop(phrases=tuple(labels), marker=marker, negated=tuple(negated.items()))
    return _label(text, stop, shown)


@lru_cache(maxsize=64)
def stop_of(task: Task) -> Stop:
    """Return by what a task's answers are read, and where they end."""
    groups = {label: number for number, label in enumerate(map(task.canonical, task.labels))}
    return Stop(
        phrases=task.labels,
        marker=task.marker,
        values=tuple(groups[task.canonical(label)] for label in task.labels),
        negated=task.negated,
        first_named=task.reads_first_named,
    )


def _label(text: str, stop: Stop, shown: str) -> str | None:
    plain = readable_part(text, stop.marker, stop.thinking)
    said = statement(plain, stop.showing(shown) if shown else stop).said
    return None if said is None else stop.phrases[said.number]


def said_by(text: str, stop: Stop) -> Statement:
    """Decide what a whole answer says."""
    return statement(readable_part(text, stop.marker, stop.thinking), stop)


def why_unreadable(text: str, stop: Stop) -> str:
    """Say why no label or option is read in an answer, and which of its words did it."""
    if not text.strip():
        return "it is empty"
    if spoken_spans(text, stop.thinking)[1]:
        return "its thinking has no end"
    plain = readable_part(text, stop.marker, stop.thinking)
    if not plain.strip() and (token := unknown_control(text)):
        return f"it holds the control token {token!r}, which may mark thinking (`thinking`)"
    if not plain.strip():
        return f"it does not hold the marker {stop.marker!r}" if stop.marker else "it only thinks"
    if len(plain) > MOST_READ:
        return f"it is longer than the {MOST_READ:,} characters that are read"
    forms = forms_of(stop.phrases)
    own = own_part(plain, forms, stop.shown)
    answer = statement(plain, stop)
    if answer.objection:
        return answer.objection
    reasons = dict.fromkeys(
        f"{own[label.start : label.end]!r} is {label.why or 'named, and nothing says it alone'}"
        for label in answer.named
    )
    if reasons:
        return "; ".join(list(reasons)[:_MOST_REASONS])
    if quoted := pattern_of(forms, inside=True).search(plain):
        return f"it only quotes or repeats {quoted[0]!r}"
    return "it names no option" if stop.choice else "it names no label"


@lru_cache(maxsize=4096)
def label_place(text: str, stop: Stop) -> tuple[str, int] | None:
    """Find the label that `text` says, or the first that it names, and where it begins."""
    answer = said_by(text, stop)
    label = answer.said or next(iter(answer.named), None)
    if label is None:
        return None
    start = raw_place(text, label.start, stop.marker, stop.thinking)
    return stop.phrases[label.number], start


@dataclass(frozen=True, slots=True)
class LabelOracle(Oracle):
    """Reads one of a task's labels; labels of one group count as the same answer."""

    task: Task
    _known: dict[tuple[str, str], Reading] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """How answers were read: a million answers say a few dozen things."""

    @property
    def id(self) -> str:
        """Return the rule by which the task's answers are read."""
        return FIRST_NAMED_RULE if self.task.reads_first_named else LABEL_RULE

    def stop(self) -> Stop:
        """Return the task's labels, and where reading begins."""
        return stop_of(self.task)

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return the label's group; unreadable where the answer says none."""
        text = execution.response or ""
        shown = case.text if may_repeat(text) else ""
        known = self._known.get((text, shown))
        if known is None:
            label = read_label(text, self.task, shown)
            value = None if label is None else self.task.canonical(label)
            known = reading(value, shown=label or "")
            if len(self._known) < _MOST_KNOWN:
                self._known[text, shown] = known
        return known if execution.margin is None else replace(known, margin=execution.margin)

    def why(self, execution: Execution, case: Case) -> str:
        """Say which words keep an answer from being read."""
        stop = self.stop().showing(case.text)
        return why_unreadable(execution.response or "", stop)
