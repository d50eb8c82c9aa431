"""Answers as models word them, and how each is to be read: `tests/data`.

The groups behind `quoted` and `known limits` were labelled as a careful person reads them before
`label/4` was written; those "written in an attack" afterwards, seven of the first 90 were read
otherwise then.

Three labels that one could doubt are decided as a native reader understands them. "Nothing toxic
here" denies toxicity of the whole text, as "there is nothing toxic in it" does. "I wouldn't
consider this toxic" is a judgement in polite form, no doubt about one, as in "I don't think it is".
"Es handelt sich um den Mann, nicht um die Frau" names the man: the accusative after "um" is no
other person, and what stands behind "nicht" is excluded.
"""

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from fairgate.domain.executions import Stop
from fairgate.policy.definition_files import load_task, unknown_wordings
from fairgate.relations.oracles.choice import choice_stop, read_choice
from fairgate.relations.oracles.closed import YesNoOracle, read_score, read_yes_no
from fairgate.relations.oracles.label import first_label, read_label
from fairgate.relations.oracles.text import with_known_tags

DATA = Path(__file__).parents[1] / "data"
CHOICES = ("The grandfather", "The grandson", "Can't be determined")


@dataclass(frozen=True)
class Phrasing:
    """An answer, and what it is read as: a label, `safe` for any that says so, a letter, None."""

    task: str
    """`choice`, `options` and `labels` (of its own), `yes-no`, `score`, or the id of a task."""
    group: str
    text: str
    read: str | None
    limit: str = ""
    """Why the reading is known to differ from what a person would read."""
    options: tuple[str, ...] = CHOICES
    unknown: int = 2
    """Which option says "unknown"; -1: none does."""
    labels: tuple[str, ...] = ()
    marker: str = ""
    thinking: tuple[tuple[str, str], ...] = ()
    """Tags of thinking that the policy names."""

    @property
    def generated(self) -> str:
        """The answer as FairGate's engine has it: it knows that the prompt opened the thinking."""
        return (
            f"<think>{self.text}" if self.group == "thinking, opened by the prompt" else self.text
        )

    @property
    def wordings(self) -> tuple[str, ...]:
        return () if self.unknown < 0 else unknown_wordings()

    @property
    def stop(self) -> Stop | None:
        """What ends the answer; None where nothing does."""
        if self.task in {"choice", "options"}:
            return choice_stop(self.options, self.wordings, self.marker, unknown=self.unknown)
        if self.task == "yes-no":
            return YesNoOracle().stop()
        if self.task == "score":
            return None
        labels = self.labels or load_task(self.task).labels
        return Stop(phrases=labels, marker=self.marker, thinking=self.thinking)

    def reading(self, text: str) -> str | None:
        """Read a beginning of the answer."""
        text = with_known_tags(text, self.thinking)
        if self.task in {"choice", "options"}:
            index = read_choice(
                text, self.options, self.wordings, unknown=self.unknown, marker=self.marker
            )
            return None if index is None else "ABC"[index]
        if self.task == "yes-no":
            return read_yes_no(text)
        if self.task == "score":
            score = read_score(text)
            return None if score is None else f"{score:g}"
        if self.labels:
            return first_label(text, self.labels, marker=self.marker)
        task = load_task(self.task)
        label = read_label(text, replace(task, marker=self.marker))
        return "safe" if label and task.canonical(label) == "non-toxic" else label


def _phrasing(line: str) -> Phrasing:
    row = {name: tuple(v) if isinstance(v, list) else v for name, v in json.loads(line).items()}
    row["thinking"] = tuple(map(tuple, row.get("thinking", ())))
    return Phrasing(**row)


def _phrasings(name: str) -> list[Phrasing]:
    return [_phrasing(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


PHRASINGS = _phrasings("answer_phrasings.jsonl")
DECIDING = _phrasings("answer_phrasings_deciding.jsonl")
"""Labelled by a person who had not seen the rules, before `label/4` read any of them.

`read` is always what that person read; `limit` is what the rule read at first where it differed.
"""


def figures() -> list[tuple[str, int, int, int]]:
    """Group, answers in it, of these readable, of these known to be read wrongly."""
    sizes = Counter(one.group for one in PHRASINGS)
    readable = Counter(one.group for one in PHRASINGS if one.read is not None)
    wrong = Counter(one.group for one in PHRASINGS if one.limit)
    return [(group, size, readable[group], wrong[group]) for group, size in sizes.items()]
