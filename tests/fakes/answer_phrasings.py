"""Answers as models word them, and how a careful person reads each: `tests/data`.

Two labels that one could doubt are decided as a native reader understands them. "Nothing toxic
here" denies toxicity of the whole text, as "there is nothing toxic in it" does. "Es handelt sich um
den Mann, nicht um die Frau" names the man.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from fakes.tasks import load_task

from fairgate.domain.executions import Stop
from fairgate.policy.definition_files import unknown_wordings
from fairgate.relations.oracles.choice import choice_stop, read_choice
from fairgate.relations.oracles.closed import YesNoOracle, read_yes_no
from fairgate.relations.oracles.label import first_label, read_label
from fairgate.relations.oracles.text import with_known_tags

DATA = Path(__file__).parents[1] / "data"
CHOICES = ("The grandfather", "The grandson", "Can't be determined")


@dataclass(frozen=True)
class Phrasing:
    """An answer, and what it is read as: a label, `safe` for any that says so, a letter, None."""

    task: str
    """`choice`, `options` and `labels` (of its own), `yes-no`, or the id of a task."""
    group: str
    text: str
    read: str | None
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
    def stop(self) -> Stop:
        """What ends the answer."""
        if self.task in {"choice", "options"}:
            return choice_stop(self.options, self.wordings, self.marker, unknown=self.unknown)
        if self.task == "yes-no":
            return YesNoOracle().stop()
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
"""Many were worded to break earlier rules."""
DECIDING = _phrasings("answer_phrasings_deciding.jsonl")
"""Labelled by a person who had not seen any rule."""
UNSEEN = _phrasings("answer_phrasings_unseen.jsonl")
"""Worded and labelled before the three rules were written: 3 of 358 were read wrongly at first, and
6 of the 298 that say something were not read."""
FRESH = _phrasings("answer_phrasings_fresh.jsonl")
"""Two sets by one hand. Of 351, worded before it had seen any rule, 8 were read wrongly by the rules
of then; of the 154 others, worded once the rules were changed for those, 2 at first reading."""
BLIND = _phrasings("answer_phrasings_blind.jsonl")
"""Four sets. Of 354, worded before their author had read the rules of then, 15 were read wrongly by
these; of 148 others, worded once the rules were changed for those, 5 at first reading. The other two
sets are by the author of the rules that read tags, each worded once the rules were finished: of 162,
five were read wrongly at first (by the rules before, eight), and of 113, worded once the rules were
changed for those, eight (eleven)."""
HANDS = _phrasings("answer_phrasings_hands.jsonl")
"""Five sets by hands that had seen neither rules nor answers: 1,270 as models word them (1, 3, 4, 5)
and 250 that were meant to be read wrongly (2). The rules were changed for each set before the next
one; read wrongly at first were 4 of 320 (3), 13 of 320 (4) and 4 of 330 (5)."""
PLAIN = (
    "The author went to the shop in the morning, took the bus home in the evening and wrote about "
    "the day of the family. "
)
"""A sentence behind a statement with which nothing else is read."""
ALL = {
    "phrasings": PHRASINGS, "deciding": DECIDING, "unseen": UNSEEN, "fresh": FRESH, "blind": BLIND,
    "hands": HANDS,
}  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """How the answers of a file are read."""

    answers: int
    wrong: int
    """Read otherwise than a person reads them; not read is not wrong."""
    say: int
    """Answers in which a person reads something."""
    unread: int
    """Of those not read."""


def figures(phrasings: list[Phrasing]) -> Figures:
    """Count the answers of a file by how they are read."""
    pairs = [(one.read, one.reading(one.text)) for one in phrasings]
    return Figures(
        answers=len(pairs),
        wrong=sum(found not in {None, read} for read, found in pairs),
        say=sum(read is not None for read, _ in pairs),
        unread=sum(found is None for read, found in pairs if read is not None),
    )
