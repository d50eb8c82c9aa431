"""Hardened YAML: text to plain data, with the line and column of everything in it.

YAML 1.2 core schema, one document, no tags, unique keys, few aliases; dates stay text and `yes` is
no boolean. The same loader reads policies, perturbation sets and tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairgate.domain.errors import PolicyError, Problem
from fairgate.domain.wording import harmless, quoted, shown

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

Where = tuple[str | int, ...]
"""A place in a document: `("gates", 2, "metric")`."""
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
    pending: tuple[str | None, Mark] | None = None
    open: bool = True


def marks_of(node: Node, where: Where = ()) -> Iterator[tuple[Where, Mark]]:
    """Yield every place below `node` with its mark; aliases are written out."""
    if not where:
        yield (), node.mark
    for name, mark, child in node.entries:
        place = (*where, name)
        yield place, mark
        yield from marks_of(child, place)


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
        self._stack: list[Node] = []
        self._anchors: dict[str, Node] = {}
        self._aliases = 0
        self._nodes = 0
        self._documents = 0
        self._stopped = False

    def read(self, text: str) -> bool:
        """Read to the end or to a defect that hides the rest; return whether all was read."""
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        try:
            for event in YAML(typ="safe", pure=True).parse(text):
                self._take(event)
                if self._stopped:
                    return False
        except MarkedYAMLError as error:
            self._syntax(error)
            return False
        except (YAMLError, ValueError, RecursionError) as error:
            self._report((1, 1), f"this is not readable as YAML: {quoted(str(error))}")
            return False
        return True

    def _syntax(self, error: Any) -> None:
        raw = " ".join(str(part) for part in (error.context, error.problem) if part)
        words = next((plain for sign, plain in _PLAIN_WORDS if sign in raw), None)
        mark = error.problem_mark or error.context_mark
        at = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        if words == "a quoted text is not closed" and error.context_mark is not None:
            at = (error.context_mark.line + 1, error.context_mark.column + 1)
        self._report(at, f"not valid YAML: {words or quoted(raw)}")

    def _report(self, mark: Mark, message: str) -> None:
        self.problems.append(Problem(self.path, *mark, message))

    def _stop(self, mark: Mark, message: str) -> None:
        self._report(mark, message)
        self._stopped = True

    def _take(self, event: Any) -> None:
        mark = (event.start_mark.line + 1, event.start_mark.column + 1)
        match type(event).__name__:
            case "DocumentStartEvent":
                self._documents += 1
                if self._documents > 1:
                    self._stop(mark, "a second document starts here (`---`); only one is read")
            case "ScalarEvent":
                self._add(event, Node(mark, value=self._scalar(event, mark), open=False))
            case "MappingStartEvent" | "SequenceStartEvent" as kind:
                node = Node(mark, value={} if kind.startswith("Mapping") else [])
                self._register(event, node)
                self._stack.append(node)
                if len(self._stack) > MAX_DEPTH:
                    self._stop(mark, f"nested deeper than {MAX_DEPTH} levels, the limit")
            case "MappingEndEvent" | "SequenceEndEvent":
                node = self._stack.pop()
                node.open = False
                self._attach(node, node.mark)
            case "AliasEvent":
                self._alias(event, mark)

    def _scalar(self, event: Any, mark: Mark) -> object:
        text = str(event.value)
        bad = next(
            (c for c in text if c not in "\t\n\r" and (c < " " or "\ud800" <= c < "\ue000")), None
        )
        if bad is not None:
            self._report(mark, f"the text holds the character U+{ord(bad):04X}; remove it")
        return _plain(text) if event.style is None or event.style == "" else text

    def _register(self, event: Any, node: Node) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._stop(node.mark, f"more than {MAX_NODES:,} values, the limit; split the file")
        if getattr(event, "tag", None) is not None and str(event.tag) != "None":
            tag = quoted(str(event.tag))
            self._report(node.mark, f"tags are not accepted; found {tag}, write a plain value")
        if event.anchor is not None:
            self._anchors[str(event.anchor)] = node

    def _add(self, event: Any, node: Node) -> None:
        self._register(event, node)
        self._attach(node, node.mark)

    def _alias(self, event: Any, mark: Mark) -> None:
        name = quoted(str(event.anchor))
        self._aliases += 1
        target = self._anchors.get(str(event.anchor))
        if target is None:
            self._report(mark, f"the alias {name} has no anchor before it")
            self._attach(Node(mark, open=False), mark)
        elif target.open:
            self._stop(mark, f"the alias {name} contains itself; write the values out")
        elif self._aliases > MAX_ALIASES:
            self._stop(mark, f"more than {MAX_ALIASES} aliases, the limit; write the values out")
        else:
            self._nodes += target.size
            if self._nodes > MAX_NODES:
                self._stop(mark, f"aliases expand to more than {MAX_NODES:,} values, the limit")
            self._attach(target, mark)

    def _attach(self, node: Node, mark: Mark) -> None:
        if not self._stack:
            self.root = node
            return
        parent = self._stack[-1]
        parent.size += node.size
        if isinstance(parent.value, list):
            parent.entries.append((len(parent.value), mark, node))
            parent.value.append(node.value)
        elif parent.pending is None:
            parent.pending = (self._key(node), mark)
        else:
            key, at = parent.pending
            parent.pending = None
            if key is None:
                return
            if key in parent.value:
                first = next(place for name, place, _ in parent.entries if name == key)
                self._report(at, f"the key {quoted(key)} is already given in line {first[0]}")
            else:
                parent.entries.append((key, at, node))
                parent.value[key] = node.value

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


def _plain(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 0 if text[:2] in {"0o", "0x"} else 10)
    return float(text) if _FLOAT.fullmatch(text) and len(text) <= 100 else text


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
