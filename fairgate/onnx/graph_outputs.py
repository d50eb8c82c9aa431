"""What an ONNX graph calls its outputs, read without loading it."""

from __future__ import annotations

from pathlib import Path

from fairgate.onnx.graph_fields import fields, mapped, messages

_OUTPUTS: dict[str, dict[int, str]] = {"model": {7: "graph"}, "graph": {12: "output"}}
_NAME = 1


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
