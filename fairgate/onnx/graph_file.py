"""Reads an ONNX file field by field, without loading the graph: nodes, outputs, places of weights.

So neither the `onnx` package nor memory for the weights inside the file is needed: a run whose
results are all stored asks for nothing else. Field numbers are those of onnx.proto3,
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_NUMBER, _BYTES, _GROUP, _GROUP_END = 0, 2, 3, 4
_FIXED = {1: 8, 5: 4}
_LONGEST_VARINT = 10
_TAG = 0xFFFFFFFF
"""Bits of a tag that ONNX Runtime reads; it drops what is above."""

Children = Mapping[str, Mapping[int, str]]
"""For each kind of message: the fields that are followed, and the kind found there."""
_GRAPH: dict[str, dict[int, str]] = {"model": {7: "graph"}}
_NODE, _INITIALIZER = 1, 5
_INPUT, _OUTPUT, _OPERATOR, _ATTRIBUTE = 1, 2, 4, 5
_TENSOR_NAME, _TENSOR_FORMAT = 8, 2
_ATTRIBUTE_NAME, _ATTRIBUTE_NUMBER, _ATTRIBUTE_TENSOR = 1, 3, 5
_OUTPUTS: dict[str, dict[int, str]] = {"model": {7: "graph"}, "graph": {12: "output"}}
_NAME = 1
_CHILDREN: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
_KEY, _VALUE = 1, 2


class Part(NamedTuple):
    """One field of a message: its number and where it is in the file."""

    number: int
    start: int
    """Of the field's own head."""
    begin: int
    """Of the value."""
    end: int
    sized: bool
    """Whether it has a length of its own, as messages and bytes have; else it is none of them."""


class DamagedGraphError(ValueError):
    """The file is no ONNX graph, or only a part of one."""


@contextmanager
def mapped(graph: Path) -> Iterator[mmap.mmap]:
    """Map a file into memory. Raises DamagedGraphError where it is empty, and OSError."""
    with graph.open("rb") as stream:
        try:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise DamagedGraphError("the file is empty") from error
        with content:
            yield content


def messages(
    content: mmap.mmap, children: Children, leaf: str, root: str = "model"
) -> Iterator[tuple[int, int]]:
    """Yield begin and end of every message of the kind `leaf`, at any depth.

    Raises DamagedGraphError.
    """
    waiting = [(root, 0, len(content))]
    while waiting:
        kind, start, end = waiting.pop()
        if kind == leaf:
            yield start, end
            continue
        followed = children[kind]
        waiting += [
            (followed[field], begin, stop)
            for field, begin, stop in fields(content, start, end)
            if field in followed
        ]


