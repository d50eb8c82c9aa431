"""What a job reports to its runner: annotations, outputs, the job summary.

Every text is harmless before it is written: a workflow command is a line of the log, and nobody but
this module may write one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairgate.domain.errors import StoreError
from fairgate.domain.wording import harmless

ANNOTATIONS_PER_KIND = 10
"""The runner drops further ones of a step silently."""
SUMMARY_BYTES = 1_000_000
"""The runner refuses a step's whole summary above 1 MiB."""
MESSAGE_CHARACTERS = 1000

Level = Literal["error", "warning", "notice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A message at a line of a file of the repository, or at none."""

    level: Level
    title: str
    message: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        """Return the workflow command."""
        place = {"file": self.file, "line": str(self.line)} if self.file else {}
        properties = ",".join(
            f"{name}={_property(value)}" for name, value in {**place, "title": self.title}.items()
        )
        return f"::{self.level} {properties}::{_data(self.message)}"


def annotation_lines(annotations: Sequence[Annotation]) -> Iterator[str]:
    """Yield what to print: at most ten commands of a kind, the rest as plain lines of the log."""
    count: dict[str, int] = {}
    for annotation in annotations:
        count[annotation.level] = count.get(annotation.level, 0) + 1
        if count[annotation.level] <= ANNOTATIONS_PER_KIND:
            yield str(annotation)
        else:
            yield f"fairgate: {annotation.level}: {_short(annotation.message)}"
    for level, number in count.items():
        if number > ANNOTATIONS_PER_KIND:
            more = number - ANNOTATIONS_PER_KIND
            yield f"fairgate: {more} more of kind {level} are in the log and the report"


def _short(text: str) -> str:
    return harmless(text[:MESSAGE_CHARACTERS])


def _data(text: str) -> str:
    return _short(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def write_outputs(path: str, outputs: Mapping[str, str]) -> None:
    """Append a step's outputs to the runner's file; no value can end its own block."""
    lines = []
    for name, value in outputs.items():
        delimiter = f"fairgate_{secrets.token_hex(16)}"
        if delimiter in value:
            raise StoreError(f"output {name!r}: the value holds its own delimiter; run again")
        lines.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    _append(path, "".join(lines))


def append_summary(path: str, text: str) -> None:
    """Append Markdown to the job summary; the caller keeps it within SUMMARY_BYTES."""
    _append(path, f"{text.rstrip()}\n\n")


def _append(path: str, text: str) -> None:
    if not path:
        return
    try:
        with Path(path).open("ab") as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError.of_os_error(
            error, path=path, option="the runner's own settings"
        ) from error
