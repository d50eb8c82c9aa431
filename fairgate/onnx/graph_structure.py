"""Reads an ONNX graph without its weights: these stay in the file and are named as external data.

A changed copy of a graph is then as small as its nodes are many, and a session that opens it maps
the weights from the graph's own file instead of copying them. Field numbers are those of
onnx.proto3, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3; external data may lie at any
offset of a file, see https://onnx.ai/onnx/repo-docs/ExternalData.html.
"""

from __future__ import annotations

import mmap
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairgate.onnx.graph_file import (
    DamagedGraphError,
    Part,
    encoded,
    encoded_number,
    external_locations,
    mapped,
    parts,
)

_GRAPH, _INITIALIZER = 7, 5
_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14
_OTHER_VALUES = frozenset({3, 4, 5, 6, 7, 10, 11, _EXTERNAL_DATA, _DATA_LOCATION})
"""Fields of a TensorProto that hold values or parts of them in another way."""
_KEY, _VALUE, _EXTERNAL = 1, 2, 1
_LEAST = 1024
"""Bytes: what is smaller stays, since shapes and scales are read where the graph is changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphStructure:
    """A graph whose weights are references to their places in its file."""

    content: bytes
    folder: Path
    """Where the file is that the references name."""


def read_structure(graph: Path) -> GraphStructure | None:
    """Return a graph file's structure; None where its weights cannot be left in it.

    That is where the graph has external data already (they are looked up beside the link to the
    file, not beside the file), is written in several parts, or has a name that is no Unicode.
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
    with mapped(file) as content:
        whole = list(parts(content, 0, len(content)))
        if sum(_is(part, _GRAPH) for part in whole) != 1:
            return None
        found = b"".join(
            encoded(_GRAPH, _graph(content, part.begin, part.end, location))
            if _is(part, _GRAPH)
            else content[part.start : part.end]
            for part in whole
        )
    return GraphStructure(content=found, folder=file.parent)


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
    return onnx.load_model_from_string(structure.content), structure.folder


def _is(part: Part, number: int) -> bool:
    """Return whether a part is this field; of another kind of value it is none that is read."""
    return part.sized and part.number == number


def _graph(content: mmap.mmap, start: int, end: int, location: bytes) -> bytes:
    return b"".join(
        encoded(_INITIALIZER, _tensor(content, part.begin, part.end, location))
        if _is(part, _INITIALIZER)
        else content[part.start : part.end]
        for part in parts(content, start, end)
    )


def _tensor(content: mmap.mmap, start: int, end: int, location: bytes) -> bytes:
    """Return a tensor with a reference in place of its values where these are worth it."""
    fields = list(parts(content, start, end))
    times = Counter(field.number for field in fields)
    raw = next((field for field in fields if _is(field, _RAW_DATA)), None)
    plain = times[_RAW_DATA] == 1 and not _OTHER_VALUES & times.keys()
    if raw is None or not plain or raw.end - raw.begin < _LEAST:
        return content[start:end]
    entries = {
        b"location": location,
        b"offset": str(raw.begin).encode(),
        b"length": str(raw.end - raw.begin).encode(),
    }
    kept = [content[field.start : field.end] for field in fields if field is not raw]
    made = [
        encoded(_EXTERNAL_DATA, encoded(_KEY, key) + encoded(_VALUE, value))
        for key, value in entries.items()
    ]
    return b"".join([*kept, *made, encoded_number(_DATA_LOCATION, _EXTERNAL)])
