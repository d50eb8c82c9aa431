"""Reads an ONNX file without the weights inside it: offsets of weights, outputs, and the graph.

The package `onnx` copies all that is in a file, weights included. Here a file is mapped and walked
field by field: a run whose results are all stored needs only the names, and neither `onnx` nor
memory. A graph that is changed is read with its weights left in the file, named as external data:
its changed copy is as small as its nodes are many, and a session that opens it maps the weights
from the graph's own file (https://onnx.ai/onnx/repo-docs/ExternalData.html). Field numbers are
those of onnx.proto3, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from fairgate.io.regular import opened

_NUMBER, _BYTES, _GROUP, _GROUP_END = 0, 2, 3, 4
_FIXED = {1: 8, 5: 4}
_LONGEST_VARINT = 10
_TAG = 0xFFFFFFFF
"""Bits of a tag that ONNX Runtime reads; it drops what is above."""

_MODEL_GRAPH, _INITIALIZER, _RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 7, 5, 9, 13, 14
_NAME = _KEY = 1
_VALUE = 2
_OUTPUTS: dict[str, dict[int, str]] = {"model": {_MODEL_GRAPH: "graph"}, "graph": {12: "output"}}
_ENTRIES: dict[str, dict[int, str]] = {
    "model": {_MODEL_GRAPH: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", _INITIALIZER: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {_EXTERNAL_DATA: "entry"},
}
"""For each kind of message: the fields that are followed, and the kind found there."""
_OTHER_VALUES = frozenset({3, 4, 5, 6, 7, 10, 11, _EXTERNAL_DATA, _DATA_LOCATION})
"""Fields of a TensorProto that hold values or parts of them in another way."""
_EXTERNAL = 1
_LOCATION = b"location"
"""The key of an external tensor's file."""
_SMALL = 2**16
"""Bytes: larger nodes hold weights, which are not to be read."""
_LEAST = 1024
"""Bytes: what is smaller stays, since shapes and scales are read where the graph is changed."""


class Field(NamedTuple):
    """One field of a message: its number and where it is in the file."""

    number: int
    start: int
    """Of the field's own head."""
    begin: int
    """Of the value."""
    end: int
    wire: int
    """How the value is encoded: messages and bytes have a length of their own."""


class DamagedGraphError(ValueError):
    """The file is no ONNX graph, or only a part of one."""


@contextmanager
def _mapped(graph: Path) -> Iterator[mmap.mmap]:
    with opened(graph) as stream:
        try:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise DamagedGraphError("the file is empty") from error
        with content:
            yield content


def _messages(
    content: mmap.mmap, children: Mapping[str, Mapping[int, str]], leaf: str, *, holds: bytes = b""
) -> Iterator[dict[int, bytes]]:
    """Yield what stands in every message of the kind `leaf`, at any depth, by field number.

    Of the many small nodes only those are walked that hold the bytes `holds`, as all of these do.
    """
    waiting = [("model", 0, len(content))]
    while waiting:
        kind, start, end = waiting.pop()
        if kind == "node" and end - start < _SMALL and content.find(holds, start, end) < 0:
            continue
        fields = [entry for entry in _fields(content, start, end) if entry.wire == _BYTES]
        if kind == leaf:
            yield {entry.number: content[entry.begin : entry.end] for entry in fields}
            continue
        followed = children[kind]
        waiting += [
            (followed[entry.number], entry.begin, entry.end)
            for entry in fields
            if entry.number in followed
        ]


def _fields(content: mmap.mmap, start: int, end: int) -> Iterator[Field]:
    """Yield every field of a message, in order, without a gap. Raises DamagedGraphError.

    ONNX has no groups, so every reader passes one over, as one field.
    """
    position = start
    while position < end:
        head, opened = position, list[int]()
        while True:
            tag, begin = _varint(content, position, end)
            number, wire = (tag & _TAG) >> 3, tag & 7
            position = begin
            if wire == _GROUP:
                opened.append(number)
            elif wire != _GROUP_END:
                begin, position = _value(content, position, end, wire)
            elif not opened or opened.pop() != number:
                raise DamagedGraphError(f"byte {position}: a group ends that did not begin")
            if not opened:
                break
        yield Field(number, head, begin, position, wire)


def _value(content: mmap.mmap, position: int, end: int, wire: int) -> tuple[int, int]:
    """Return begin and end of the value of a field that is no group."""
    begin = position
    if wire == _NUMBER:
        return begin, _varint(content, position, end)[1]
    if wire == _BYTES:
        size, begin = _varint(content, position, end)
    elif wire in _FIXED:
        size = _FIXED[wire]
    else:
        raise DamagedGraphError(f"byte {position}: no field of an ONNX graph begins here")
    if size > end - begin:
        raise DamagedGraphError(f"byte {begin}: {size} bytes announced, {end - begin} left")
    return begin, begin + size


