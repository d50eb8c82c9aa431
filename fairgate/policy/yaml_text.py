"""Hardened YAML: text to plain data, with the line and column of everything in it.

YAML 1.2 core schema, one document, no tags, unique keys, few aliases; dates stay text and `yes` is
no boolean. The same loader reads policies, perturbation sets and tasks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairgate.domain.errors import PolicyError, Problem
from fairgate.domain.wording import harmless
from fairgate.policy.yaml_nodes import Builder, Mark, Where, marks_of

MAX_BYTES = 1 << 20
MAX_LINE = 100_000
"""Longest line in characters: the scanner's time is quadratic in the length of one token."""

_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""Named rather than the allowed ones, of which there are a million: compiling these takes 5 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlDocument:
    """A YAML text's data (plain dicts, lists and scalars), its places, and its defects."""

    path: str
    data: object
    marks: Mapping[Where, Mark]
    problems: tuple[Problem, ...]
    complete: bool
    """False where reading stopped early: `data` then lacks everything that follows."""
    text: str = ""
    """As it was read."""

    def located(self, where: Where) -> Mark:
        """Return the mark of the key or list item `where`, else of its nearest ancestor."""
        for end in range(len(where), 0, -1):
            mark = self.marks.get(where[:end])
            if mark is not None:
                return mark
        return self.marks.get((), (1, 1))

    def problem(self, where: Where, message: str) -> Problem:
        """Return `message` as a problem at `where`."""
        line, column = self.located(where)
        return Problem(self.path, line, column, message)


def read_yaml_file(file: Path, path: str | None = None) -> str:
    """Return the text of a user's YAML file; raises PolicyError where it cannot be one.

    `path` is the name to show in messages. At most 1 MiB is read, whatever the file holds.
    """
    name = harmless(path or str(file))
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL character
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = f"the file cannot be read: {reason}; check the path and its permissions"
        raise PolicyError([Problem(name, 1, 1, message)]) from error
    return decode_yaml(raw, name)


def decode_yaml(raw: bytes, path: str) -> str:
    """Return `raw` as text; raises PolicyError where it is too large or not UTF-8."""
    if len(raw) > MAX_BYTES:
        message = "the file is larger than 1 MiB, the limit for files of this kind; split it"
        raise PolicyError([Problem(path, 1, 1, message)])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8-sig", "replace")) + 1
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file with encoding UTF-8"
        raise PolicyError([Problem(path, line, column, message)]) from error


def load_yaml(text: str, path: str) -> YamlDocument:
    """Return the data in `text`, with every defect found; raises nothing.

    Costs time linear in the text and at most 10,000 nodes of memory, for hostile texts too.
    """
    path = harmless(path)
    early = _unreadable(text, path)
    if early is not None:
        return YamlDocument(path=path, data=None, marks={}, problems=(early,), complete=False)
    builder = Builder(path)
    complete = builder.read(text.removeprefix("\ufeff"))
    root = builder.root
    marks = dict(marks_of(root)) if root is not None else {}
    return YamlDocument(
        path=path,
        data=root.value if root is not None else None,
        marks=marks,
        problems=tuple(builder.problems),
        complete=complete,
        text=text,
    )


def _unreadable(text: str, path: str) -> Problem | None:
    if len(text) > MAX_BYTES:
        return Problem(
            path, 1, 1, "the text is larger than 1 MiB, the limit for files of this kind"
        )
    long = next((n for n, line in enumerate(text.split("\n"), 1) if len(line) > MAX_LINE), None)
    if long is not None:
        return Problem(path, long, 1, f"the line is longer than {MAX_LINE:,} characters, the limit")
    found = _FORBIDDEN.search(text, 1 if text.startswith("\ufeff") else 0)
    if found is None:
        return None
    line = text.count("\n", 0, found.start()) + 1
    column = found.start() - text.rfind("\n", 0, found.start())
    name = f"U+{ord(found.group()):04X}"
    return Problem(
        path, line, column, f"the character {name} is not allowed in a text file; remove it"
    )
