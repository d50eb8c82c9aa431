"""The small YAML files that policies name, tasks above all: embedded ones, or a user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from fairgate.domain.cases import SENTIMENTS, TONES, Classifier, Task
from fairgate.domain.errors import DataError, PolicyError
from fairgate.domain.wording import quoted, suggestion
from fairgate.policy.checks import label_problems
from fairgate.policy.parse import validated
from fairgate.policy.yaml_text import YamlDocument, load_yaml, read_yaml_file
from fairgate.suites.metamorphic.policy import ClassifierPolicy, TaskPolicy

_FILE_ENDINGS = (".yaml", ".yml", ".json")
KIND = "tasks"
Opens = Callable[[ClassifierPolicy, Sequence[str]], Classifier]
"""A classifier as a policy names it, and the labels that it may give, to what classifies."""
_WORDINGS = "unknown_wordings"


def embedded_names(kind: str) -> tuple[str, ...]:
    """Return the names of the embedded files of a kind (`tasks`), in alphabetical order."""
    names = (file.name for file in _folder(kind).iterdir() if file.is_file())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def named_document(kind: str, name: str, *, folder: Path, confined: bool) -> YamlDocument:
    """Return the embedded file `name` of a kind, else the user's file at that path.

    Relative paths start at `folder`; `confined` refuses whatever leaves it, links included. Raises
    DataError, with the nearest names, where there is nothing, PolicyError where it is unreadable.
    """
    known = embedded_names(kind)
    if name in known:
        return _embedded_document(kind, name)
    try:
        file = (folder / name).resolve()
        is_file = file.is_file()
    except (OSError, ValueError):  # ValueError: a NUL character in the name
        file, is_file = folder, False
    if confined and not file.is_relative_to(folder.resolve()):
        root = quoted(str(folder))
        raise DataError(f"{quoted(name)} leads out of {root}; expected a path inside it")
    if not is_file:
        looks_like_path = "/" in name or "\\" in name or name.endswith(_FILE_ENDINGS)
        what = "no such file" if looks_like_path else "neither an embedded name nor a file"
        hint = suggestion(name, known)
        # A confined root is a runner's: its absolute path tells the reader of a summary nothing.
        where = "below the root" if confined else f"in {quoted(str(folder.resolve()))}"
        raise DataError(f"{quoted(name)} is {what} {where}; {hint}")
    return load_yaml(read_yaml_file(file, name), name)


@cache  # a policy and the one that it is compared with name the same ones
def _embedded_document(kind: str, name: str) -> YamlDocument:
    text = _folder(kind).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return load_yaml(text, f"{kind}/{name}.yaml")


def _folder(kind: str) -> Traversable:
    return resources.files("fairgate").joinpath("data", kind)


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


@cache
def unknown_wordings() -> tuple[str, ...]:
    """Return every known wording of "unknown", the languages in alphabetical order."""
    found: list[str] = []
    for name in embedded_names(_WORDINGS):
        data = named_document(_WORDINGS, name, folder=Path(), confined=False).data
        wordings = data.get("wordings") if isinstance(data, dict) else None
        if not isinstance(wordings, list) or not all(isinstance(one, str) for one in wordings):
            raise DataError(f"{_WORDINGS}/{name}.yaml: expected `wordings`, a list of texts")
        found += wordings
    return tuple(dict.fromkeys(found))
