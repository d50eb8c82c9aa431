"""Spans in OTLP as JSON: an object with `resourceSpans`, or a line each as collectors write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairgate.domain.errors import DataError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.io.json_file import read_whole
from fairgate.io.lines import capped

_MOST_STEPS = 12
_ERROR = (2, "STATUS_CODE_ERROR")
Tree = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One step of a trace."""

    id: str
    parent: str
    """Empty where there is none."""
    start: int
    """Nanoseconds; 0 where it is not known."""
    failed: bool
    tree: Tree = field(default_factory=dict)
    """Attributes by the parts of their names; entries of lists by their positions."""


def read_spans(path: str) -> dict[str, dict[str, Span]]:
    """Return the spans of each trace by id, in the order of the file.

    Raises DataError with the place for what is no OTLP-JSON, or was cut off.
    """
    traces: dict[str, dict[str, Span]] = {}
    for place, value in _exports(path):
        for span in _objects(value, place):
            trace, found = _part(span, "traceId"), _span(span, place)
            if not isinstance(trace, str) or not trace or not found.id:
                raise DataError(f"{place}: a span has no `traceId` or `spanId`; expected OTLP-JSON")
            # An exporter that tried again wrote the same span twice.
            traces.setdefault(trace, {}).setdefault(found.id, found)
    return traces


def at(tree: Any, name: str) -> Any:
    """Return the attribute of that dotted name; None where there is none."""
    for step in name.split("."):
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def entries(tree: Any) -> list[Any]:
    """Return what stands at 0, 1, 2, … in their order."""
    named = tree.items() if isinstance(tree, dict) else ()
    numbered = [(int(n), entry) for n, entry in named if n.isdecimal() and len(n) <= 6]
    return [entry for _, entry in sorted(numbered, key=lambda pair: pair[0])]


def _exports(path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each JSON object of the file, with its place."""
    raw = read_whole(Path(path))
    lines = [(n, line) for n, line in enumerate(raw.split(b"\n"), 1) if line.strip()]
    if not lines:
        raise DataError(f"{path}: is empty; expected an object with `resourceSpans`")
    whole = [(1, raw)] if _is_begun(lines[0][1]) else lines
    for number, text in whole:
        try:
            value = read_json(text)
        except JsonError as error:
            line = number + max(error.line, 1) - 1
            raise DataError(
                f"{path}:{line}:{max(error.column, 1)}: {error}; expected OTLP-JSON, whole: an "
                "export that was cut off has to be written again"
            ) from error
        if not isinstance(value, Mapping) or _part(value, "resourceSpans") is None:
            raise DataError(
                f"{path}:{number}: no object with `resourceSpans`; expected OTLP-JSON as "
                "OpenTelemetry's collector writes it"
            )
        yield f"{path}:{number}", value


def _is_begun(line: bytes) -> bool:
    """Return whether a line is only the beginning of a value, which goes on below."""
    try:
        read_json(line)
    except JsonError:
        return line.strip() in (b"{", b"[") or not line.rstrip().endswith(b"}")
    return False


def _objects(value: Mapping[str, Any], place: str) -> Iterator[Mapping[str, Any]]:
    for resource in _list(value, "resourceSpans", place):
        scopes = [
            *_list(resource, "scopeSpans", place),
            *_list(resource, "instrumentationLibrarySpans", place),
        ]
        for scope in scopes:
            yield from _list(scope, "spans", place)


def _span(span: Mapping[str, Any], place: str) -> Span:
    tree: Tree = {}
    for attribute in _list(span, "attributes", place):
        name = attribute.get("key")
        if isinstance(name, str):
            _grow(tree, name, _value(attribute.get("value")))
    status = span.get("status")
    return Span(
        id=str(_part(span, "spanId") or ""),
        parent=str(_part(span, "parentSpanId") or ""),
        start=_nanoseconds(_part(span, "startTimeUnixNano")),
        failed=isinstance(status, Mapping) and status.get("code") in _ERROR,
        tree=tree,
    )


def _part(value: Mapping[str, Any], name: str) -> Any:
    """Return a member by its name in JSON, or as the protocol's own definition writes it."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return value.get(name, value.get(snake))


def _list(value: Mapping[str, Any], name: str, place: str) -> list[Mapping[str, Any]]:
    found = _part(value, name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise DataError(f"{place}: `{name}` is {capped(found)}; expected a list of objects")
    return found


def _nanoseconds(value: Any) -> int:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 20 else 0


def _value(value: Any) -> Any:
    """Return an attribute's value: OTLP names its type beside it."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    ((kind, content),) = value.items()
    match kind.replace("_v", "V"):
        case "arrayValue":
            inner = content.get("values") if isinstance(content, Mapping) else None
            entries = inner if isinstance(inner, list) else []
            return {str(n): _value(each) for n, each in enumerate(entries)}
        case "kvlistValue":
            inner = content.get("values") if isinstance(content, Mapping) else None
            tree: Tree = {}
            for each in inner if isinstance(inner, list) else []:
                if isinstance(each, Mapping) and isinstance(each.get("key"), str):
                    _grow(tree, each["key"], _value(each.get("value")))
            return tree
        case "intValue":  # 64 bits: a text in JSON
            is_whole = isinstance(content, str) and content.removeprefix("-").isdecimal()
            return int(content) if is_whole and len(content) <= 20 else content
        case "stringValue" | "doubleValue" | "boolValue":
            return content
    return None


def _grow(tree: Tree, name: str, value: Any) -> None:
    """Put a value at the place that its dotted name says; what is there already stays."""
    *steps, last = name.split(".")[:_MOST_STEPS]
    for step in steps:
        inner = tree.setdefault(step, {})
        if not isinstance(inner, dict):
            return
        tree = inner
    known = tree.setdefault(last, value)
    if known is not value and isinstance(known, dict) and isinstance(value, dict):
        known |= value
