"""Finds each layer's attention in a decoder graph, and replaces it by operators made for it.

Layers are recognised by the nodes that exporters write, fifty a layer, of which most compute shapes
and rotate. They are replaced by two branches of an `If` on the input `JOINT_INPUT`, which share the
weights. One reads prompts, many tokens of each row behind as many in the cache, with a copy of the
cache but none for each head that shares it. The other adds a token to each row: the operator
GroupQueryAttention reads each row's own tokens only, wherever the others end, and writes into the
cache in place: Ainslie et al., GQA: Training Generalized Multi-Query Transformer Models, EMNLP
2023; the layout is that of
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.

A graph in which any layer's attention is not the plain one in float32 is left as it is.

Labels of SmolLM2 take 1.5 to 1.9 times as long without it. On the bundled model, whose layers are
small, it saves a thirtieth; that prompts can be cut, which rests on it, saves the most there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from fairgate.onnx.integer_products import MICROSOFT, PRODUCT
from fairgate.onnx.session import imported_runtime

JOINT_INPUT = "fairgate_joint"
"""bool `[1]`: whether one token is added to each row of a cache without gaps."""
COMPARISONS = frozenset({"Greater", "GreaterOrEqual", "Less", "LessOrEqual"})

_PREFIX = "fairgate_joint_"
_PADDING, _POSITIONS = "attention_mask", "position_ids"
_FLOAT32 = 1
"""TensorProto's number of the one format in which the operator's bits are the same in any batch: in
float16 the last bit of a logit changed with it in 2 of 240 steps of a random model."""
_OLDEST = 13
"""The first version of ONNX whose ReduceSum takes its axes as an input."""
_GIVES_SCORES = (1, 24)
"""A version of ONNX Runtime whose operator also gives the scores. It then multiplies a row as a
whole, in less time than the tiles that it takes else, which are made for many tokens."""
_AFTER_SOFTMAX = 2
ONNX = frozenset({"", "ai.onnx"})
_PAST = re.compile(r"past_key_values\.(\d+)\.(key|value)$")
_HEADS_OF_A_GROUP = 2
"""The axis that repeats a shared head for its group of queries."""
_LAST_AXES = frozenset({3, -1})
_SLOT_AXES = frozenset({2, -2})
_ANGLE_STEPS = frozenset({"Cast", "Identity", "Unsqueeze"})
_SMALL = 16
"""Elements: scales and permutations have no more."""
_MASK_INPUTS: Mapping[str, int] = {
    **dict.fromkeys(COMPARISONS, 2),
    **dict.fromkeys(("Add", "And", "Equal", "Gather", "Mul", "Trilu"), 2),
    **dict.fromkeys(("Cast", "Expand", "Flatten", "Identity", "Reshape"), 1),
    **dict.fromkeys(("Squeeze", "Unsqueeze"), 1),
    **dict.fromkeys(("Range", "ScatterND", "Slice", "Where"), 3),
    "Concat": 2**31,
    "ConstantOfShape": 0,
    "Shape": 0,
}
"""Operators that masks are made with, and how many of their first inputs decide: further ones are
shapes and axes."""
_TRIED = 64
"""Tokens: the trial of joint steps shows what masks do within this many."""
_HIDDEN = -1e4
"""What is added to hide a slot is this or less."""
_TO_THE_END = float(2**31 - 1)
"""The end of a slice without one is this or more."""


class PlainInputs(NamedTuple):
    """Names of the values that a layer's attention begins with."""

    queries: str
    keys: str
    values: str
    """Projections `[rows, tokens, heads * size]`, which no position has turned."""
    cosines: str
    sines: str
    """`[rows, 1, tokens, size]`, whose halves are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """One layer: where keys and values come from, and the product that ends it."""

    product: Any
    query: str
    """`[rows, heads, tokens, size]`, before any scale."""
    scale: float
    mask: str
    """`[rows, 1, tokens, slots]`, which is added to scores."""
    keys: Any
    values: Any
    """The nodes that append to the cache."""
    heads: int
    shared_heads: int
    size: int
    kind: int
    """TensorProto's number of the cache's format."""
    plain_inputs: PlainInputs | None
    """What query, keys and values are made of, where that is beyond doubt."""

    @property
    def token_values(self) -> tuple[str, str, str]:
        """Return the values of new tokens: query, key and value, `[rows, heads, tokens, size]`."""
        return self.query, self.keys.input[1], self.values.input[1]


class GraphIndex:
    """Who makes and who reads each value of a graph, and which values are constants."""

    def __init__(self, model: Any) -> None:
        """Take an `onnx.ModelProto`."""
        self.graph = model.graph
        self.makers = {name: node for node in model.graph.node for name in node.output if name}
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
            if tensor.data_location != TensorProto.EXTERNAL and math.prod(tensor.dims) <= _SMALL
        }

    def made_by(self, name: str, operator: str) -> list[str]:
        """Return the inputs of the operator that makes a value; none where another one makes it."""
        node = self.makers.get(name)
        return list(node.input) if node is not None and node.op_type == operator else []

    def only_reader(self, name: str, kind: str) -> Any | None:
        """Return the one node that reads a value; None where there are more or it is another."""
        readers = self.readers.get(name, [])
        return readers[0] if len(readers) == 1 and readers[0].op_type == kind else None

    def attention(self) -> list[Attention]:
        """Return every layer's attention; none at all where one layer's is not the plain one.

        Plain: softmax(scale * query keys + mask) values, keys and values appended to the cache, and
        the mask hides later tokens and padding only, as far as its nodes and a trial show.
        """
        softmaxes = [node for node in self.graph.node if node.op_type == "Softmax"]
        layers = [layer for layer in map(self._layer, softmaxes) if layer is not None]
        caches = sorted(value.name for value in self.graph.input if _PAST.match(value.name))
        read = [value.input[0] for layer in layers for value in (layer.keys, layer.values)]
        alike = {(layer.heads, layer.shared_heads, layer.size) for layer in layers}
        whole = len(layers) == len(softmaxes) and sorted(read) == caches and len(alike) == 1
        return layers if whole else []

    def _layer(self, softmax: Any) -> Attention | None:
        """Return the layer around a softmax; None where it is not the plain one."""
        product = self.only_reader(softmax.output[0], "MatMul")
        scores, mask = [*self.made_by(softmax.input[0], "Add"), "", ""][:2]
        factors = self.made_by(scores, "MatMul")
        last = _attribute(softmax, "axis") in {None, *_LAST_AXES}
        if product is None or not factors or not last or not self.hides_plainly(mask):
            return None
        query, first = self._unscaled(factors[0])
        turned, second = self._unscaled(factors[1])
        keys = self._cache(self._turned(turned, [0, 1, 3, 2]))
        values = self._cache(product.input[1])
        if keys is None or values is None:
            return None
        shared, size, kind = self._sizes(keys)
        heads, remainder = divmod(self._width(product), size or 1)
        alike = shared and size and self._sizes(values) == (shared, size, kind)
        if not alike or not heads or remainder or heads % shared:
            return None
        return Attention(
            product=product,
            query=query,
            scale=first * second,
            mask=mask,
            keys=keys,
            values=values,
            heads=heads,
            shared_heads=shared,
            size=size,
            kind=kind,
            plain_inputs=self.plain_inputs(query, keys.input[1], values.input[1], size),
        )

    def plain_inputs(self, query: str, key: str, value: str, size: int) -> PlainInputs | None:
        """Return the inputs of these three, `[rows, heads, tokens, size]`, before rotation, if any.

        Exporters write a rotary embedding as `x * cosine + turned(x) * sine`, about ten nodes for
        queries and ten for keys (Su et al., RoFormer, 2021, in the halves that Llama's weights are
        stored for). One operator does the same: Microsoft's RotaryEmbedding,
        https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
        """
        queries, keys = self._unturned(query, size), self._unturned(key, size)
        values = self._by_token(value)
        if queries is None or keys is None or not values or queries[1:] != keys[1:]:
            return None
        return PlainInputs(queries[0], keys[0], values, *queries[1:])

    def _unturned(self, name: str, size: int) -> tuple[str, str, str] | None:
        """Return the value before rotation, `[rows, tokens, heads * size]`, cosines and sines."""
        products = [self.made_by(part, "Mul") for part in self.made_by(name, "Add")]
        if len(products) != 2 or not all(products):
            return None
        (straight, cosines), (turned, sines) = products
        flat = self._by_token(straight)
        if not flat or not self._turns(turned, straight, size):
            return None
        alike = self._repeats_a_half(cosines, "Cos") and self._repeats_a_half(sines, "Sin")
        return (flat, cosines, sines) if alike else None

    def _turns(self, name: str, straight: str, size: int) -> bool:
        """Return whether a value is the second half of `straight`, negated, before the first."""
        second, first = [*self.made_by(name, "Concat"), "", ""][:2]
        [behind] = self.made_by(second, "Neg") or [""]
        halves = [self.made_by(part, "Slice") for part in (first, behind)]
        if any(len(half) < 4 or half[0] != straight for half in halves):
            return False
        (_, begin, middle, *_), (_, other_middle, end, *_) = halves
        steps = [self.constants.get(half[4], []) for half in halves if len(half) > 4]
        return (
            _attribute(self.makers[name], "axis") in _LAST_AXES
            and all(self.constants.get(half[3]) in ([3], [-1]) for half in halves)
            and all(step == [1] for step in steps)
            and self.constants.get(begin) == [0]
            and self.constants.get(end, [0])[0] >= _TO_THE_END
            and self._is_half(middle, size)
            and self._is_half(other_middle, size)
        )

    def _is_half(self, name: str, size: int) -> bool:
        """Return whether a value is half of a size: the number, or a division by two."""
        while (node := self.makers.get(name)) is not None and node.op_type in _ANGLE_STEPS:
            name = node.input[0]
        divided = self.made_by(name, "Div")
        return self.constants.get(divided[1] if divided else name) == [2 if divided else size // 2]

    def _repeats_a_half(self, name: str, operator: str) -> bool:
        """Return whether this is the cosine or sine, perhaps scaled, of angles that stand twice."""
        while (node := self.makers.get(name)) is not None and (
            node.op_type in _ANGLE_STEPS
            or (node.op_type == "Mul" and len(self.constants.get(node.input[1], [])) == 1)
        ):
            name = node.input[0]
        [angles] = self.made_by(name, operator) or [""]
        halves = self.made_by(angles, "Concat")
        has_rows = any(value.name == _POSITIONS for value in self.graph.input)
        return has_rows and len(halves) == 2 and halves[0] == halves[1]

    def _by_token(self, name: str) -> str:
        """Return `[rows, tokens, heads * size]` of what is `[rows, heads, tokens, size]`."""
        return [*self.made_by(self._turned(name, [0, 2, 1, 3]), "Reshape"), ""][0]

    def _turned(self, name: str, order: list[int]) -> str:
        """Return the value of which a Transpose of this order makes one; empty if another does."""
        [source] = self.made_by(name, "Transpose") or [""]
        return source if source and _attribute(self.makers[name], "perm") == order else ""

    def hides_plainly(self, mask: str) -> bool:
        """Return whether a mask compares slots once and treats alike all slots beyond the tried.

        Operators that attend by themselves know one mask only. A window, a chunk, a prefix that
        everyone sees or a bias by distance (ALiBi) may stand in a graph while `config.json` is
        silent. Within `_TRIED` tokens the trial shows them; what is wider needs a number, or a
        table. So a mask is followed node by node to the sizes, slots and `attention_mask` it comes
        from, and one with a node or a number that is not known here is no plain one. Known are the
        masks that optimum writes of transformers 4.46 and later.
        """
        from onnx import numpy_helper

        waiting, visited, compared = [mask], set[str](), 0
        while waiting:
            name = waiting.pop()
            node = self.makers.get(name)
            if name in visited or (name == _PADDING and node is None):
                continue
            visited.add(name)
            numbers = self.constants.get(name, [])
            if node is not None and node.op_type == "ConstantOfShape":
                tensors = [numpy_helper.to_array(attribute.t) for attribute in node.attribute]
                numbers = [number for tensor in tensors for number in tensor.ravel().tolist()]
            if not all(map(_is_plain, numbers)):
                return False
            if name in self.constants:
                continue
            if node is None or node.op_type not in _MASK_INPUTS:
                return False
            compared += node.op_type in COMPARISONS
            waiting += node.input[: _MASK_INPUTS[node.op_type]]
        return compared == 1

    def slot_counters(self, layer: Attention) -> list[Any] | None:
        """Return the nodes of a mask that take the number of slots from the shape of the keys.

        None where the mask reads anything else of them.
        """
        waiting, visited, counters = [layer.mask], set[str](), []
        while waiting:
            name = waiting.pop()
            node = self.makers.get(name)
            if node is None or name in visited:
                continue
            visited.add(name)
            shapes = self.makers.get(node.input[0]) if node.op_type == "Gather" else None
            if shapes is not None and shapes.op_type == "Shape" and not shapes.attribute:
                axis = self.constants.get(node.input[1], [])
                counts = len(axis) == 1 and axis[0] in _SLOT_AXES
                if counts and self._cache(shapes.input[0]) is layer.keys:
                    counters.append(node)
                    continue
            if node in (layer.keys, layer.values):
                return None
            waiting += node.input
        return counters

    def _unscaled(self, name: str) -> tuple[str, float]:
        """Return a value before its multiplication with a constant, and that constant."""
        factors = self.made_by(name, "Mul")
        numbers = self.constants.get(factors[1], []) if factors else []
        return (factors[0], float(numbers[0])) if len(numbers) == 1 else (name, 1.0)

    def _cache(self, name: str) -> Any | None:
        """Return the node that appends to a cache, behind what repeats it for groups of heads."""
        [copied] = self.made_by(name, "Reshape")[:1] or [""]
        [widened] = self.made_by(copied, "Expand")[:1] or [""]
        [source, *axes] = self.made_by(widened, "Unsqueeze") or [name]
        if [self.constants.get(axis) for axis in axes] not in ([], [[_HEADS_OF_A_GROUP]]):
            return None
        appended = self.made_by(source, "Concat")
        if len(appended) != 2 or _PAST.match(appended[0]) is None:
            return None
        node = self.makers[source]
        return node if _attribute(node, "axis") in _SLOT_AXES else None

    def _sizes(self, appending: Any) -> tuple[int, int, int]:
        """Return heads, size and format of a cache, zeros where the graph leaves them open."""
        [cache] = [value for value in self.graph.input if value.name == appending.input[0]]
        kind = cache.type.tensor_type
        sizes = kind.shape.dim
        return sizes[1].dim_value, sizes[3].dim_value, kind.elem_type

    def _width(self, product: Any) -> int:
        """Return heads times size, which the projection behind takes; 0 where it is not seen."""
        turned = self.only_reader(product.output[0], "Transpose")
        merged = None if turned is None else self.only_reader(turned.output[0], "Reshape")
        projection = None if merged is None else self._projection(merged.output[0])
        if projection is None:
            return 0
        if projection.op_type == "MatMulNBits":
            return int(_attribute(projection, "K") or 0)
        sizes = (
            tensor.dims[0]
            for tensor in self.graph.initializer
            if tensor.name == projection.input[1]
        )
        return int(next(sizes, 0))

    def _projection(self, name: str) -> Any | None:
        """Return the product with weights that alone takes a value, or its codes of 8 bits."""
        readers = self.readers.get(name, [])
        if len(readers) == 1 and readers[0].op_type == "Mul":  # channels are divided first
            name = readers[0].output[0]
            readers = self.readers.get(name, [])
        elif len(readers) == 1:
            return readers[0] if readers[0].op_type in {"MatMul", "MatMulNBits"} else None
        if sorted(reader.op_type for reader in readers) != ["Abs", "Mul"]:
            return None
        values = {name}
        for operator in ("Mul", "QuantizeLinear", PRODUCT):
            following = [
                node
                for value in sorted(values)
                for node in self.readers.get(value, [])
                if node.op_type == operator
            ]
            values = {node.output[0] for node in following}
        return following[0] if len(following) == 1 else None


def _attribute(node: Any, name: str) -> Any:
    from onnx import helper

    values = (
        helper.get_attribute_value(attribute)
        for attribute in node.attribute
        if attribute.name == name
    )
    return next(values, None)


def _is_plain(number: object) -> bool:
    """Return whether this is a number, and none that a distance could be that no trial shows."""
    if not isinstance(number, int | float):
        return False
    return abs(number) <= _TRIED or number <= _HIDDEN or number >= _TO_THE_END


def join_attention(model: Any) -> bool:
    """Replace attention in an `onnx.ModelProto`; return False, unchanged, where it does not fit.

    Without `JOINT_INPUT` set, each row has as many tokens in the cache as any other, and as many
    new ones, padded on the right. With it, the tokens are one per row, and keys and values lie
    without gaps from slot 0 on, as many as `position_ids` say, or else one less than
    `attention_mask` marks.
    """
    from onnx import TensorProto, helper

    versions = [entry.version for entry in model.opset_import if entry.domain in ONNX]
    index = GraphIndex(model)
    layers = index.attention() if max(versions, default=0) >= _OLDEST else []
    counters = [index.slot_counters(layer) for layer in layers]
    masked = any(value.name == _PADDING for value in model.graph.input)
    if not layers or None in counters or not masked:
        return False
    if any(layer.kind != _FLOAT32 for layer in layers):
        return False
    for node in (node for nodes in counters for node in nodes or ()):
        node.input[0] = f"{_PREFIX}cached_shape"
    replaced: dict[str, list[Any]] = {}
    tabulated: set[str] = set()
    for number, layer in enumerate(layers):
        angles = [] if layer.plain_inputs is None else [*layer.plain_inputs[-2:]]
        tables = [node for angle in angles if angle not in tabulated for node in _table(angle)]
        tabulated.update(angles)
        replaced |= {node.output[0]: [] for node in (layer.keys, layer.values)}
        replaced[layer.product.output[0]] = [*tables, _either(layer, f"{_PREFIX}{number}_")]
    nodes = _lengths(model, layers[0])
    for node in model.graph.node:
        nodes += replaced.get(node.output[0], [node])
    nodes = _needed(nodes, index.outputs)
    model.graph.input.append(helper.make_tensor_value_info(JOINT_INPUT, TensorProto.BOOL, [1]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    del model.graph.value_info[:]
    import_microsoft(model)
    return True


def import_microsoft(model: Any) -> None:
    """Let the nodes of an `onnx.ModelProto` be Microsoft's own operators, too."""
    from onnx import helper

    if all(entry.domain != MICROSOFT for entry in model.opset_import):
        model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))


