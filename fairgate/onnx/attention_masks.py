"""Finds out whether a mask hides later tokens and padding only, by the nodes that make it.

Operators that attend by themselves know no other mask. A window, a chunk, a prefix that everyone
sees or a bias by distance (ALiBi) may stand in a graph while `config.json` is silent, and may be
wider than what a trial reads. So a mask is followed node by node to the sizes, slots and
`attention_mask` it comes from, and one with a node or a number that is not known here is no plain
one. Known are the masks that optimum writes of transformers 4.46 and later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

_Role = Literal["mask", "index", "slots", "size"]
"""What a value is for: to hide, to say where else to look, to be compared, or to count slots."""
_Value = tuple[_Role, str]

_PADDING = "attention_mask"
_HANDED_ON = frozenset({"Cast", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators whose further inputs are shapes and axes."""
_COMPARISONS = frozenset({"Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
_ALIKE: Mapping[_Role, frozenset[str]] = {
    "mask": frozenset({"Add", "And", "Equal", "Mul", "Where"}),
    "index": frozenset({"Add", "Concat", "Mul"}),
    "slots": frozenset(),
    "size": frozenset({"Add", "Mul"}),
}
"""Operators whose inputs all have the role of what they make."""
_INPUTS: Mapping[tuple[_Role, str], tuple[_Role, ...]] = {
    **{("mask", comparison): ("slots", "slots") for comparison in _COMPARISONS},
    ("mask", "Gather"): ("mask", "index"),
    ("mask", "ScatterND"): ("mask", "index", "mask"),
    ("mask", "Slice"): ("mask", "size", "size"),
    ("mask", "Trilu"): ("mask", "size"),
    ("index", "Gather"): ("size",),
    ("index", "Range"): ("size", "size", "size"),
    ("index", "Shape"): (),
    ("index", "Slice"): ("index", "size", "size"),
    ("slots", "Range"): ("size", "size", "size"),
    ("size", "Gather"): ("size",),
    ("size", "Shape"): (),
    ("size", "Slice"): ("size",),
}
"""Roles of the first inputs of other operators; further ones are axes, or say which size."""
_STEPS = frozenset({-1.0, 0.0, 1.0})
_HIDDEN = -1e4
"""What is added to hide a slot is this or less."""
_TO_THE_END = float(2**31 - 1)
"""The end of a slice without one is this or more."""


def hides_later_tokens_only(
    makers: Mapping[str, Any], constants: Mapping[str, list[float]], mask: str
) -> bool:
    """Return whether a mask is plain: made of one comparison of slots, and of padding.

    `makers`: the node that makes each value. `constants`: the numbers of small constants by name.
    Which tokens the comparison hides is for the caller to try out.
    """
    waiting: list[_Value] = [("mask", mask)]
    seen: set[_Value] = set()
    compared: set[str] = set()
    while waiting:
        value = waiting.pop()
        role, name = value
        if value in seen or (value == ("mask", _PADDING) and name not in makers):
            continue
        seen.add(value)
        if name in constants:
            if not all(map(_is_plain, constants[name])):
                return False
            continue
        node = makers.get(name)
        made_of = None if node is None else _made_of(role, node)
        if node is None or made_of is None:
            return False
        if role == "mask" and node.op_type in _COMPARISONS:
            compared.add(name)
        waiting += made_of
    return len(compared) == 1


def _made_of(role: _Role, node: Any) -> list[_Value] | None:
    """Return the inputs of a node that decide what it gives; None where it is not known."""
    if node.op_type in _HANDED_ON:
        return [(role, name) for name in node.input[:1]]
    if node.op_type in _ALIKE[role]:
        return [(role, name) for name in node.input]
    if (role, node.op_type) == ("mask", "ConstantOfShape"):
        return [] if all(map(_is_plain, _filled(node))) else None
    roles = _INPUTS.get((role, node.op_type))
    return None if roles is None else list(zip(roles, node.input, strict=False))


def _filled(node: Any) -> Iterator[object]:
    from onnx import numpy_helper

    for attribute in node.attribute:
        yield from numpy_helper.to_array(attribute.t).ravel().tolist()


def _is_plain(number: object) -> bool:
    """Return whether this is a number, and none that a distance, a block or a slope could be."""
    if not isinstance(number, int | float):
        return False
    return number in _STEPS or number <= _HIDDEN or number >= _TO_THE_END
