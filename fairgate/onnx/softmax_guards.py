"""Takes a check out of decoders that never applies to them here and costs time in every layer.

Exporters replace what a softmax returns for a row without a single key, NaN, by zeros
(`Where(IsNaN(softmax), 0, softmax)`). With prompts padded on the right, as this engine runs them,
every row of attention to the whole text sees the first token at least, so that answers stay the
same bit by bit. Padding on the left, and padding beyond a sliding window, has rows that see none.
"""

from __future__ import annotations

from collections import Counter
from typing import Any


def drop_softmax_guards(model: Any) -> int:
    """Take the checks out of an `onnx.ModelProto` and return how many there were."""
    graph = model.graph
    producer = {name: node for node in graph.node for name in node.output}
    readers = Counter(name for node in graph.node for name in node.input)
    kept = {value.name for value in graph.output}
    guards = [
        node
        for node in graph.node
        if node.op_type == "Where" and node.output[0] not in kept and _is_guard(node, producer)
    ]
    plain = {guard.output[0]: guard.input[2] for guard in guards}
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name in plain:
                node.input[place] = plain[name]
    for guard in guards:
        graph.node.remove(guard)
        if readers[guard.input[0]] == 1 and guard.input[0] not in kept:
            graph.node.remove(producer[guard.input[0]])
    return len(guards)


def _is_guard(node: Any, producer: dict[str, Any]) -> bool:
    """Return whether a Where replaces the NaNs of a softmax."""
    asked, found = producer.get(node.input[0]), producer.get(node.input[2])
    return (
        asked is not None
        and found is not None
        and asked.op_type == "IsNaN"
        and found.op_type == "Softmax"
        and asked.input[0] == node.input[2]
    )
