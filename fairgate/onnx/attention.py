"""Finds each layer's attention in a decoder graph, and gives it a second way to attend.

Layers are recognised by the nodes that exporters write. An exported graph appends each token's key
and value behind the widest row, copies the whole cache for that and repeats it for every group of
heads. The operator GroupQueryAttention reads each row's own tokens only, wherever the others end,
and writes the new ones into the cache in place: Ainslie et al., GQA: Training Generalized
Multi-Query Transformer Models, EMNLP 2023; the layout is that of
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.

Both ways stand in one graph, behind an `If` on the input `JOINT_INPUT`, so that they share weights
and prompts are read as before, bit by bit. A graph in which any layer's attention is not the plain
one in float32 is left as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from fairgate.onnx.session import imported_runtime
from fairgate.onnx.shared_heads import SharedHeads

JOINT_INPUT = "fairgate_joint"
"""bool `[1]`: whether one token is added to each row of a cache without gaps."""
COMPARISONS = frozenset({"Greater", "GreaterOrEqual", "Less", "LessOrEqual"})

MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""
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
_REPEATS = frozenset({"Expand", "Reshape", "Unsqueeze"})
_REPEATS_AT_MOST = 3
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
"""Tokens: the trial of joint steps shows what masks do within so many."""
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
    """`[rows, 1, tokens, size]`, in which both halves of a size are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """One layer: where keys and values come from, and the product that ends it."""

    product: Any
    query: str
    """`[rows, heads, tokens, size]`, before any scale."""
    scale: float
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
    def given(self) -> tuple[str, str, str]:
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
        if product is None or not factors or not self.hides_plainly(mask):
            return None
        query, first = self._unscaled(factors[0])
        turned, second = self._unscaled(factors[1])
        keys = self._cache(self._turned(turned, [0, 1, 3, 2]))
        values = self._cache(product.input[1])
        if keys is None or values is None:
            return None
        shared, size, kind = self._sizes(keys)
        heads, rest = divmod(self._width(product), size or 1)
        alike = shared and size and self._sizes(values) == (shared, size, kind)
        if not alike or not heads or rest or heads % shared:
            return None
        return Attention(
            product=product,
            query=query,
            scale=first * second,
            keys=keys,
            values=values,
            heads=heads,
            shared_heads=shared,
            size=size,
            kind=kind,
            plain_inputs=self.plain_inputs(query, keys.input[1], values.input[1]),
        )

    def plain_inputs(self, query: str, key: str, value: str) -> PlainInputs | None:
        """Return the inputs of these three, `[rows, heads, tokens, size]`, before rotation, if any.

        Exporters write a rotary embedding as `x * cosine + turned(x) * sine`, about ten nodes for
        queries and ten for keys (Su et al., RoFormer, 2021, in the halves that Llama's weights are
        stored for). One operator does the same: Microsoft's RotaryEmbedding,
        https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
        """
        queries, keys = self._unturned(query), self._unturned(key)
        values = self._by_token(value)
        if queries is None or keys is None or not values or queries[1:] != keys[1:]:
            return None
        return PlainInputs(queries[0], keys[0], values, *queries[1:])

    def _unturned(self, name: str) -> tuple[str, str, str] | None:
        """Return the value before rotation, `[rows, tokens, heads * size]`, cosines and sines."""
        products = [self.made_by(part, "Mul") for part in self.made_by(name, "Add")]
        if len(products) != 2 or not all(products):
            return None
        (straight, cosines), (turned, sines) = products
        second, first = [*self.made_by(turned, "Concat"), "", ""][:2]
        [behind] = self.made_by(second, "Neg") or [""]
        halves = [self.made_by(part, "Slice")[:1] for part in (first, behind)]
        flat = self._by_token(straight)
        return (flat, cosines, sines) if flat and halves == [[straight], [straight]] else None

    def _by_token(self, name: str) -> str:
        """Return `[rows, tokens, heads * size]` of what is `[rows, heads, tokens, size]`."""
        return [*self.made_by(self._turned(name, [0, 2, 1, 3]), "Reshape"), ""][0]

    def _turned(self, name: str, order: list[int]) -> str:
        """Return the value of which a Transpose of this order makes one; empty if another does."""
        [source] = self.made_by(name, "Transpose") or [""]
        return source if source and _attribute(self.makers[name], "perm") == order else ""

    def hides_plainly(self, mask: str) -> bool:
        """Return whether a mask compares slots once and knows no place beyond what is tried out.

        Operators that attend by themselves know one mask only. A window, a chunk, a prefix that
        everyone sees or a bias by distance (ALiBi) may stand in a graph while `config.json` is
        silent. Within `_TRIED` tokens the trial shows them; what is wider needs a number, or a
        table. So a mask is followed node by node to the sizes, slots and `attention_mask` it comes
        from, and one with a node or a number that is not known here is no plain one. Known are the
        masks that optimum writes of transformers 4.46 and later.
        """
        from onnx import numpy_helper

        waiting, seen, compared = [mask], set[str](), 0
        while waiting:
            name = waiting.pop()
            node = self.makers.get(name)
            if name in seen or (name == _PADDING and node is None):
                continue
            seen.add(name)
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

    def nodes_of(self, layer: Attention) -> list[Any]:
        """Return the nodes that only this layer's attention needs, in order.

        They begin with its plain inputs if it has any, else with query, key and value.
        """
        inputs = set(layer.plain_inputs or layer.given)
        chosen = {id(node): node for node in (layer.product, layer.keys, layer.values)}
        waiting = list(chosen.values())
        while waiting:
            for name in waiting.pop().input:
                node = self.makers.get(name)
                if node is None or not inputs.isdisjoint(node.output):
                    continue
                readers = [reader for made in node.output for reader in self.readers.get(made, ())]
                alone = all(id(reader) in chosen for reader in readers)
                if alone and id(node) not in chosen and self.outputs.isdisjoint(node.output):
                    chosen[id(node)] = node
                    waiting.append(node)
        return sorted(chosen.values(), key=lambda node: self._order[id(node)])

    @cached_property
    def _order(self) -> dict[int, int]:
        """The place of each node in the graph."""
        return {id(node): place for place, node in enumerate(self.graph.node)}

    def _unscaled(self, name: str) -> tuple[str, float]:
        """Return a value before its multiplication with a constant, and that constant."""
        factors = self.made_by(name, "Mul")
        numbers = self.constants.get(factors[1], []) if factors else []
        return (factors[0], float(numbers[0])) if len(numbers) == 1 else (name, 1.0)

    def _cache(self, name: str) -> Any | None:
        """Return the node that appends to a cache, behind what repeats it for groups of heads."""
        for _ in range(_REPEATS_AT_MOST + 1):
            if (maker := self.makers.get(name)) is None:
                return None
            if maker.op_type == "Concat":
                appends = len(maker.input) == 2 and _PAST.match(maker.input[0]) is not None
                return maker if appends and _attribute(maker, "axis") in {2, -2} else None
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
        for operator in ("Mul", "QuantizeLinear", "MatMulInteger"):
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
    """Add that way to an `onnx.ModelProto`; return False, unchanged, where they do not fit.

    With `JOINT_INPUT` set, the tokens are one per row, and keys and values lie without gaps from
    slot 0 on, as many as `position_ids` say, or else one less than `attention_mask` marks. Whether
    both ways agree is for the caller to try out: layers are recognised by their nodes, not by their
    meaning.
    """
    from onnx import TensorProto, helper

    versions = [entry.version for entry in model.opset_import if entry.domain in ONNX]
    index = GraphIndex(model)
    layers = index.attention() if max(versions, default=0) >= _OLDEST else []
    if not layers or any(layer.kind != _FLOAT32 for layer in layers):
        return False
    replaced: dict[int, list[Any]] = {}
    turned: set[str] = set()
    shared = SharedHeads(index, layers[0], _PREFIX)
    for number, layer in enumerate(layers):
        own = index.nodes_of(layer)
        replaced |= {id(node): [] for node in own}
        angles = [] if layer.plain_inputs is None else [*layer.plain_inputs[-2:]]
        tables = [node for angle in angles if angle not in turned for node in _table(angle)]
        turned.update(angles)
        prefix = f"{_PREFIX}{number}_"
        plain = shared.unrepeated(layer, own, prefix) if shared.fit else own
        replaced[id(own[-1])] = [*tables, _either(layer, plain, prefix)]
    nodes = _lengths(model, layers[0])
    if shared.fit:
        tensors, shapes = shared.shapes()
        model.graph.initializer.extend(tensors)
        nodes += shapes
    for node in model.graph.node:
        nodes += replaced.get(id(node), [node])
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


