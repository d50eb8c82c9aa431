"""Finds the attention of each layer in a decoder graph, by the nodes that exporters write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

_PAST = re.compile(r"past_key_values\.(\d+)\.(key|value)$")
_REPEATS = frozenset({"Expand", "Reshape", "Unsqueeze"})
_REPEATS_AT_MOST = 3
_SMALL = 16
"""Elements: scales and permutations have no more."""
_BY_HEAD = [0, 2, 1, 3]
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

    Exporters write a rotary embedding as `x * cosine + turned(x) * sine`, about ten nodes for
    queries and ten for keys (Su et al., RoFormer, 2021, in the halves that Llama's weights are
    stored for). One operator does the same: Microsoft's RotaryEmbedding,
    https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """One layer: where keys and values come from, and the product that ends it."""

    product: Any
    merged: Any
    """The Reshape that writes what the product gives as `[rows, tokens, heads * size]`."""
    query: str
    """`[rows, heads, tokens, size]`, before any scale."""
    scale: float
    keys: Any
    values: Any
    """The nodes that append to the cache."""
    plain_inputs: PlainInputs | None
    """What query, keys and values are made of, where that is beyond doubt."""
    heads: int
    shared_heads: int
    size: int
    kind: int
    """TensorProto's number of the cache's format."""

    @property
    def given(self) -> tuple[str, str, str]:
        """Return the values of new tokens: query, key and value, `[rows, heads, tokens, size]`."""
        return self.query, self.keys.input[1], self.values.input[1]


def plain_attention(model: Any) -> list[Attention]:
    """Return every layer's attention; none at all where one layer's is not the plain one.

    Plain: softmax(scale * query keys + mask) values, keys and values appended to the cache, and
    the mask hides later tokens and padding only.
    """
    graph = AttentionGraph(model)
    layers = [graph.attention(node) for node in model.graph.node if node.op_type == "Softmax"]
    found = [layer for layer in layers if layer is not None]
    caches = {node.name for node in model.graph.input if _PAST.match(node.name)}
    read = [each.input[0] for layer in found for each in (layer.keys, layer.values)]
    alike = {(layer.heads, layer.shared_heads, layer.size) for layer in found}
    if len(found) < len(layers) or sorted(read) != sorted(caches) or len(alike) != 1:
        return []
    return found


def hides_later_tokens_only(
    makers: Mapping[str, Any], constants: Mapping[str, list[float]], mask: str
) -> bool:
    """Return whether a mask is plain: made of one comparison of slots, and of padding.

    `makers`: the node that makes each value. `constants`: the numbers of small constants by name.
    Which tokens the comparison hides is for the caller to try out.

    Operators that attend by themselves know no other mask. A window, a chunk, a prefix that
    everyone sees or a bias by distance (ALiBi) may stand in a graph while `config.json` is silent,
    and may be wider than what a trial reads. So a mask is followed node by node to the sizes, slots
    and `attention_mask` it comes from, and one with a node or a number that is not known here is no
    plain one. Known are the masks that optimum writes of transformers 4.46 and later.
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