def _needed(nodes: Sequence[Any], outputs: Iterable[str]) -> list[Any]:
    """Return the nodes that outputs depend on, in their order."""
    wanted, needed = set(outputs), []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            wanted.update(_read(node))
            needed.append(node)
    return needed[::-1]


def _read(node: Any) -> Iterator[str]:
    """Yield the values that a node reads, in its branches, too."""
    yield from node.input
    for attribute in node.attribute:
        for inner in (*attribute.g.node, *(n for graph in attribute.graphs for n in graph.node)):
            yield from _read(inner)


def _either(layer: Attention, prefix: str) -> Any:
    """Return an `If` that makes what a layer finds and its caches in one of both ways."""
    from onnx import helper

    def branch(name: str, nodes: Sequence[Any]) -> Any:
        values = [
            helper.make_tensor_value_info(f"{prefix}{name}_{output}", layer.kind, None)
            for output in ("found", "keys", "values")
        ]
        return helper.make_graph(nodes, f"{prefix}{name}", [], values)

    return helper.make_node(
        "If",
        [JOINT_INPUT],
        [node.output[0] for node in (layer.product, layer.keys, layer.values)],
        name=f"{prefix}either",
        then_branch=branch("joint", _joint(layer, f"{prefix}joint_")),
        else_branch=branch("reading", _reading(layer, f"{prefix}reading_")),
    )


