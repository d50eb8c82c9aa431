"""Reads a decoder's graph before it runs: what it computes with, and what has to be changed.

Changes are made in memory, without the weights where these are in the graph's file; no file is
written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairgate.onnx.attention import (
    COMPARISONS,
    ONNX,
    GraphIndex,
    import_microsoft,
    join_attention,
)
from fairgate.onnx.integer_products import MICROSOFT, PRODUCT
from fairgate.onnx.session import sound_model

POSITIONS_INPUT = "fairgate_positions"
"""int64 `[rows, positions, 1]`: which positions of each row get logits."""

_WINDOW = "local_window_size"
_WINDOW_CACHE = "sliding_window_cache"
_EXPERTS = frozenset({"MoE", "QMoE"})
_PICKED_PRODUCTS = frozenset({"NonZero", "MatMulNBits"})
_COARSE_KINDS = frozenset({10, 16})
"""TensorProto.FLOAT16 and BFLOAT16."""
_INTEGER_PRODUCT = 4
"""`accuracy_level` of MatMulNBits at which activations are rounded to 8 bits, block by block."""
_BY_FIRST = frozenset(
    {"Abs", "Cast", "Expand", "Flatten", "Identity", "Neg", "Reshape", "Squeeze", "Unsqueeze"}
)
_BY_ALL = frozenset({"Add", "Div", "Mod", "Sub"})
_NO_DISTANCE = 2**31 - 1
_HANDED_ON = frozenset(
    {"Cast", "Gather", "Identity", "ReduceMax", "Reshape", "Shape", "Slice", "Squeeze", "Unsqueeze"}
)
_SOURCES = frozenset({"attention_mask", "position_ids"})
_ELEMENTWISE = frozenset({"Add", "Cast", "Div", "Identity", "Mul", "Sub", "Tanh"})
_PROJECTIONS = frozenset({"MatMul", "MatMulNBits"})
_MAX_STEPS = 12
_GATHERS = 12
"""The first version of ONNX whose GatherND has batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFacts:
    """What a decoder graph computes with, as far as its nodes show."""

    operators: frozenset[str] = frozenset()
    windows: frozenset[int] = frozenset()
    """Sliding windows, in tokens, of the GroupQueryAttention nodes that have one."""
    mask_windows: frozenset[int] = frozenset()
    """Distances between slots that masks compare which the graph computes itself: its windows."""
    switch: int | None = None
    """Width of the attention mask above which other rotary factors are used."""
    coarse: bool = False
    """Whether anything is computed in less than float32."""

    @property
    def multiplies_integers(self) -> bool:
        """Whether layers multiply codes of 8 bits."""
        return PRODUCT in self.operators

    @property
    def counts_rows(self) -> bool:
        """Whether attention counts each row's own tokens, whatever slots they are in."""
        return "GroupQueryAttention" in self.operators

    @property
    def mixes_rows(self) -> bool:
        """Whether tokens of all rows are sorted by expert and multiplied together.

        How many there are decides how a product is summed, so the last bits of one row. Graphs of
        plain operators pick an expert's tokens with NonZero; their products stay equal in float32,
        not with weights of fewer bits, which one token alone is multiplied with in another order.
        """
        return bool(self.operators & _EXPERTS) or self.operators >= _PICKED_PRODUCTS

    @property
    def is_plain(self) -> bool:
        """Whether nothing counts tokens, slots or rows: no window, switch of factors or expert."""
        has_windows = bool(self.windows or self.mask_windows)
        return not has_windows and self.switch is None and not self.mixes_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderGraph:
    """A graph file's facts, and the changed graphs that replace it, best first."""

    facts: GraphFacts = field(default_factory=GraphFacts)
    contents: tuple[bytes | None, ...] = (None,)
    """None: the file as it is."""
    folder: Path | None = None
    """Where the weights of changed graphs are looked up; None: beside the graph's file."""


