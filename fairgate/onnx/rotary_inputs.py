"""Finds what a layer's queries, keys and values are made of: projections that positions turn.

Exporters write a rotary embedding as `x * cosine + turned(x) * sine`, about ten nodes for queries
and ten for keys (Su et al., RoFormer, 2021, in the halves that Llama's weights are stored for). One
operator does the same: Microsoft's RotaryEmbedding,
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_BY_HEAD = [0, 2, 1, 3]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainInputs:
    """Names of values in a graph."""

    queries: str
    keys: str
    values: str
    """Projections `[rows, tokens, heads * size]`, which no position has turned."""
    cosines: str
    sines: str
    """`[rows, 1, tokens, size]`, in which both halves of a size are the same."""

    @property
    def names(self) -> set[str]:
        """Return all of them."""
        return {self.queries, self.keys, self.values, self.cosines, self.sines}


def plain_inputs(makers: Mapping[str, Any], query: str, key: str, value: str) -> PlainInputs | None:
    """Return what these three, `[rows, heads, tokens, size]`, are made of; None if not that.

    `makers`: the node that makes each value.
    """
    queries, keys = _unturned(makers, query), _unturned(makers, key)
    values = _by_token(makers, value)
    if queries is None or keys is None or values is None or queries[1:] != keys[1:]:
        return None
    return PlainInputs(
        queries=queries[0], keys=keys[0], values=values, cosines=queries[1], sines=queries[2]
    )


def ints(node: Any, name: str) -> list[int]:
    """Return an attribute's numbers; none without the attribute."""
    return next((list(each.ints) for each in node.attribute if each.name == name), [])


def _unturned(makers: Mapping[str, Any], name: str) -> tuple[str, str, str] | None:
    """Return what was turned, `[rows, tokens, heads * size]`, and the cosines and sines."""
    both = _made_by(makers, name, "Add")
    products = [_made_by(makers, each, "Mul") for each in both]
    if len(products) != 2 or not all(products):
        return None
    (kept, cosines), (turned, sines) = products
    second, first = [*_made_by(makers, turned, "Concat"), "", ""][:2]
    [behind] = _made_by(makers, second, "Neg") or [""]
    halves = [_made_by(makers, each, "Slice")[:1] for each in (first, behind)]
    flat = _by_token(makers, kept)
    if flat is None or halves != [[kept], [kept]]:
        return None
    return flat, cosines, sines


def _by_token(makers: Mapping[str, Any], name: str) -> str | None:
    """Return `[rows, tokens, heads * size]` of what is `[rows, heads, tokens, size]`."""
    turned = makers.get(name)
    if turned is None or turned.op_type != "Transpose" or ints(turned, "perm") != _BY_HEAD:
        return None
    split = _made_by(makers, turned.input[0], "Reshape")
    return split[0] if split else None


def _made_by(makers: Mapping[str, Any], name: str, operator: str) -> list[str]:
    """Return what an operator makes a value of; nothing where another makes it."""
    node = makers.get(name)
    return list(node.input) if node is not None and node.op_type == operator else []