class AttentionGraph:
    """Who makes and who reads each value of a graph, and which values are constants."""

    def __init__(self, model: Any) -> None:
        """Take an `onnx.ModelProto`."""
        self.graph = model.graph
        self.makers = {name: node for node in model.graph.node for name in node.output}
        self.outputs = {value.name for value in model.graph.output}
        self.readers: dict[str, list[Any]] = {}
        for node in model.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    @cached_property
    def constants(self) -> dict[str, list[float]]:
        """Return the numbers of small constants by name."""
        from onnx import TensorProto, numpy_helper

        tensors = {tensor.name: tensor for tensor in self.graph.initializer}
        for node in self.graph.node:
            for attribute in node.attribute if node.op_type == "Constant" else ():
                if attribute.name == "value":
                    tensors[node.output[0]] = attribute.t
        return {
            name: numpy_helper.to_array(tensor).ravel().tolist()
            for name, tensor in tensors.items()
            if tensor.data_location != TensorProto.EXTERNAL and _elements(tensor) <= _SMALL
        }

    def attention(self, softmax: Any) -> Attention | None:
        """Return the layer around a softmax; None where it is not the plain one."""
        product = self.only_reader(softmax.output[0], "MatMul")
        scores = self._scores(softmax)
        if product is None or scores is None:
            return None
        query, first = self._unscaled(scores.input[0])
        turned, second = self._unscaled(scores.input[1])
        transpose = self.makers.get(turned)
        if transpose is None or ints(transpose, "perm") != [0, 1, 3, 2]:
            return None
        keys, values = self._cache(transpose.input[0]), self._cache(product.input[1])
        if keys is None or values is None:
            return None
        shared, size, kind = self._sizes(keys)
        merged = self._merged(product)
        heads = None if merged is None else self._heads(merged, size)
        same = self._sizes(values) == (shared, size, kind)
        if not same or not shared or merged is None or heads is None or heads % shared:
            return None
        return Attention(
            product=product,
            merged=merged,
            query=query,
            scale=first * second,
            keys=keys,
            values=values,
            heads=heads,
            shared_heads=shared,
            size=size,
            kind=kind,
            plain_inputs=plain_inputs(self.makers, query, keys.input[1], values.input[1]),
        )

    def inside(self, layer: Attention) -> list[Any]:
        """Return the nodes that only this layer's attention needs, in the order of the graph.

        They begin with its plain inputs if it has any, else with query, keys and values.
        """
        stops = {layer.query, layer.keys.input[1], layer.values.input[1]}
        if layer.plain_inputs is not None:
            stops = layer.plain_inputs.names
        found = {id(node): node for node in (layer.merged, layer.keys, layer.values)}
        waiting = list(found.values())
        while waiting:
            for name in waiting.pop().input:
                maker = self.makers.get(name)
                if (
                    maker is None
                    or name in stops
                    or id(maker) in found
                    or not self._private(maker, found)
                ):
                    continue
                found[id(maker)] = maker
                # A node with several readers may have waited for the last of them.
                waiting += found.values()
        return [node for node in self.graph.node if id(node) in found]

    def between(self, layer: Attention, nodes: Sequence[Any]) -> list[Any]:
        """Return of these nodes those from query, key and value to what the layer finds."""
        given = set(layer.given)
        found = {id(node): node for node in (layer.product, layer.keys, layer.values)}
        for node in reversed(nodes):
            readers = [one for name in node.output for one in self.readers.get(name, ())]
            alone = readers and all(id(one) in found for one in readers)
            if alone and given.isdisjoint(node.output) and self.outputs.isdisjoint(node.output):
                found[id(node)] = node
        return [node for node in nodes if id(node) in found]

    def _private(self, node: Any, found: dict[int, Any]) -> bool:
        return all(
            name not in self.outputs
            and all(id(reader) in found for reader in self.readers.get(name, ()))
            for name in node.output
        )

    def _scores(self, softmax: Any) -> Any | None:
        """Return the product that is masked before a softmax; None where the mask is not plain."""
        masked = self.makers.get(softmax.input[0])
        if masked is None or masked.op_type != "Add" or len(masked.input) < 2:
            return None
        scores = self.makers.get(masked.input[0])
        if scores is None or scores.op_type != "MatMul":
            return None
        plain = hides_later_tokens_only(self.makers, self.constants, masked.input[1])
        return scores if plain else None

    def only_reader(self, name: str, kind: str) -> Any | None:
        """Return the one node that reads a value; None where there are more or it is another."""
        readers = self.readers.get(name, [])
        return readers[0] if len(readers) == 1 and readers[0].op_type == kind else None

    def _unscaled(self, name: str) -> tuple[str, float]:
        """Return a value before its multiplication with a constant, and that constant."""
        maker = self.makers.get(name)
        if maker is not None and maker.op_type == "Mul":
            numbers = self.constants.get(maker.input[1], [])
            if len(numbers) == 1:
                return maker.input[0], float(numbers[0])
        return name, 1.0

    def _cache(self, name: str) -> Any | None:
        """Return the node that appends to a cache, behind what repeats it for groups of heads."""
        for _ in range(_REPEATS_AT_MOST + 1):
            maker = self.makers.get(name)
            if maker is None:
                return None
            if maker.op_type == "Concat":
                appends = len(maker.input) == 2 and _PAST.match(maker.input[0]) is not None
                return maker if appends and _axis(maker) in {2, -2} else None
            if maker.op_type not in _REPEATS:
                return None
            name = maker.input[0]
        return None

    def _sizes(self, appending: Any) -> tuple[int, int, int]:
        """Return heads, size and format of a cache, zeros where the graph leaves them open."""
        [cache] = [value for value in self.graph.input if value.name == appending.input[0]]
        kind = cache.type.tensor_type
        sizes = kind.shape.dim
        return sizes[1].dim_value, sizes[3].dim_value, kind.elem_type

    def _merged(self, product: Any) -> Any | None:
        turned = self.only_reader(product.output[0], "Transpose")
        return None if turned is None else self.only_reader(turned.output[0], "Reshape")

    def _heads(self, merged: Any, size: int) -> int | None:
        """Return the number of heads: as many as the projection behind them has inputs for.

        A `GatherND` may keep the positions that are needed before it.
        """
        if not size:
            return None
        kept = self.only_reader(merged.output[0], "GatherND") or merged
        readers = self.readers.get(kept.output[0], [])
        width = self._input_width(readers[0]) if len(readers) == 1 else 0
        return width // size if width and width % size == 0 else None

    def _input_width(self, projection: Any) -> int:
        for attribute in projection.attribute if projection.op_type == "MatMulNBits" else ():
            if attribute.name == "K":
                return int(attribute.i)
        weights = projection.input[1] if projection.op_type == "MatMul" else ""
        sizes = [each.dims[0] for each in self.graph.initializer if each.name == weights]
        return int(sizes[0]) if sizes else 0


def _elements(tensor: Any) -> int:
    total = 1
    for size in tensor.dims:
        total *= size
    return total


def _axis(node: Any) -> int | None:
    return next((int(each.i) for each in node.attribute if each.name == "axis"), None)