def _lengths(model: Any, layer: Attention) -> list[Any]:
    """Return nodes that count each row's tokens, less one, those of the longest row, and slots.

    Adds the constants that these and all layers read.
    """
    from onnx import TensorProto, helper

    heads, shared, size = layer.heads, layer.shared_heads, layer.size
    shapes = {
        "queries": [-1, 1, heads * size],
        "cached": [-1, 1, shared * size],
        "found": [-1, heads, 1, size],
        "query_heads": [0, 0, heads, size],
        "cached_heads": [0, 0, shared, size],
        "grouped": [0, shared, -1, size],
        "ungrouped": [0, heads, -1, size],
        "whole": [0, heads, -1],
        "parts": [0, shared, -1],
        "angles": [-1, size // 2],
        "half": [size // 2],
        "last": [3],
        "first": [0],
        "flat": [-1],
        "axis": [1],
        "one": [1],
        "two": [2],
    }
    numbers = [
        (name, TensorProto.INT64, [len(content)], content) for name, content in shapes.items()
    ]
    numbers += [
        (name, TensorProto.INT64, [], [content]) for name, content in (("none", 0), ("each", 1))
    ]
    for name, *tensor in (*numbers, ("token", TensorProto.INT32, [], [1])):
        model.graph.initializer.append(helper.make_tensor(_PREFIX + name, *tensor))

    def made(operator: str, inputs: Sequence[str], output: str, **options: Any) -> Any:
        names = [name if name in input_names else _PREFIX + name for name in inputs]
        return helper.make_node(operator, names, [_PREFIX + output], **options)

    input_names = {value.name for value in model.graph.input}
    before = [
        made("ReduceSum", [_PADDING, "axis"], "sums", keepdims=0),
        made("Sub", ["sums", "one"], "before"),
    ]
    rotating = []
    if _POSITIONS in input_names:
        before = [made("Reshape", [_POSITIONS, "flat"], "before")]
        rotating = [
            made("Size", [_POSITIONS], "size"),
            made("Range", ["none", "size", "each"], "numbers"),
            made("Shape", [_POSITIONS], "tokens"),
            made("Reshape", ["numbers", "tokens"], "places"),
        ]
    return [
        *before,
        made("Cast", ["before"], "lengths", to=TensorProto.INT32),
        made("ReduceMax", ["lengths"], "most", keepdims=0),
        made("Add", ["most", "token"], "longest"),
        *rotating,
        made("Shape", [_PADDING], "mask"),
        made("Slice", ["mask", "one", "two"], "slots"),
        made("Concat", ["first", "first", "slots", "first"], "cached_shape", axis=0),
        made("Concat", ["whole", "slots"], "scores", axis=0),
        made("Concat", ["parts", "slots"], "group_scores", axis=0),
    ]


def _table(angles: str) -> list[Any]:
    """Return nodes that write each row's cosines or sines as a table."""
    from onnx import helper

    inputs = [angles, f"{_PREFIX}first", f"{_PREFIX}half", f"{_PREFIX}last"]
    shape = [f"{angles}_half", f"{_PREFIX}angles"]
    return [
        helper.make_node("Slice", inputs, [f"{angles}_half"]),
        helper.make_node("Reshape", shape, [f"{angles}_table"]),
    ]


def _rotated(inputs: PlainInputs, names: Sequence[str]) -> list[Any]:
    """Return nodes that rotate queries and keys, `[rows, tokens, heads * size]`."""
    from onnx import helper

    tables = [f"{_PREFIX}places", f"{inputs.cosines}_table", f"{inputs.sines}_table"]
    return [
        helper.make_node("RotaryEmbedding", [tensor, *tables], [name], domain=MICROSOFT)
        for tensor, name in zip((inputs.queries, inputs.keys), names, strict=True)
    ]


def _reading(layer: Attention, prefix: str) -> list[Any]:
    """Return nodes that read many tokens of each row, which give attention found, keys and values.

    Queries that share keys and values stand below each other, `[rows, shared heads, group * tokens,
    size]`, so that one product has them all. Sizes and order of its sums are those of a head.
    """
    from onnx import helper

    nodes: list[Any] = []

    def made(operator: str, inputs: Sequence[str], output: str, **options: Any) -> str:
        nodes.append(helper.make_node(operator, inputs, [prefix + output], **options))
        return prefix + output

    def reshaped(source: str, shape: str, output: str) -> str:
        return made("Reshape", [source, _PREFIX + shape], output)

    queries, keys, values = layer.token_values
    if (inputs := layer.plain_inputs) is not None:
        own = [f"{prefix}query", f"{prefix}key"]
        nodes += _rotated(inputs, own)
        queries, keys, values = (
            made("Transpose", [reshaped(tensor, shape, f"{name}_heads")], name, perm=[0, 2, 1, 3])
            for tensor, shape, name in (
                (own[0], "query_heads", "queries"),
                (own[1], "cached_heads", "new_keys"),
                (inputs.values, "cached_heads", "new_values"),
            )
        )
    keys = made("Concat", [layer.keys.input[0], keys], "keys", axis=2)
    values = made("Concat", [layer.values.input[0], values], "values", axis=2)
    grouped = reshaped(queries, "grouped", "grouped")
    scores = made(
        "FusedMatMul", [grouped, keys], "products", domain=MICROSOFT, transB=1, alpha=layer.scale
    )
    masked = made("Add", [reshaped(scores, "scores", "scores"), layer.mask], "masked")
    weights = reshaped(made("Softmax", [masked], "weights", axis=-1), "group_scores", "groups")
    reshaped(made("MatMul", [weights, values], "attended"), "ungrouped", "found")
    return nodes


def _joint(layer: Attention, prefix: str) -> list[Any]:
    """Return GroupQueryAttention and its nodes, which give attention found, keys and values.

    The operator's own scale would make its product of queries and keys twice as slow.
    """
    from onnx import TensorProto, helper

    make_node, own = helper.make_node, [f"{prefix}{name}" for name in ("query", "key", "value")]
    if (inputs := layer.plain_inputs) is None:
        shapes = [_PREFIX + shape for shape in ("queries", "cached", "cached")]
        parts = zip(layer.token_values, shapes, own, strict=True)
        nodes = [make_node("Reshape", [value, shape], [name]) for value, shape, name in parts]
    else:
        nodes = _rotated(inputs, own[:2])
        own[2] = inputs.values
    version = tuple(map(int, imported_runtime().__version__.split(".")[:2]))
    scores = version >= _GIVES_SCORES
    tensors = [f"{prefix}scaled", *own[1:], layer.keys.input[0], layer.values.input[0]]
    outputs = ["attended", "keys", "values", *(["scores"] if scores else [])]
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [1], [layer.scale])
    return [
        *nodes,
        make_node("Constant", [], [f"{prefix}scale"], value=scale),
        make_node("Mul", [own[0], f"{prefix}scale"], [f"{prefix}scaled"]),
        make_node(
            "GroupQueryAttention",
            [*tensors, f"{_PREFIX}lengths", f"{_PREFIX}longest"],
            [prefix + name for name in outputs],
            domain=MICROSOFT,
            num_heads=layer.heads,
            kv_num_heads=layer.shared_heads,
            scale=1.0,
            **({"qk_output": _AFTER_SOFTMAX} if scores else {}),
        ),
        make_node("Reshape", [f"{prefix}attended", f"{_PREFIX}found"], [f"{prefix}found"]),
    ]
