"""The nodes of an ONNX graph with the number formats that they name, read without loading it."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fairgate.onnx.graph_fields import fields, mapped, messages, number

_GRAPH: dict[str, dict[int, str]] = {"model": {7: "graph"}}
_NODE, _INITIALIZER = 1, 5
_INPUT, _OUTPUT, _OPERATOR, _ATTRIBUTE = 1, 2, 4, 5
_TENSOR_NAME, _TENSOR_FORMAT = 8, 2
_ATTRIBUTE_NAME, _ATTRIBUTE_NUMBER, _ATTRIBUTE_TENSOR = 1, 3, 5


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