def _either(layer: Attention, plain: Sequence[Any], prefix: str) -> Any:
    """Return an `If` that makes what a layer finds and its caches in one of both ways."""
    from onnx import NodeProto, helper

    outputs = [node.output[0] for node in (layer.product, layer.keys, layer.values)]

    def branch(name: str, nodes: Sequence[Any], output_names: Sequence[str]) -> Any:
        values = [
            helper.make_tensor_value_info(output, layer.kind, None) for output in output_names
        ]
        return helper.make_graph(nodes, f"{prefix}{name}", [], values)

    inner = {name: f"{prefix}plain_{number}" for number, name in enumerate(outputs)}
    copies = []
    for node in plain:
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [inner.get(name, name) for name in node.input]
        copy.output[:] = [inner.get(name, name) for name in node.output]
        copies.append(copy)
    joint = [f"{prefix}{name}" for name in ("found", "keys", "values")]
    return helper.make_node(
        "If",
        [JOINT_INPUT],
        outputs,
        name=f"{prefix}either",
        then_branch=branch("joint", _joint(layer, prefix), joint),
        else_branch=branch("plain", copies, list(inner.values())),
    )


def _lengths(model: Any, layer: Attention) -> list[Any]:
    """Return nodes that count each row's tokens, less one, those of the longest row, and rows.

    Adds the constants that these and all layers read.
    """
    from onnx import TensorProto, helper

    width = layer.size // 2
    shapes = {
        "queries": [-1, 1, layer.heads * layer.size],
        "cached": [-1, 1, layer.shared_heads * layer.size],
        "found": [-1, layer.heads, 1, layer.size],
        "angles": [-1, width],
        "half": [width],
        "last": [3],
        "first": [0],
        "flat": [-1],
        "column": [-1, 1],
        "axis": [1],
        "one": [1],
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
        return helper.make_node(operator, inputs, [_PREFIX + output], **options)

    before = [
        made("ReduceSum", [_PADDING, f"{_PREFIX}axis"], "sums", keepdims=0),
        made("Sub", [f"{_PREFIX}sums", f"{_PREFIX}one"], "before"),
    ]
    if any(value.name == _POSITIONS for value in model.graph.input):
        before = [made("Reshape", [_POSITIONS, f"{_PREFIX}flat"], "before")]
    return [
        *before,
        made("Cast", [f"{_PREFIX}before"], "lengths", to=TensorProto.INT32),
        made("ReduceMax", [f"{_PREFIX}lengths"], "most", keepdims=0),
        made("Add", [f"{_PREFIX}most", f"{_PREFIX}token"], "longest"),
        made("Size", [f"{_PREFIX}before"], "size"),
        made("Range", [f"{_PREFIX}none", f"{_PREFIX}size", f"{_PREFIX}each"], "places"),
        made("Reshape", [f"{_PREFIX}places", f"{_PREFIX}column"], "rows"),
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


def _joint(layer: Attention, prefix: str) -> list[Any]:
    """Return GroupQueryAttention and its nodes, which give attention found, keys and values.

    The operator's own scale would make its product of queries and keys twice as slow.
    """
    from onnx import TensorProto, helper

    make_node, own = helper.make_node, [f"{prefix}{name}" for name in ("query", "key", "value")]
    if (inputs := layer.plain_inputs) is None:
        shapes = [_PREFIX + shape for shape in ("queries", "cached", "cached")]
        parts = zip(layer.given, shapes, own, strict=True)
        nodes = [make_node("Reshape", [value, shape], [name]) for value, shape, name in parts]
    else:
        tables = [f"{_PREFIX}rows", f"{inputs.cosines}_table", f"{inputs.sines}_table"]
        nodes = [
            make_node("RotaryEmbedding", [tensor, *tables], [name], domain=MICROSOFT)
            for tensor, name in zip((inputs.queries, inputs.keys), own, strict=False)
        ]
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