def read_decoder_graph(
    graph_file: Path, *, attends_to_all: bool, on_cpu: bool = False, joins: bool = False
) -> DecoderGraph:
    """Return the facts of a graph and the graphs to try.

    `attends_to_all`: whether every layer attends to the whole text, as far as the folder says.
    `joins`: whether attention is replaced where it can be, see `attention`.
    A file that cannot be read is left to the session that opens it, which reports the error.
    Raises ModelError without the package `onnx` and for an unsound graph, and OutOfMemoryError.
    """
    with sound_model(graph_file) as structure:
        if structure is None:
            return DecoderGraph()
        model, folder = structure
        index = GraphIndex(model)
        facts = GraphFacts(
            operators=frozenset(node.op_type for node in model.graph.node),
            windows=frozenset(_windows(model)),
            mask_windows=mask_windows(index),
            switch=width_switch(index),
            coarse=any(_coarse_steps(model)),
        )
        grown = _grow_window_caches(model)
        contents = [bytes(model.SerializeToString()) if grown else None]
        if attends_to_all and not facts.windows and not facts.mask_windows:
            drop_softmax_guards(model)
        for wanted, change in (
            (True, cut_to_positions),
            (True, widen_logits),
            (on_cpu, project_as_stored),
            (joins and attends_to_all and facts.is_plain, join_attention),
        ):
            if wanted and change(model):
                contents.insert(0, bytes(model.SerializeToString()))
        return DecoderGraph(facts=facts, contents=tuple(contents), folder=folder)


def _windows(model: Any) -> Iterator[int]:
    for node in model.graph.node:
        for attribute in node.attribute if node.op_type == "GroupQueryAttention" else ():
            if attribute.name == _WINDOW and attribute.i > 0:
                yield attribute.i


def _coarse_steps(model: Any) -> Iterator[bool]:
    for tensor in model.graph.initializer:
        yield tensor.data_type in _COARSE_KINDS
    for node in model.graph.node:
        yield node.op_type == PRODUCT
        for attribute in node.attribute:
            yield attribute.name == "to" and attribute.i in _COARSE_KINDS
            yield attribute.name == "accuracy_level" and attribute.i == _INTEGER_PRODUCT


def mask_windows(index: GraphIndex) -> frozenset[int]:
    """Return the numbers of slots that comparisons of slots, and bands cut of a mask, count.

    Differences of one, as in a causal mask, are none.

    Windows and chunks that stand in a mask only count slots of the cache, so that padding between a
    prompt and its answer takes tokens from them, as it does where `config.json` names a window.
    """
    return frozenset(
        distance
        for node in index.graph.node
        if node.op_type in COMPARISONS or node.op_type in {"Equal", "Trilu"}
        for distance in _distances(index, node)
    )


def _distances(index: GraphIndex, node: Any) -> Iterator[int]:
    """Yield the numbers that slots are compared with, or moved by before.

    Of a Trilu those that its diagonal is moved by.
    """
    is_band = node.op_type == "Trilu"
    waiting, visited = list(node.input[1:] if is_band else node.input), set[str]()
    slots, numbers = is_band, list[float]()
    while waiting:
        name = waiting.pop()
        maker = index.makers.get(name)
        if name in visited:
            continue
        visited.add(name)
        if maker is None or maker.op_type == "Constant":
            numbers += index.constants.get(name, [])
        elif maker.op_type == "Range":
            slots = True
        elif maker.op_type in _BY_FIRST:
            waiting += maker.input[:1]
        elif maker.op_type in _BY_ALL:
            waiting += maker.input
    for number in numbers if slots else ():
        if isinstance(number, int | float) and 1 < abs(number) < _NO_DISTANCE:
            yield int(abs(number))