def fields(content: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, begin and end of each field of a message that has a length of its own."""
    for kind, wire, begin, stop in _all_fields(content, start, end):
        if wire == _BYTES:
            yield kind, begin, stop


def parts(content: mmap.mmap, start: int, end: int) -> Iterator[Part]:
    """Yield every field of a message, in order, without a gap. Raises DamagedGraphError."""
    place = start
    for kind, wire, begin, stop in _all_fields(content, start, end):
        yield Part(kind, place, begin, stop, wire == _BYTES)
        place = stop


def encoded(field: int, value: bytes) -> bytes:
    """Return a field with a length of its own, as the encoding has it."""
    return _as_varint(field << 3 | _BYTES) + _as_varint(len(value)) + value


def encoded_number(field: int, value: int) -> bytes:
    """Return a field that holds a whole number from 0 on, as the encoding has it."""
    return _as_varint(field << 3 | _NUMBER) + _as_varint(value)


def number(content: mmap.mmap, start: int, end: int, wanted: int) -> int:
    """Return the whole number in a field of a message; 0 without it, as protobuf has it."""
    found = 0
    for kind, wire, begin, _ in _all_fields(content, start, end):
        if kind == wanted and wire == _NUMBER:
            found, _ = _varint(content, begin, end)
    return found


def _all_fields(content: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    place = start
    while place < end:
        tag, place = _varint(content, place, end)
        kind, wire = (tag & _TAG) >> 3, tag & 7
        if wire == _GROUP:
            begin, place = place, _after_group(content, place, end, kind)
        else:
            begin, place = _value(content, place, end, wire)
        yield kind, wire, begin, place


def _value(content: mmap.mmap, place: int, end: int, wire: int) -> tuple[int, int]:
    """Return begin and end of the value of a field that is no group."""
    begin = place
    if wire == _NUMBER:
        return begin, _varint(content, place, end)[1]
    if wire == _BYTES:
        size, begin = _varint(content, place, end)
    elif wire in _FIXED:
        size = _FIXED[wire]
    else:
        raise DamagedGraphError(f"byte {place}: no field of an ONNX graph begins here")
    if size > end - begin:
        raise DamagedGraphError(f"byte {begin}: {size} bytes announced, {end - begin} left")
    return begin, begin + size


def _after_group(content: mmap.mmap, place: int, end: int, kind: int) -> int:
    """Return where a group ends. ONNX has none, so that every reader passes one over."""
    opened = [kind]
    while opened:
        tag, place = _varint(content, place, end)
        kind, wire = (tag & _TAG) >> 3, tag & 7
        if wire == _GROUP:
            opened.append(kind)
        elif wire != _GROUP_END:
            _, place = _value(content, place, end, wire)
        elif opened.pop() != kind:
            raise DamagedGraphError(f"byte {place}: a group ends that did not begin")
    return place


def _varint(content: mmap.mmap, place: int, end: int) -> tuple[int, int]:
    if place < end and content[place] < 0x80:  # most are one byte
        return content[place], place + 1
    value = 0
    for step in range(_LONGEST_VARINT):
        if place + step >= end:
            break
        byte = content[place + step]
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value, place + step + 1
    raise DamagedGraphError(f"byte {place}: a number does not end")


def _as_varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


@dataclass(slots=True)
class Node:
    """An operator with its inputs and outputs by name."""

    operator: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    format: int | None = None
    """The number format that a `Cast` casts to, or of a `Constant`'s tensor."""


@dataclass(slots=True)
class Graph:
    """The main graph of a model, without its subgraphs."""

    nodes: list[Node] = field(default_factory=list)
    formats: dict[str, int] = field(default_factory=dict)
    """Number formats of the initializers, by name."""


def read_graph(file: Path) -> Graph:
    """Return a graph's nodes. Raises DamagedGraphError, and OSError if the file is unreadable."""
    graph = Graph()
    with mapped(file) as content:
        for start, end in messages(content, _GRAPH, "graph"):
            for kind, begin, stop in fields(content, start, end):
                if kind == _NODE:
                    graph.nodes.append(_node(content, begin, stop))
                elif kind == _INITIALIZER:
                    graph.formats[_text(content, begin, stop, _TENSOR_NAME)] = number(
                        content, begin, stop, _TENSOR_FORMAT
                    )
    return graph


def _node(content: mmap.mmap, start: int, end: int) -> Node:
    node = Node()
    for kind, begin, stop in fields(content, start, end):
        if kind == _INPUT:
            node.inputs.append(_decoded(content, begin, stop))
        elif kind == _OUTPUT:
            node.outputs.append(_decoded(content, begin, stop))
        elif kind == _OPERATOR:
            node.operator = _decoded(content, begin, stop)
        elif kind == _ATTRIBUTE:
            for format_ in _formats(content, begin, stop):
                node.format = format_
    return node


def _formats(content: mmap.mmap, start: int, end: int) -> Iterator[int]:
    name = _text(content, start, end, _ATTRIBUTE_NAME)
    if name == "to":
        yield number(content, start, end, _ATTRIBUTE_NUMBER)
    elif name == "value":
        for kind, begin, stop in fields(content, start, end):
            if kind == _ATTRIBUTE_TENSOR:
                yield number(content, begin, stop, _TENSOR_FORMAT)


def _text(content: mmap.mmap, start: int, end: int, wanted: int) -> str:
    found = (
        _decoded(content, begin, stop)
        for kind, begin, stop in fields(content, start, end)
        if kind == wanted
    )
    return next(found, "")


def _decoded(content: mmap.mmap, begin: int, stop: int) -> str:
    return content[begin:stop].decode("utf-8", "replace")


def output_names(graph: Path) -> frozenset[str]:
    """Return the names of the graph's outputs.

    Raises DamagedGraphError, and OSError where the file cannot be read.
    """
    with mapped(graph) as content:
        return frozenset(
            content[begin:stop].decode("utf-8", "replace")
            for message in messages(content, _OUTPUTS, "output")
            for field, begin, stop in fields(content, *message)
            if field == _NAME
        )


def external_locations(graph: Path) -> frozenset[str]:
    """Return every `location` that a tensor of the graph or of its subgraphs names, as written.

    Covers initializers, sparse initializers, attributes, functions and subgraphs at any depth.
    Raises DamagedGraphError, and OSError where the file cannot be read.
    """
    with mapped(graph) as content:
        entries = messages(content, _CHILDREN, "entry")
        return frozenset(name for entry in entries for name in _location(content, *entry))


def _location(content: mmap.mmap, start: int, end: int) -> Iterator[str]:
    pairs = {field: content[begin:stop] for field, begin, stop in fields(content, start, end)}
    if pairs.get(_KEY) == b"location":
        yield pairs.get(_VALUE, b"").decode("utf-8", "surrogateescape")
