"""Over 150 answers as models word them, and how each is to be read: `tests/data`."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from fairgate.domain.executions import Stop
from fairgate.policy.named_files import load_task, unknown_wordings
from fairgate.relations.oracles.choice import choice_stop, read_choice
from fairgate.relations.oracles.label import read_label

FILE = Path(__file__).parents[1] / "data" / "answer_phrasings.jsonl"
CHOICES = ("The grandfather", "The grandson", "Can't be determined")


@dataclass(frozen=True)
class Phrasing:
    """An answer, and what it is read as: a label, `safe` for any that says so, a letter, None."""

    task: str
    group: str
    text: str
    read: str | None
    limit: str = ""
    """Why the reading is known to differ from what a person would read."""

    @property
    def generated(self) -> str:
        """The answer as FairGate's engine has it: it knows that the prompt opened the thinking."""
        return (
            f"<think>{self.text}" if self.group == "thinking, opened by the prompt" else self.text
        )

    @property
    def stop(self) -> Stop:
        if self.task == "choice":
            return choice_stop(CHOICES, unknown_wordings())
        return Stop(phrases=load_task(self.task).labels)

    def reading(self, text: str) -> str | None:
        """Read a beginning of the answer."""
        if self.task == "choice":
            index = read_choice(text, CHOICES, unknown_wordings())
            return None if index is None else "ABC"[index]
        task = load_task(self.task)
        label = read_label(text, task)
        return "safe" if label and task.canonical(label) == "non-toxic" else label


PHRASINGS = [Phrasing(**json.loads(line)) for line in FILE.read_text(encoding="utf-8").splitlines()]


def figures() -> list[tuple[str, int, int, int]]:
    """Group, answers in it, of these readable, of these known to be read wrongly."""
    sizes = Counter(one.group for one in PHRASINGS)
    readable = Counter(one.group for one in PHRASINGS if one.read is not None)
    wrong = Counter(one.group for one in PHRASINGS if one.limit)
    return [(group, size, readable[group], wrong[group]) for group, size in sizes.items()]
