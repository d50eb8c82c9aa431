"""Tasks from the package, from a user's file, or from the policy itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fairgate.domain.cases import Task
from fairgate.domain.classifiers import SENTIMENTS, TONES, Classifier
from fairgate.domain.errors import DataError, PolicyError
from fairgate.domain.wording import quoted
from fairgate.policy.checks import label_problems
from fairgate.policy.named_files import named_document
from fairgate.policy.parse import validated
from fairgate.suites.metamorphic.policy import ClassifierPolicy, TaskPolicy

KIND = "tasks"
Opens = Callable[[ClassifierPolicy, Sequence[str]], Classifier]
"""A classifier as a policy names it, and the labels that it may give, to what classifies."""


def _unopened(named: ClassifierPolicy, allowed: Sequence[str]) -> Classifier:
    del allowed
    raise DataError(f"the classifier {quoted(named.model)} is not opened here")


def load_task(
    name: str, opens: Opens = _unopened, *, folder: Path | None = None, confined: bool = False
) -> Task:
    """Return the task that a policy calls `name`, see `read_task`."""
    return task_from_policy(read_task(name, folder=folder, confined=confined), opens)


def read_task(name: str, *, folder: Path | None = None, confined: bool = False) -> TaskPolicy:
    """Return what defines the task `name`: an embedded name, else a YAML or JSON file.

    A relative path starts at `folder` (default: the current directory), and cannot leave it where
    `confined`. Raises DataError, with the nearest names, where there is no such task, and
    PolicyError with all problems of a file.
    """
    document = named_document(KIND, name, folder=folder or Path(), confined=confined)
    task, problems = validated(document, TaskPolicy)
    if document.complete and isinstance(document.data, dict):
        problems += [document.problem(*found) for found in label_problems(document.data)]
    if task is None or problems:
        raise PolicyError(problems)
    return task


def task_from_policy(policy: TaskPolicy, opens: Opens = _unopened) -> Task:
    """Return the task that a policy or a task file defines; labels become lower case.

    Raises DataError where a classifier does not fit.
    """
    named = policy.classifiers
    tone, sentiment = (
        (opens(named[0], TONES), opens(named[1], SENTIMENTS)) if named else (None, None)
    )
    return Task(
        id=policy.id,
        instruction=policy.instruction,
        labels=tuple(label.strip().lower() for label in policy.labels),
        equivalent=tuple(
            tuple(label.strip().lower() for label in group) for group in policy.equivalent
        ),
        negated=tuple(
            (label.strip().lower(), meant.strip().lower())
            for label, meant in policy.negated.items()
        ),
        marker=policy.marker or "",
        tone=tone,
        sentiment=sentiment,
        is_judged=policy.judged,
    )
