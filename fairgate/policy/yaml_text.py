"""Hardened YAML: text to plain data, with the line and column of everything in it.

YAML 1.2 core schema, one document, no tags, unique keys, few aliases; dates stay text and `yes` is
no boolean. The same loader reads policies, perturbation sets and tasks.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from fairgate.domain.errors import PolicyError, Problem
from fairgate.domain.wording import harmless, quoted, shown
from fairgate.io.regular import opened
from fairgate.io.stand_ins import BEGINNING, stand_in

OPEN_VALUE = "put-yours-here"
"""What `fairgate init` writes for a value that it cannot know; nothing that holds it is read."""
MAX_BYTES = 1 << 20
MAX_LINE = 100_000
"""Longest line in characters: the scanner's time is quadratic in the length of one token."""

_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""Named rather than the allowed ones, of which there are a million: compiling these takes 5 ms."""
MAX_ALIASES = 50
MAX_NODES = 10_000
"""Nodes of the document after every alias has been written out."""
MAX_DEPTH = 24

YamlPath = tuple[str | int, ...]
"""A path in a document: `("gates", 2, "metric")`."""
YamlFault = tuple[YamlPath, str]
"""A path and the fault there."""
Mark = tuple[int, int]
"""Line and column, both counted from 1."""

_INTEGER = re.compile(r"[-+]?[0-9]{1,100}|0o[0-7]{1,100}|0x[0-9a-fA-F]{1,100}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: Mapping[str, object] = (
    dict.fromkeys(("", "~", "null", "Null", "NULL"), None)
    | dict.fromkeys(("true", "True", "TRUE"), True)
    | dict.fromkeys(("false", "False", "FALSE"), False)
    | dict.fromkeys((".inf", ".Inf", ".INF", "+.inf"), float("inf"))
    | {"-.inf": float("-inf"), ".nan": float("nan")}
)
_PLAIN_WORDS = (
    ("'\\t' that cannot start", "a tab is used for indentation; YAML needs spaces"),
    ("mapping values are not allowed", "unexpected `: `; check the indentation, or quote the text"),
    (
        "could not find expected ':'",
        "a key without `: ` and value; check this line and the one above",
    ),
    ("expected <block end>", "this line's indentation does not fit the lines above it"),
    ("while scanning a quoted scalar", "a quoted text is not closed"),
    ("expected ',' or ']'", "a list in brackets is not closed: expected `,` or `]`"),
    ("expected ',' or '}'", "a mapping in braces is not closed: expected `,` or `}`"),
    ("that cannot start any token", "a value cannot start like this; put it in quotes"),
    ("found undefined tag", "tags (`!…`) are not accepted"),
)


@dataclass(slots=True)
class Node:
    """A value and where it stands; `entries` are its children with the mark of key or item."""

    mark: Mark
    value: Any = None
    entries: list[tuple[str | int, Mark, Node]] = field(default_factory=list)
    size: int = 1
    open: bool = True

    def marks(self, where: YamlPath = ()) -> Iterator[tuple[YamlPath, Mark]]:
        """Yield every path below with its mark; aliases are written out."""
        for name, mark, child in self.entries:
            yield (*where, name), mark
            yield from child.marks((*where, name))


class _StoppedError(Exception):
    """What follows would cost unbounded time or memory."""


class Builder:
    """Turns parser events into nodes; keeps defects instead of stopping at the first.

    Tags, repeated keys and unknown aliases are kept as problems and reading goes on; what would
    cost unbounded time or memory (depth, number of values, expansion of aliases) ends it.
    """

    def __init__(self, path: str) -> None:
        """Begin with nothing read; `path` is shown in problems."""
        self.path = path
        self.problems: list[Problem] = []
        self.root: Node | None = None
        self._anchors: dict[str, Node] = {}
        self._aliases = 0
        self._nodes = 0

    def read(self, text: str) -> bool:
        """Read to the end or to a defect that hides the rest; return whether all was read."""
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        events = YAML(typ="safe", pure=True).parse(text)
        try:
            for event in events:
                kind = type(event).__name__
                if kind == "DocumentStartEvent" and self.root is not None:
                    message = "a second document starts here (`---`); only one is read"
                    self._stop(_mark(event), message)
                if not kind.startswith(("Stream", "Document")):
                    self.root = self._node(event, events, 1)
        except _StoppedError:
            return False
        except MarkedYAMLError as error:
            raw = " ".join(str(part) for part in (error.context, error.problem) if part)
            words = next((plain for sign, plain in _PLAIN_WORDS if sign in raw), None)
            error_mark = error.problem_mark or error.context_mark
            if words == "a quoted text is not closed":
                error_mark = error.context_mark or error_mark
            mark = (
                (error_mark.line + 1, error_mark.column + 1) if error_mark is not None else (1, 1)
            )
            self._report(mark, f"not valid YAML: {words or quoted(raw)}")
            return False
        except (YAMLError, ValueError, RecursionError) as error:
            self._report((1, 1), f"this is not readable as YAML: {quoted(str(error))}")
            return False
        return True

    def _report(self, mark: Mark, message: str) -> None:
        self.problems.append(Problem(self.path, *mark, message))

    def _stop(self, mark: Mark, message: str) -> NoReturn:
        self._report(mark, message)
        raise _StoppedError

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        mark, kind = _mark(event), type(event).__name__
        if kind == "AliasEvent":
            return self._alias(str(event.anchor), mark)
        node = Node(mark)
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._stop(mark, f"more than {MAX_NODES:,} values, the limit; split the file")
        if getattr(event, "tag", None) is not None and str(event.tag) != "None":
            tag = quoted(str(event.tag))
            self._report(mark, f"tags are not accepted; found {tag}, write a plain value")
        if event.anchor is not None:
            self._anchors[str(event.anchor)] = node
        if kind == "ScalarEvent":
            text = str(event.value)
            bad = (c for c in text if c not in "\t\n\r" and (c < " " or "\ud800" <= c < "\ue000"))
            if (first := next(bad, None)) is not None:
                self._report(mark, f"the text holds the character U+{ord(first):04X}; remove it")
            if OPEN_VALUE in text:
                self._report(
                    mark,
                    f"found {quoted(text)}, which `fairgate init` left open; expected what your "
                    f"own system has: write it in place of `{OPEN_VALUE}`",
                )
            node.value = _plain(text) if event.style in (None, "") else text
        else:
            if depth > MAX_DEPTH:
                self._stop(mark, f"nested deeper than {MAX_DEPTH} levels, the limit")
            node.value = {} if kind.startswith("Mapping") else []
            self._fill(node, events, depth + 1)
        node.open = False
        return node

    def _fill(self, node: Node, events: Iterator[Any], depth: int) -> None:
        for event in events:
            if type(event).__name__.endswith("EndEvent"):
                return
            mark, child = _mark(event), self._node(event, events, depth)
            node.size += child.size
            if isinstance(node.value, list):
                node.entries.append((len(node.value), mark, child))
                node.value.append(child.value)
                continue
            key = self._key(child)
            child = self._node(next(events), events, depth)
            node.size += child.size
            if key is not None and key in node.value:
                first = next(position for name, position, _ in node.entries if name == key)
                self._report(
                    mark,
                    f"the key {quoted(key)} is already given in line {first[0]}; keep one of them",
                )
            elif key is not None:
                node.entries.append((key, mark, child))
                node.value[key] = child.value

    def _alias(self, name: str, mark: Mark) -> Node:
        self._aliases += 1
        target = self._anchors.get(name)
        if target is None:
            self._report(mark, f"the alias {quoted(name)} has no anchor before it")
            return Node(mark, open=False)
        if target.open:
            self._stop(mark, f"the alias {quoted(name)} contains itself; write the values out")
        if self._aliases > MAX_ALIASES:
            self._stop(mark, f"more than {MAX_ALIASES} aliases, the limit; write the values out")
        self._nodes += target.size
        if self._nodes > MAX_NODES:
            self._stop(mark, f"aliases expand to more than {MAX_NODES:,} values, the limit")
        return target

    def _key(self, node: Node) -> str | None:
        """Return a key that can be used; None, with a problem, for any other."""
        if isinstance(node.value, str) and node.value != "<<":
            return node.value
        if node.value == "<<":
            message = "merge keys (`<<`) are not part of YAML 1.2; repeat the keys"
        elif isinstance(node.value, dict | list):
            message = "a key must be plain text, not a list or mapping"
        else:
            message = f"a key must be text; found {shown(node.value)}, put it in quotes"
            if isinstance(node.value, int) and not isinstance(node.value, bool):
                message += "; if a comma separates decimals, write a point"
        self._report(node.mark, message)
        return None


def _mark(event: Any) -> Mark:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _plain(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 0 if text[:2] in {"0o", "0x"} else 10)
    return float(text) if _FLOAT.fullmatch(text) and len(text) <= 100 else text


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlDocument:
    """A YAML text's data (plain dicts, lists and scalars), its marks, and its defects."""

    path: str
    data: object
    marks: Mapping[YamlPath, Mark]
    problems: tuple[Problem, ...]
    complete: bool
    """False where reading stopped early: `data` then lacks everything that follows."""
    text: str = ""
    """As it was read."""

    def located(self, where: YamlPath) -> Mark:
        """Return the mark of the key or list item `where`, else of its nearest ancestor."""
        for end in range(len(where), 0, -1):
            mark = self.marks.get(where[:end])
            if mark is not None:
                return mark
        return self.marks.get((), (1, 1))

    def problem(self, where: YamlPath, message: str) -> Problem:
        """Return `message` as a problem at `where`."""
        line, column = self.located(where)
        return Problem(self.path, line, column, message)


