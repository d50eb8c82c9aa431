"""Which files an ONNX graph names as the place of its weights (`external_data`)."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from fairgate.onnx.graph_fields import fields, mapped, messages

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