def width_switch(index: GraphIndex) -> int | None:
    """Return the greatest width before the switch; None where no comparison decides on widths.

    LongRoPE models (Phi-3, Phi-4) have short and long factors. The onnxruntime-genai builder writes
    both and lets the mask's width, padding included, or the largest position of the batch choose.
    """
    widths = []
    for node in index.graph.node:
        if node.op_type not in COMPARISONS or len(node.input) != 2:
            continue
        for side, name in enumerate(node.input):
            numbers = index.constants.get(name, [])
            if len(numbers) != 1 or type(numbers[0]) is not int or numbers[0] < 2:
                continue
            if _is_a_width(index, node.input[1 - side]):
                # Up to n is alike where it is `width > n`; where it is `n > width`, n is another.
                alike = {"Greater", "LessOrEqual"} if side else {"Less", "GreaterOrEqual"}
                widths.append(numbers[0] - (node.op_type not in alike))
    return min(widths, default=None)


def _is_a_width(index: GraphIndex, name: str) -> bool:
    """Return whether a value is the shape of the mask, or the largest of all positions."""
    reduced = False
    for _ in range(_MAX_STEPS):
        if name in _SOURCES:
            return reduced
        node = index.makers.get(name)
        if node is None or node.op_type not in _HANDED_ON:
            return False
        reduced = reduced or node.op_type in {"Shape", "ReduceMax"}
        name = node.input[0]
    return False


def _grow_window_caches(model: Any) -> bool:
    """Let windowed layers keep a cache that grows like the others'; return whether one did not.

    With `sliding_window_cache` the operator wants a ring of fixed size, whose slots it counts in
    its own way. Without it the same operator attends to the same tokens of a growing cache.
    """
    changed = False
    for node in model.graph.node:
        for attribute in [entry for entry in node.attribute if entry.name == _WINDOW_CACHE]:
            node.attribute.remove(attribute)
            changed = True
    return changed


def _replace_nodes(graph: Any, nodes: Sequence[Any]) -> None:
    """Let a graph have these nodes of its own, in this order."""
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def drop_softmax_guards(model: Any) -> int:
    """Take the checks out of an `onnx.ModelProto` and return how many there were.

    Exporters replace what a softmax returns for a row without a single key, NaN, by zeros
    (`Where(IsNaN(softmax), 0, softmax)`). With prompts padded on the right, as this engine runs
    them, every row of attention to the whole text sees the first token at least, so that answers
    stay the same bit by bit. Padding on the left, and padding beyond a sliding window, has rows
    that see none.
    """
    index = GraphIndex(model)
    softmaxes = {
        node.output[0]: node.input[2]
        for node in model.graph.node
        if node.op_type == "Where"
        and index.made_by(node.input[2], "Softmax")
        and index.made_by(node.input[0], "IsNaN") == [node.input[2]]
        and node.output[0] not in index.outputs
    }
    for node in model.graph.node:
        node.input[:] = [softmaxes.get(name, name) for name in node.input]
    gone = set(softmaxes)
    for name in softmaxes:
        [check, *_] = index.makers[name].input
        if index.only_reader(check, "Where") is not None and check not in index.outputs:
            gone.add(check)
    if gone:
        _replace_nodes(model.graph, [n for n in model.graph.node if gone.isdisjoint(n.output)])
    return len(softmaxes)


