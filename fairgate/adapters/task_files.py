"""Tasks from the package, from a user's file, or from the policy itself."""

from __future__ import annotations

from pathlib import Path

from fairgate.domain.cases import Task
from fairgate.domain.errors import PolicyError
from fairgate.policy.checks import label_problems
from fairgate.policy.named_files import named_document
from fairgate.policy.parse import validated
from fairgate.suites.metamorphic.policy import TaskPolicy

KIND = "tasks"


def load_task(name: str, *, folder: Path | None = None, confined: bool = False) -> Task:
    """Return the task that a policy calls `name`: an embedded name, else a YAML or JSON file.

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
    return task_from_policy(task)


def task_from_policy(policy: TaskPolicy) -> Task:
    """Return the task that a policy or a task file spells out; labels become lower case."""
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
    )