def read_yaml_file(file: Path, path: str | None = None) -> str:
    """Return the text of a user's YAML file; raises PolicyError where it cannot be one.

    `path` is the name to show in messages. At most 1 MiB is read, whatever the file holds.
    """
    name = harmless(path or str(file))
    try:
        with opened(file) as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL character
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = f"the file cannot be read: {reason}; check the path and its permissions"
        raise PolicyError([Problem(name, 1, 1, message)]) from error
    if fault := stand_in(raw[:BEGINNING]):
        raise PolicyError([Problem(name, 1, 1, f"the file {fault}")])
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
        encoding = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = "the file is in UTF-16 or UTF-32"
        message = f"{encoding}; save the file with encoding UTF-8"
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
    root = builder.root or Node((1, 1))
    return YamlDocument(
        path=path,
        data=root.value,
        marks={(): root.mark, **dict(root.marks())},
        problems=tuple(builder.problems),
        complete=complete,
        text=text,
    )


def _unreadable(text: str, path: str) -> Problem | None:
    if len(text) > MAX_BYTES:
        message = "the text is larger than 1 MiB, the limit for files of this kind"
        return Problem(path, 1, 1, message)
    long = next((n for n, line in enumerate(text.split("\n"), 1) if len(line) > MAX_LINE), None)
    if long is not None:
        return Problem(path, long, 1, f"the line is longer than {MAX_LINE:,} characters, the limit")
    match = _FORBIDDEN.search(text, 1 if text.startswith("\ufeff") else 0)
    if match is None:
        return None
    line = text.count("\n", 0, match.start()) + 1
    column = match.start() - text.rfind("\n", 0, match.start())
    message = f"the character U+{ord(match.group()):04X} is not allowed in a text file; remove it"
    return Problem(path, line, column, message)
