"""What reads a task's answers: the label that they say, or the tone of an answer in free words.

The rules are written down in docs/reference/reading-answers.md. Source: P1 section 4.3 (Set
Equivalence MRT), which reads the first label that is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from fairgate.domain.cases import Case, Classified, Classifier, Task
from fairgate.domain.executions import Execution, Stop
from fairgate.domain.units import Reading
from fairgate.relations.oracles.actions import ActionsOracle
from fairgate.relations.oracles.judge import OpenAnswerOracle
from fairgate.relations.oracles.oracle import Oracle, reading
from fairgate.relations.oracles.reading import (
    forms_of,
    may_repeat,
    own_part,
    pattern_of,
    raw_place,
    readable_part,
    words_read,
)
from fairgate.relations.oracles.score import score_oracle
from fairgate.relations.oracles.statements import MOST_READ, Statement, statement
from fairgate.relations.oracles.text import spoken, spoken_spans, unknown_control

LABEL_RULE = "label/5"
"""Identifies how labelled answers are cut and read; `rescore` refuses another one."""
FIRST_NAMED_RULE = "first-named/1"
"""The same for the rule of the studies: the first label that is named, whatever is said of it."""
TONE_RULE = "tone/2"
"""Identifies how the tone of an answer is read; the classifier's fingerprint stands behind it."""

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


def said_by(text: str, stop: Stop, *, letters: bool = True) -> Statement:
    """Decide what a whole answer says."""
    return statement(readable_part(text, stop.marker, stop.thinking), stop, letters=letters)


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
    forms = forms_of(stop.phrases)
    own = own_part(plain, forms, stop.shown)
    named = statement(plain, stop, letters=letters).named
    several = dict.fromkeys(repr(own[one.start : one.end]) for one in named if not one.why)
    if len(several) > 1:
        return (
            f"it names {' and '.join(list(several)[:_MOST_REASONS])}, and says none of them alone"
        )
    if named:
        reasons = (f"{own[one.start : one.end]!r} is {one.why}" for one in named if one.why)
        return "; ".join(list(dict.fromkeys(reasons))[:_MOST_REASONS])
    bare = dict.fromkeys(
        match[0] for match in pattern_of(forms, choice=stop.choice).finditer(plain)
    )
    if bare:
        return f"it only quotes or repeats {', '.join(map(repr, list(bare)[:_MOST_REASONS]))}"
    return "it names no option" if stop.choice else "it names no label"


@lru_cache(maxsize=4096)
def label_place(text: str, stop: Stop) -> tuple[str, int] | None:
    """Find the label that `text` says, or the first that it names, and where it begins."""
    said, named = said_by(text, stop)
    label = next(iter(named), None) if said is None else said
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
        shown = case.text
        if not may_repeat(words_read(text, self.task.marker), shown):
            shown = ""
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
