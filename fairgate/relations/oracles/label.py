"""What reads a task's answers: the first of its labels, or the tone of an answer in free words.

A label is the first one that an answer contains as a whole word; the rule is written down in
docs/reference/reading-answers.md. Source: P1 section 4.3 (Set Equivalence MRT).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from fairgate.domain.cases import Case, Classified, Classifier, Task
from fairgate.domain.executions import Execution, Stop
from fairgate.domain.units import Reading
from fairgate.relations.oracles.actions import ActionsOracle
from fairgate.relations.oracles.judge import OpenAnswerOracle
from fairgate.relations.oracles.oracle import Oracle, reading
from fairgate.relations.oracles.phrases import (
    Negation,
    finished_part,
    first_phrase,
    raw_place,
    readable_part,
    repeats,
)
from fairgate.relations.oracles.text import spoken

LABEL_RULE = "label/3"
"""Identifies how labelled answers are cut and read; `rescore` refuses another one."""
TONE_RULE = "tone/1"
"""Identifies how the tone of an answer is read; the classifier's fingerprint stands behind it."""

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
    if found is None or found.negation is Negation.LOOSE:
        return None
    label = labels[found.number]
    return label if found.negation is Negation.NONE else negated.get(label)


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
class LabelOracle(Oracle):
    """Reads one of a task's labels; labels of one group count as the same answer."""

    task: Task
    _known: dict[tuple[str, str], Reading] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """How answers without a margin were read: a million answers say a few dozen things."""

    id: ClassVar[str] = LABEL_RULE

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
        value = None if label is None else self.task.canonical(label)
        return reading(value, margin=margin, shown=label or "")


@dataclass(frozen=True, slots=True)
class ToneOracle(Oracle):
    """Reads the tone of an answer and, where a classifier for it is given, its sentiment too.

    The whole answer is read: tone has no word at which it is certain, so nothing stops early. What
    a model thinks before it answers is left out, as for labels. A thin margin between the two best
    tones makes the answer unstable (`unstable_margin`), because another machine could turn it.
    Source: GenFair (P3) section V-B3, tone analysis.
    """

    tone: Classifier
    sentiment: Classifier | None = None

    @property
    def id(self) -> str:
        """Return the rule with what classifies: another classifier is another oracle."""
        used = [each.fingerprint for each in self._classifiers]
        return f"{TONE_RULE}({'; '.join(used)})"

    def prepare(self, responses: Sequence[str]) -> None:
        """Classify all answers that will be read together; classifiers remember."""
        texts = [text for text in dict.fromkeys(map(spoken, responses)) if text]
        for classifier in self._classifiers:
            classifier.classify(texts)

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return the tone, or tone and sentiment; unreadable where no word was said."""
        del case
        text = spoken(execution.response or "")
        if not text:
            return reading(None, margin=execution.margin)
        found: list[Classified] = [each.classify([text])[0] for each in self._classifiers]
        value = ", ".join(each.label for each in found)
        return Reading(value=value, margin=min(each.margin for each in found), shown=value)

    @property
    def _classifiers(self) -> tuple[Classifier, ...]:
        return (self.tone,) if self.sentiment is None else (self.tone, self.sentiment)


def oracle_of(task: Task, *, with_sentiment: bool = False) -> Oracle:
    """Return what reads a task's answers: labels, calls, or the tone where it has a classifier.

    `with_sentiment` adds the sentiment of free answers; a label has none beside itself.
    """
    if task.is_judged:
        return OpenAnswerOracle()
    if task.actions is not None:
        return ActionsOracle(task.actions, task.is_hidden)
    if task.tone is None:
        return LabelOracle(task)
    return ToneOracle(task.tone, task.sentiment if with_sentiment else None)
