"""The tone oracle: an answer in free words has the tone that a text classifier gives it.

The whole answer is read: tone has no word at which it is certain, so nothing stops early. What a
model thinks before it answers is left out, as for labels. A thin margin between the two best tones
makes the answer unstable (`unstable_margin`), because another machine could turn it.
Source: GenFair (P3) section V-B3, tone analysis; SPEC section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from fairgate.domain.cases import Case, Classified, Classifier, Task
from fairgate.domain.executions import Execution, Stop
from fairgate.domain.units import Reading, Reason
from fairgate.relations.oracles.judge import OpenAnswerOracle
from fairgate.relations.oracles.label import LabelOracle
from fairgate.relations.oracles.oracle import Oracle
from fairgate.relations.oracles.thinking import spoken

TONE_RULE = "tone/1"
"""Identifies how the tone of an answer is read; the classifier's fingerprint stands behind it."""


@runtime_checkable
class ReadsTogether(Protocol):
    """An oracle for which many answers at once are quicker; what it reads stays the same."""

    def prepare(self, responses: Sequence[str]) -> None:
        """Take the answers that are going to be read."""
        ...


@dataclass(frozen=True, slots=True)
class ToneOracle:
    """Reads the tone of an answer and, where a classifier for it is given, its sentiment too."""

    tone: Classifier
    sentiment: Classifier | None = None

    @property
    def id(self) -> str:
        """Return the rule with what classifies: another classifier is another oracle."""
        used = [each.fingerprint for each in self._classifiers]
        return f"{TONE_RULE}({'; '.join(used)})"

    def stop(self) -> Stop | None:
        """Return nothing: the answer is read to its end."""
        return None

    def prepare(self, responses: Sequence[str]) -> None:
        """Classify all answers together; classifiers remember."""
        texts = [text for text in dict.fromkeys(map(spoken, responses)) if text]
        for classifier in self._classifiers:
            classifier.classify(texts)

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return the tone, or tone and sentiment; unreadable where no word was said."""
        del case
        text = spoken(execution.response or "")
        if not text:
            return Reading(value=None, reason=Reason.UNREADABLE, margin=execution.margin)
        found: list[Classified] = [each.classify([text])[0] for each in self._classifiers]
        value = ", ".join(each.label for each in found)
        return Reading(value=value, margin=min(each.margin for each in found), shown=value)

    def same(self, left: Reading, right: Reading) -> bool:
        """Return whether tone, and sentiment where it is read, are equal."""
        return left.value == right.value

    @property
    def _classifiers(self) -> tuple[Classifier, ...]:
        return (self.tone,) if self.sentiment is None else (self.tone, self.sentiment)


def oracle_of(task: Task, *, with_sentiment: bool = False) -> Oracle:
    """Return what reads a task's answers: its labels, or the tone where it has a classifier.

    `with_sentiment` adds the sentiment of free answers; a label has none beside itself.
    """
    if task.is_judged:
        return OpenAnswerOracle()
    if task.tone is None:
        return LabelOracle(task)
    return ToneOracle(task.tone, task.sentiment if with_sentiment else None)
