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
from fairgate.relations.oracles.mentions import repeats
from fairgate.relations.oracles.negation import Negation, denying_words
from fairgate.relations.oracles.oracle import Oracle, reading
from fairgate.relations.oracles.phrases import (
    finished_part,
    forms_of,
    named,
    raw_place,
    readable_part,
    said_part,
)
from fairgate.relations.oracles.statements import (
    MOST_READ,
    NamedLabel,
    Statement,
    Status,
    outcome,
)
from fairgate.relations.oracles.text import spoken, spoken_spans, unknown_control

LABEL_RULE = "label/4"
"""Identifies how labelled answers are cut and read; `rescore` refuses another one."""
TONE_RULE = "tone/2"
"""Identifies how the tone of an answer is read; the classifier's fingerprint stands behind it."""

_NOTHING: Mapping[str, str] = {}
_MOST_KNOWN = 4096
_MOST_REASONS = 3


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
    stop = Stop(phrases=tuple(labels), marker=marker, shown=shown, negated=tuple(negated))
    match = said_by(text, stop).named
    if match is None or match.negation is Negation.LOOSE:
        return None
    label = labels[match.value]
    return label if match.negation is Negation.NONE else negated.get(label)


def said_by(text: str, stop: Stop, *, letters: bool = True) -> Statement:
    """Decide what a whole answer says."""
    plain = readable_part(text, stop.marker, stop.thinking)
    own, _ = said_part(plain, stop.phrases, stop.shown)
    return outcome(own, stop, is_open=False, letters=letters)


def why_unreadable(text: str, stop: Stop, *, letters: bool = True) -> str:
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
    outcome = said_by(text, stop, letters=letters)
    labels = [outcome.named] if outcome.named is not None else list(outcome.passed)
    if labels:
        own, _ = said_part(plain, stop.phrases, stop.shown)
        words = (
            f"{own[label.start : label.end]!r} is {label.why or _denied(own, label)}"
            for label in labels
        )
        return "; ".join(list(dict.fromkeys(words))[:_MOST_REASONS])
    bare = dict.fromkeys(
        plain[start:end]
        for start, end, _ in named(plain, forms_of(stop.phrases), choice=stop.choice)
    )
    if bare:
        mentioned = ", ".join(repr(word) for word in list(bare)[:_MOST_REASONS])
        return f"it only quotes or repeats {mentioned}"
    return "it names no option" if stop.choice else "it names no label"


def _denied(own: str, label: NamedLabel) -> str:
    """Say which words before a label deny it."""
    if label.status is not Status.DENIED:
        return "denied"
    return f"denied by {denying_words(own, label.start, label.reach)!r} before it"


@lru_cache(maxsize=4096)
def label_place(text: str, stop: Stop) -> tuple[str, int] | None:
    """Find the label that `text` says, denied or not, and where it begins."""
    outcome = said_by(text, stop)
    label = next(iter(outcome.passed), None) if outcome.named is None else outcome.named
    if label is None:
        return None
    start = raw_place(text, label.start, stop.marker, stop.thinking)
    return stop.phrases[label.value], start


@lru_cache(maxsize=4096)
def is_label_complete(text: str, stop: Stop) -> bool:
    """Tell whether what an answer says can no longer change, whatever is appended to `text`."""
    plain = finished_part(text, stop.marker, stop.thinking)
    own, settled = said_part(plain, stop.phrases, stop.shown)
    return outcome(own[:settled], stop, is_open=True).is_complete


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
        negated = tuple(label for label, _ in self.task.negated)
        return Stop(phrases=self.task.labels, marker=self.task.marker, negated=negated)

    def read(self, execution: Execution, case: Case) -> Reading:
        """Return the first label of the answer's group; unreadable where it names none."""
        text, case_text = execution.response or "", case.text or case.query
        if not repeats(text, case_text):
            case_text = ""
        if execution.margin is not None:
            return self._read(text, case_text, execution.margin)
        reading_known = self._known.get((text, case_text))
        if reading_known is None:
            reading_known = self._read(text, case_text, None)
            if len(self._known) < _MOST_KNOWN:
                self._known[text, case_text] = reading_known
        return reading_known

    def why(self, execution: Execution, case: Case) -> str:
        """Say which words keep an answer from being read."""
        stop = self.stop().showing(case.text or case.query)
        return why_unreadable(execution.response or "", stop)

    def _read(self, text: str, case_text: str, margin: float | None) -> Reading:
        label = read_label(text, self.task, case_text)
        value = None if label is None else self.task.canonical(label)
        return reading(value, margin=margin, shown=label or "")


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
    if task.actions is not None:
        return ActionsOracle(task.actions, task.is_hidden)
    if task.tone is None:
        return LabelOracle(task)
    return ToneOracle(task.tone, task.sentiment if with_sentiment else None)