def _varint(content: mmap.mmap, position: int, end: int) -> tuple[int, int]:
    if position < end and content[position] < 0x80:  # most are one byte
        return content[position], position + 1
    value = 0
    for step in range(min(_LONGEST_VARINT, end - position)):
        byte = content[position + step]
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value, position + step + 1
    raise DamagedGraphError(f"byte {position}: a number does not end")


def _encoded(field: int, value: bytes) -> bytes:
    """Return a field with a length of its own, as the encoding has it."""
    return _as_varint(field << 3 | _BYTES) + _as_varint(len(value)) + value


def _as_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def output_names(graph: Path) -> frozenset[str]:
    """Return the names of the graph's outputs.

    Raises DamagedGraphError, and OSError where the file cannot be read.
    """
    with _mapped(graph) as content:
        outputs = _messages(content, _OUTPUTS, "output")
        return frozenset(output.get(_NAME, b"").decode("utf-8", "replace") for output in outputs)


def external_locations(graph: Path) -> frozenset[str]:
    """Return every `location` that a tensor of the graph or of its subgraphs names, as written.

    Covers initializers, sparse initializers, attributes, functions and subgraphs at any depth.
    Raises DamagedGraphError, and OSError where the file cannot be read.
    """
    with _mapped(graph) as content:
        return frozenset(
            entry.get(_VALUE, b"").decode("utf-8", "surrogateescape")
            for entry in _messages(content, _ENTRIES, "entry", holds=_LOCATION)
            if entry.get(_KEY) == _LOCATION
        )


def read_structure(graph: Path) -> tuple[bytes, Path] | None:
    """Return a graph whose weights are references to their offsets in its file, and its folder.

    None where they cannot be left in it: where the graph has external data already (they are
    looked up beside the link to the file, not beside the file), is written in several parts, or
    has a name that is no Unicode.
    The file must not change while a session of the structure runs, as with external data.
    Raises DamagedGraphError, and OSError where the file cannot be read.
    """
    file = graph.resolve()  # external data must not lie outside the folder that links to them
    try:
        location = file.name.encode()
    except UnicodeEncodeError:
        return None
    if external_locations(file):
        return None
    with _mapped(file) as content:
        whole = _fields(content, 0, len(content))
        if sum(part.wire == _BYTES and part.number == _MODEL_GRAPH for part in whole) != 1:
            return None
        in_tensor = partial(_tensor, content, location)
        in_graph = partial(_replaced, content, _INITIALIZER, in_tensor)
        return _replaced(content, _MODEL_GRAPH, in_graph, 0, len(content)), file.parent


def _replaced(
    content: mmap.mmap, number: int, change: Callable[[int, int], bytes], start: int, end: int
) -> bytes:
    """Return a message with other content in all its fields of one number."""
    return b"".join(
        _encoded(number, change(part.begin, part.end))
        if part.wire == _BYTES and part.number == number
        else content[part.start : part.end]
        for part in _fields(content, start, end)
    )


def _tensor(content: mmap.mmap, location: bytes, start: int, end: int) -> bytes:
    """Return a tensor with a reference in place of its values where these are worth it."""
    fields = list(_fields(content, start, end))
    numbers = [part.number for part in fields]
    raw = next((part for part in fields if part.wire == _BYTES and part.number == _RAW_DATA), None)
    plain = numbers.count(_RAW_DATA) == 1 and _OTHER_VALUES.isdisjoint(numbers)
    if raw is None or not plain or raw.end - raw.begin < _LEAST:
        return content[start:end]
    entries = {
        _LOCATION: location,
        b"offset": str(raw.begin).encode(),
        b"length": str(raw.end - raw.begin).encode(),
    }
    others = [content[part.start : part.end] for part in fields if part is not raw]
    references = [
        _encoded(_EXTERNAL_DATA, _encoded(_KEY, key) + _encoded(_VALUE, value))
        for key, value in entries.items()
    ]
    is_external = _as_varint(_DATA_LOCATION << 3 | _NUMBER) + _as_varint(_EXTERNAL)
    return b"".join([*others, *references, is_external])


def load_structure(graph: Path) -> tuple[Any, Path | None]:
    """Return a graph as `onnx.ModelProto`, and the folder of its references.

    None: the graph's own folder; the graph then holds its weights, but for those in other files.
    Raises whatever the package `onnx` raises for a damaged file, and where it is missing.
    """
    import onnx

    try:
        structure = read_structure(graph)
    except (DamagedGraphError, OSError):
        structure = None
    if structure is None:
        return onnx.load(str(graph), load_external_data=False), None
    content, folder = structure
    return onnx.load_model_from_string(content), folder
