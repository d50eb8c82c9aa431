"""Takes a check out of exported decoders that never applies to them and costs time in every layer.

Exporters replace what a softmax returns for a row without a single key, NaN, by zeros
(`Where(IsNaN(softmax), 0, softmax)`). With prompts padded on the right, as FairGate runs them,
every row of causal attention sees the first token at least, so that the answers stay the same bit
by bit. Rows of padding beyond a sliding window see none: graphs of such models keep the check.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

_LOCAL = ("window", "local", "sliding", "chunk")


def drop_softmax_guards(graph: Path) -> int:
    """Rewrite a decoder's graph without the checks and return how many there were.

    0, with the file untouched, where the folder's config.json mentions attention to a part of the
    text, or cannot be read. External weights stay where they are.
    """
    import onnx

    if not _attends_to_all(graph.parent / "config.json"):
        return 0
    model = onnx.load(str(graph), load_external_data=False)
    dropped = _drop(model.graph)
    if dropped:
        onnx.save(model, str(graph))
    return dropped


def _attends_to_all(config: Path) -> bool:
    try:
        settings = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(settings, dict) and not _mentions_part(settings)


def _mentions_part(value: Any) -> bool:
    """Return whether a setting that is not off, or an entry of a list, names attention to a part.

    Texts that are settings themselves are names and paths.
    """
    if isinstance(value, dict):
        named = any(setting for key, setting in value.items() if _is_local(key))
        return named or any(map(_mentions_part, value.values()))
    if isinstance(value, list):
        return any(
            _mentions_part(one) or (isinstance(one, str) and _is_local(one)) for one in value
        )
    return False


def _is_local(name: str) -> bool:
    return any(word in name.lower() for word in _LOCAL)


def _drop(graph: Any) -> int:
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
