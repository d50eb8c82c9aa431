"""What reads a task's answers: labels, numbers, calls, or the tone of an answer in free words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.domain.cases import Case, Classified, Classifier, Task
from fairgate.domain.executions import Execution
from fairgate.domain.units import Reading
from fairgate.relations.oracles.actions import ActionsOracle
from fairgate.relations.oracles.judge import OpenAnswerOracle
from fairgate.relations.oracles.label import LabelOracle
from fairgate.relations.oracles.oracle import Oracle, reading
from fairgate.relations.oracles.score import score_oracle
from fairgate.relations.oracles.text import spoken

TONE_RULE = "tone/2"
"""Identifies how the tone of an answer is read; the classifier's fingerprint stands behind it."""


@dataclass(frozen=True, slots=True)
class ToneOracle(Oracle):
    """Reads the tone of an answer and, where a classifier for it is given, its sentiment too.

    The whole answer is read, or none of it: tone has no word at which it is certain, so nothing
    stops early, and an answer that the classifier would cut is unreadable. What
    a model thinks before it answers is left out, as for labels. A thin margin between the two best
    tones makes the answer unstable (`unstable_margin`), because another machine could turn it.
    Source: GenFair (P3) section V-B3, tone analysis.
    """

    tone: Classifier
    sentiment: Classifier | None = None
    is_beside: bool = False
    """Whether sentences of answers are read, all of them; the tone of the beginning is an aside."""

    @property
    def id(self) -> str:
        """Return the rule with what classifies: another classifier is another oracle."""
        used = [classifier.fingerprint for classifier in self._classifiers]
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
        if not text or self._cuts(text):
            return reading(None, margin=execution.margin)
        tones: list[Classified] = [
            classifier.classify([text])[0] for classifier in self._classifiers
        ]
        value = ", ".join(tone.label for tone in tones)
        return Reading(value=value, margin=min(tone.margin for tone in tones), shown=value)

    def why(self, execution: Execution, case: Case) -> str:
        """Say that no word was said, or more than the classifier reads."""
        if self._cuts(spoken(execution.response or "")):
            return "it is longer than what the classifier reads, and its end may have another tone"
        return Oracle.why(self, execution, case)

    def _cuts(self, text: str) -> bool:
        return not self.is_beside and any(one.cuts(text) for one in self._classifiers)

    @property
    def _classifiers(self) -> tuple[Classifier, ...]:
        return (self.tone,) if self.sentiment is None else (self.tone, self.sentiment)


def oracle_of(task: Task, *, with_sentiment: bool = False) -> Oracle:
    """Return the oracle for a task: labels, calls, or the tone where it has a classifier.

    `with_sentiment` adds the sentiment of free answers; a label has none beside itself.
    """
    if task.is_judged:
        return OpenAnswerOracle()
    if task.score is not None:
        return score_oracle(task.score)
    if task.actions is not None:
        return ActionsOracle(task.actions, task.is_hidden)
    if task.tone is None:
        return LabelOracle(task)
    return ToneOracle(task.tone, task.sentiment if with_sentiment else None)