def cut_to_positions(model: Any) -> bool:
    """Cut a loaded graph; return False, and change nothing, where the position to cut is in doubt.

    Found means: from the output `logits` back through elementwise operations with constants to
    one product, in whatever format, whose weights depend on no input. That makes the projection's
    data `[rows, positions, width]`. Results are the same bytes either way, only slower without.
    """
    import onnx

    projection = vocabulary_projection(model)
    logits = [value for value in model.graph.output if value.name == "logits"]
    dimensions = [dim for value in logits for dim in value.type.tensor_type.shape.dim][1:2]
    versions = [value.version for value in model.opset_import if value.domain in ONNX]
    keeps_one = any(dimension.dim_value == 1 for dimension in dimensions)
    if projection is None or max(versions, default=0) < _GATHERS or keeps_one:
        return False
    gather = onnx.helper.make_node(
        "GatherND", [projection.input[0], POSITIONS_INPUT], ["fairgate_kept_states"], batch_dims=1
    )
    index = next(n for n, node in enumerate(model.graph.node) if node is projection)
    projection.input[0] = gather.output[0]
    model.graph.node.insert(index, gather)
    del model.graph.value_info[:]  # shapes behind the cut have changed
    model.graph.input.append(
        onnx.helper.make_tensor_value_info(
            POSITIONS_INPUT, onnx.TensorProto.INT64, ["fairgate_rows", "fairgate_kept", 1]
        )
    )
    for dimension in dimensions:
        dimension.Clear()
        dimension.dim_param = "fairgate_kept"
    return True


def widen_logits(model: Any) -> bool:
    """Let a loaded graph give its logits in float32; return False where they are no float16.

    The values stay the same. Processors compare and sum numbers of half precision one by one:
    taking the greatest of 64 rows of 128,256 logits takes 42 ms in float16 and 1 ms in float32.
    """
    import onnx

    logits = [
        output
        for output in model.graph.output
        if output.name == "logits" and output.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
    ]
    makers = [node for node in model.graph.node if "logits" in node.output]
    is_read = any("logits" in node.input for node in model.graph.node)
    if not logits or not makers or is_read:
        return False
    half = "fairgate_half_logits"
    makers[0].output[:] = [half if name == "logits" else name for name in makers[0].output]
    model.graph.node.append(
        onnx.helper.make_node("Cast", [half], ["logits"], to=onnx.TensorProto.FLOAT)
    )
    logits[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    del model.graph.value_info[:]
    return True


def project_as_stored(model: Any) -> bool:
    """Let a loaded graph multiply with the vocabulary's vectors as they are stored, by row.

    Models that read and write with the same vectors have them once, and transpose them for the
    product: a session computes that when it opens, and holds one more copy. FusedMatMul takes them
    as they are, and is the same product once weights are packed:
    https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md. Return False,
    unchanged, where the projection is another one.
    """
    import onnx

    projection = vocabulary_projection(model)
    index = GraphIndex(model)
    if projection is None or projection.op_type != "MatMul":
        return False
    turned = index.makers.get(projection.input[1])
    sources = index.made_by(projection.input[1], "Transpose")
    stored = [
        tensor
        for tensor in model.graph.initializer
        if tensor.name in sources and tensor.data_type == onnx.TensorProto.FLOAT
    ]
    if turned is None or not stored or len(stored[0].dims) != 2:
        return False
    projection.input[1] = stored[0].name
    projection.op_type, projection.domain = "FusedMatMul", MICROSOFT
    projection.attribute.append(onnx.helper.make_attribute("transB", 1))
    if len(index.readers[turned.output[0]]) == 1 and turned.output[0] not in index.outputs:
        model.graph.node.remove(turned)
    import_microsoft(model)
    return True


def vocabulary_projection(model: Any) -> Any | None:
    """Return the node that multiplies hidden states with the vocabulary's vectors."""
    producers = GraphIndex(model).makers
    constant = {tensor.name for tensor in model.graph.initializer}
    varying = {node.name for node in model.graph.input} - constant
    """What an input of the graph can change."""
    for node in model.graph.node:  # in topological order, as ONNX demands
        has_subgraph = any(attribute.HasField("g") for attribute in node.attribute)
        if has_subgraph or not varying.isdisjoint(node.input):
            varying.update(node.output)
    name = "logits"
    for _ in range(_MAX_STEPS):
        if (node := producers.get(name)) is None:
            return None
        moving = [source for source in node.input if source in varying]
        if node.op_type in _PROJECTIONS:
            return node if moving == [node.input[0]] else None
        if node.op_type not in _ELEMENTWISE or len(moving) != 1:
            return None
        name = moving[0]
    return None
