"""Which files an ONNX graph names as the place of its weights (`external_data`).

Reads the protobuf encoding itself, so that neither the `onnx` package nor memory for the weights
inside the graph is needed: a run whose results are all stored asks for nothing else.
Field numbers are those of onnx.proto3, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

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
"""For each kind of message: its fields that lead to tensors, and the kind found there."""
_KEY, _VALUE = 1, 2
_BYTES = 2
_FIXED = {1: 8, 5: 4}
_LONGEST_VARINT = 10


class DamagedGraphError(ValueError):
    """The file is no ONNX graph, or only a part of one."""


def external_locations(graph: Path) -> frozenset[str]:
    """Return every `location` that a tensor of the graph or of its subgraphs names, as written.

    Covers initializers, sparse initializers, attributes, functions and subgraphs at any depth.
    Raises DamagedGraphError, and OSError where the file cannot be read.
    """
    with graph.open("rb") as stream:
        try:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise DamagedGraphError("the file is empty") from error
        with content:
            return frozenset(_locations(content))


def _locations(content: mmap.mmap) -> Iterator[str]:
    waiting = [("model", 0, len(content))]
    while waiting:
        kind, start, end = waiting.pop()
        if kind == "entry":
            yield from _location(content, start, end)
            continue
        children = _CHILDREN[kind]
        waiting += [
            (children[field], begin, stop)
            for field, begin, stop in _fields(content, start, end)
            if field in children
        ]


def _location(content: mmap.mmap, start: int, end: int) -> Iterator[str]:
    pairs = {field: content[begin:stop] for field, begin, stop in _fields(content, start, end)}
    if pairs.get(_KEY) == b"location":
        yield pairs.get(_VALUE, b"").decode("utf-8", "surrogateescape")


def _fields(content: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, begin and end of each field of a message that has a length of its own."""
    place = start
    while place < end:
        tag, place = _varint(content, place, end)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            _, place = _varint(content, place, end)
            continue
        if wire == _BYTES:
            size, place = _varint(content, place, end)
        elif wire in _FIXED:
            size = _FIXED[wire]
        else:
            raise DamagedGraphError(f"byte {place}: no field of an ONNX graph begins here")
        if size > end - place:
            raise DamagedGraphError(f"byte {place}: {size} bytes announced, {end - place} left")
        if wire == _BYTES:
            yield number, place, place + size
        place += size


def _varint(content: mmap.mmap, place: int, end: int) -> tuple[int, int]:
    value = 0
    for step in range(_LONGEST_VARINT):
        if place + step >= end:
            break
        byte = content[place + step]
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value, place + step + 1
    raise DamagedGraphError(f"byte {place}: a number does not end")
