"""Multiplies keys and values that heads share without copying them for each head.

Exporters repeat each shared head for its group of queries (`Unsqueeze`, `Expand`, `Reshape`, and
twenty nodes that compute shapes), which copies the whole cache in every layer and run. The same
products follow from `[rows, shared heads, group, tokens, size]` by broadcasting: their sizes and
their order of sums stay, and so do their bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairgate.onnx.attention import Attention, GraphIndex

_MASK = "attention_mask"
"""int `[rows, slots]`: as wide as a layer's keys, those of the cache included."""
_GROUP_AXIS = 2
_SLOT_AXES = frozenset({2, -2})
_TO_KEYS = (0, 1, 2, 4, 3)


class SharedHeads:
    """The shapes of one graph's attention, and its layers with shared heads as they are."""

    def __init__(self, index: GraphIndex, layer: Attention, prefix: str) -> None:
        """Take a graph whose layers have the sizes of `layer`; names of new values begin alike."""
        self._index, self._prefix = index, prefix
        self._heads, self._shared, self._size = layer.heads, layer.shared_heads, layer.size
        self._group = layer.heads // layer.shared_heads

    @property
    def fit(self) -> bool:
        """Whether there are groups, and an input tells how many slots scores have."""
        inputs = {value.name for value in self._index.graph.input}
        return self._group > 1 and _MASK in inputs

    def shapes(self) -> tuple[list[Any], list[Any]]:
        """Return the tensors and nodes that all layers read; nodes stand before the first one."""
        from onnx import TensorProto, helper

        lengths = {
            "queries": [0, self._shared, self._group, -1, self._size],
            "cached": [0, self._shared, 1, -1, self._size],
            "attended": [0, self._heads, -1, self._size],
            "whole": [0, self._heads, -1],
            "parts": [0, self._shared, self._group, -1],
            "first": [1],
            "second": [2],
        }
        tensors = [
            helper.make_tensor(self._named(name), TensorProto.INT64, [len(content)], content)
            for name, content in lengths.items()
        ]
        ends = [self._named("first"), self._named("second")]
        nodes = [
            helper.make_node("Shape", [_MASK], [self._named("mask")]),
            helper.make_node("Slice", [self._named("mask"), *ends], [self._named("slots")]),
        ]
        nodes += [
            helper.make_node(
                "Concat", [self._named(name), self._named("slots")], [self._named(of)], axis=0
            )
            for name, of in (("whole", "scores"), ("parts", "grouped"))
        ]
        return tensors, nodes

    def _named(self, name: str) -> str:
        return f"{self._prefix}heads_{name}"

    def unrepeated(self, layer: Attention, nodes: Sequence[Any], prefix: str) -> Sequence[Any]:
        """Return a layer's nodes with products by groups; those given where they do not fit.

        `nodes` end in the layer's product and its cache, and are left unchanged.
        """
        product, index = layer.product, self._index
        softmax = index.makers[product.input[0]]
        scores = index.makers[index.made_by(softmax.input[0], "Add")[0]]
        keys = self._turned(scores.input[1])
        repeated = [] if keys is None else [keys.input[0], product.input[1]]
        caches = [layer.keys.output[0], layer.values.output[0]]
        if keys is None or [self._source(name) for name in repeated] != caches:
            return nodes
        between = {*keys.output, *softmax.output, *scores.input, *scores.output} - {layer.query}
        if any(len(index.readers[name]) > 1 for name in between):
            return nodes
        changes = dict(self._changes(layer, scores, keys, prefix))
        changed = [new for node in nodes for new in changes.get(id(node), [node])]
        return _needed(changed, [product.output[0], *caches])

    def _turned(self, name: str) -> Any | None:
        """Return the Transpose that makes the second factor of scores, behind a scale."""
        node = self._index.makers.get(name)
        if node is not None and node.op_type == "Mul":
            node = self._index.makers.get(node.input[0])
        return node if node is not None and node.op_type == "Transpose" else None

    def _source(self, name: str) -> str:
        """Name of the value that one new axis of the group's size repeats; empty where none is."""
        index = self._index
        [expanded] = index.made_by(name, "Reshape")[:1] or [""]
        [widened] = index.made_by(expanded, "Expand")[:1] or [""]
        [source, *axes] = index.made_by(widened, "Unsqueeze") or [""]
        numbers = [index.constants.get(axis) for axis in axes]
        return source if numbers == [[_GROUP_AXIS]] else ""

    def _changes(
        self, layer: Attention, scores: Any, keys: Any, prefix: str
    ) -> Iterator[tuple[int, list[Any]]]:
        """Yield what stands in place of nodes, by their identity."""
        from onnx import helper

        def reshaped(source: str, shape: str, output: str) -> Any:
            return helper.make_node("Reshape", [source, self._named(shape)], [output])

        own = {
            name: f"{prefix}grouped_{name}"
            for name in ("queries", "keys", "values", "scores", "weights", "attended")
        }
        is_scaled = scores.input[0] != layer.query
        reader = self._index.makers[scores.input[0]] if is_scaled else scores
        queries = [reshaped(layer.query, "queries", own["queries"])]
        turned = _with(keys, {keys.input[0]: own["keys"]})
        turned.attribute[0].ints[:] = _TO_KEYS
        yield id(keys), [reshaped(layer.keys.output[0], "cached", own["keys"]), turned]
        if is_scaled:
            yield id(reader), [*queries, _with(reader, {layer.query: own["queries"]})]
            queries = []
        renamed = {layer.query: own["queries"], scores.output[0]: own["scores"]}
        yield (
            id(scores),
            [
                *queries,
                _with(scores, renamed),
                reshaped(own["scores"], "scores", scores.output[0]),
            ],
        )
        weights, values = layer.product.input
        renamed = {weights: own["weights"], values: own["values"]}
        renamed[layer.product.output[0]] = own["attended"]
        yield (
            id(layer.product),
            [
                reshaped(weights, "grouped", own["weights"]),
                reshaped(layer.values.output[0], "cached", own["values"]),
                _with(layer.product, renamed),
                reshaped(own["attended"], "attended", layer.product.output[0]),
            ],
        )
        for node in self._index.readers[keys.input[0]]:
            if node.op_type == "Shape" and self._counts_slots(node):
                yield id(node), [_with(node, {keys.input[0]: layer.keys.output[0]})]

    def _counts_slots(self, shape: Any) -> bool:
        """Return whether all that is read of a shape is how many slots there are."""
        readers = self._index.readers.get(shape.output[0], [])
        numbers = [
            self._index.constants.get(node.input[1], []) if node.op_type == "Gather" else []
            for node in readers
        ]
        return all(len(number) == 1 and number[0] in _SLOT_AXES for number in numbers)


def _with(node: Any, names: dict[str, str]) -> Any:
    """Return a copy of a node with other names of inputs and outputs."""
    from onnx import NodeProto

    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    return copy


def _needed(nodes: Sequence[Any], outputs: Sequence[str]) -> list[Any]:
    """Return the nodes that outputs depend on, in their order."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            wanted.update(node.input)
            kept.append(node)
    return kept[::-1]
