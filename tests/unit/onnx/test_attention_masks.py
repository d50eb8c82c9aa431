"""A graph whose mask hides or weighs anything else than what operators do keeps its own nodes."""

import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
from fakes.decoders import DEMO, TokenDecoder, demo_graph, session_of
from onnx import TensorProto, helper, numpy_helper

from fairgate.onnx.attention import GraphIndex, join_attention

WINDOW = 100
"""More than a trial reads, so that only the nodes show it."""
made = helper.make_node


def number(model, name, value):
    kept = numpy_helper.from_array(np.array(value), name)
    model.graph.initializer.append(kept)
    return name


def insert_before(model, reader, nodes):
    place = next(n for n, node in enumerate(model.graph.node) if node is reader)
    for node in reversed(nodes):
        model.graph.node.insert(place, node)


def narrowed(model, nodes):
    """Let the causal comparison of slots be joined with the value `more`, which nodes make."""
    causal = next(node for node in model.graph.node if node.op_type == "LessOrEqual")
    result, causal.output[0] = causal.output[0], "causal"
    place = next(n for n, node in enumerate(model.graph.node) if node is causal)
    joined = made("And", ["causal", "more"], [result])
    for node in reversed([*nodes(*causal.input), joined]):
        model.graph.node.insert(place + 1, node)
    return model


def sub_less(model):
    least = number(model, "window", WINDOW)
    return narrowed(
        model,
        lambda keys, queries: [
            made("Sub", [queries, keys], ["apart"]),
            made("Less", ["apart", least], ["more"]),
        ],
    )


def chunks(model):
    size = number(model, "chunk", WINDOW)
    return narrowed(
        model,
        lambda keys, queries: [
            made("Div", [keys, size], ["one"]),
            made("Div", [queries, size], ["other"]),
            made("Equal", ["one", "other"], ["more"]),
        ],
    )


def documents(model):
    """Tokens see those of their own document: what ids say, not where they stand."""
    end = number(model, "end", 1)
    return narrowed(model, lambda *_: [made("Less", ["input_ids", end], ["more"])])


def a_stored_band(model):
    band = np.tri(300, dtype=bool) & ~np.tri(300, k=-WINDOW, dtype=bool)
    name = number(model, "band", band[None, None])
    return narrowed(model, lambda *_: [made("Identity", [name], ["more"])])


def biased(model, nodes, layers=None):
    """Add to the masks of these layers, all if None, what nodes make as `bias`."""
    attending = [node for node in model.graph.node if node.op_type == "Softmax"]
    for place, softmax in enumerate(attending):
        masked = next(node for node in model.graph.node if softmax.input[0] in node.output)
        if layers is None or place in layers:
            inserted = nodes if place == min(layers or [0]) else []
            sum_ = made("Add", [masked.input[1], "bias"], [f"biased {place}"])
            insert_before(model, masked, [*inserted, sum_])
            masked.input[1] = f"biased {place}"
    return model


def alibi(model, layers=None):
    causal = next(node for node in model.graph.node if node.op_type == "LessOrEqual")
    slopes = np.array([2.0**-n for n in range(1, 5)], dtype=np.float32)
    name = number(model, "slopes", slopes[:, None, None])
    nodes = [
        made("Cast", [causal.input[0]], ["far"], to=TensorProto.FLOAT),
        made("Mul", [name, "far"], ["bias"]),
    ]
    return biased(model, nodes, layers)


def a_window_in_one_layer(model):
    """As in Gemma, whose layers alternate."""
    causal = next(node for node in model.graph.node if node.op_type == "LessOrEqual")
    keys, queries = causal.input
    least = number(model, "window", WINDOW)
    zero, hidden = (number(model, n, np.float32(v)) for n, v in (("see", 0.0), ("not", -np.inf)))
    nodes = [
        made("Sub", [queries, least], ["first"]),
        made("Greater", [keys, "first"], ["near"]),
        made("Where", ["near", zero, hidden], ["bias"]),
    ]
    return biased(model, nodes, layers=[2])


def a_bias_of_text(model):
    model.graph.initializer.append(helper.make_tensor("bias", TensorProto.STRING, [1], [b"far"]))
    return biased(model, [])


@pytest.mark.parametrize(
    "change", [sub_less, chunks, documents, a_stored_band, a_window_in_one_layer, a_bias_of_text]
)
def test_a_graph_whose_mask_hides_or_weighs_anything_else_is_left_as_it_is(change):
    assert len(GraphIndex(demo_graph()).attention()) == 3
    model = change(demo_graph())
    before = model.SerializeToString()
    assert not join_attention(model)
    assert model.SerializeToString() == before


def changed_folder(folder, change):
    shutil.copytree(DEMO, folder)
    onnx.save(change(onnx.load(str(DEMO / "model.onnx"))), str(folder / "model.onnx"))
    return folder


@pytest.mark.parametrize("layers", [None, [1]])
def test_a_bias_by_distance_is_seen_where_it_is_tried_out(layers, tmp_path):
    folder = changed_folder(tmp_path / "m", lambda model: alibi(model, layers))
    assert not session_of(folder).joins


def last_logits(graph, tokens):
    """Return the logits after the last token by the graph's own nodes."""
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    row = np.array([tokens])
    feeds = {"input_ids": row, "attention_mask": np.ones_like(row)}
    feeds["position_ids"] = np.arange(len(tokens))[None]
    for value in session.get_inputs():
        if value.name.startswith("past_key_values."):
            feeds[value.name] = np.zeros((1, value.shape[1], 0, value.shape[3]), np.float32)
    return session.run(["logits"], feeds)[0][0, -1]


@pytest.mark.walk(2)
@pytest.mark.parametrize("change", [sub_less, a_window_in_one_layer])
@pytest.mark.parametrize("config", ["silent", "empty"])
def test_a_window_that_only_the_mask_has_is_kept(change, config, tmp_path):
    folder = changed_folder(tmp_path / "windowed", change)
    if config == "empty":
        (folder / "config.json").write_text("{}")
    session = session_of(folder)
    tokens = np.random.default_rng(5).integers(3, 1000, 2 * WINDOW).tolist()
    expected = last_logits(folder / "model.onnx", tokens)
    assert np.abs(last_logits(DEMO / "model.onnx", tokens) - expected).max() > 0.1
    assert np.abs(session.prefill([tokens], len(tokens))[0][0, 0] - expected).max() < 1e-3
    assert not session.joins


@pytest.mark.walk(1)
@pytest.mark.parametrize("change", [sub_less, chunks])
def test_a_window_that_only_the_mask_has_counts_slots_as_a_declared_one(change, tmp_path):
    folder = changed_folder(tmp_path / "windowed", change)
    rng = np.random.default_rng(6)
    prompts = [rng.integers(3, 1000, size).tolist() for size in (20, 2 * WINDOW + 1)]
    engine = TokenDecoder(folder, 4)
    found = engine.answers(prompts)
    assert engine._session.reach.slot_window == WINDOW
    for prompt, answer in zip(prompts, found, strict=True):
        row = list(prompt)
        for token in answer:
            assert token == last_logits(folder / "model.onnx", row).argmax()
            row.append(token)


def scattered_mask(trilu=1, filled=-3.4e38):
    """A mask as optimum writes those of transformers up to 4.52: numbers that are scattered."""
    fill = helper.make_tensor("fill", TensorProto.FLOAT, [1], [filled])
    whole = numpy_helper.from_array
    constants = {"none": 0, "each": 1, "above": trilu, "zero": np.float32(0.0)}
    constants |= {"low": np.array([-(2.0**100)], np.float32), "to": [0], "all": [2**31 - 1]}
    nodes = [
        made("Shape", ["attention_mask"], ["sizes"]),
        made("Gather", ["sizes", "each"], ["width"]),
        made("ConstantOfShape", ["sizes"], ["full"], value=fill),
        made("Trilu", ["full", "above"], ["triangle"], upper=1),
        made("Range", ["none", "width", "each"], ["slots"]),
        made("Greater", ["slots", "slots"], ["later"]),
        made("Cast", ["later"], ["as numbers"], to=TensorProto.FLOAT),
        made("Mul", ["triangle", "as numbers"], ["causal"]),
        made("Slice", ["causal", "to", "all", "to", "each"], ["part"]),
        made("Add", ["part", "attention_mask"], ["sum"]),
        made("Equal", ["sum", "zero"], ["padding"]),
        made("Where", ["padding", "low", "part"], ["updates"]),
        made("Slice", ["slots", "to", "all", "to", "each"], ["some"]),
        made("Concat", ["some", "slots"], ["places"], axis=-1),
        made("ScatterND", ["causal", "places", "updates"], ["mask"]),
    ]
    tensors = [whole(np.array(value), name) for name, value in constants.items()]
    return helper.make_model(helper.make_graph(nodes, "mask", [], [], tensors))


@pytest.mark.parametrize(
    ("options", "plain"),
    [({}, True), ({"trilu": 0}, True), ({"trilu": -WINDOW}, False), ({"filled": 100.0}, False)],
)
def test_masks_that_are_scattered_are_plain_without_another_number(options, plain):
    assert GraphIndex(scattered_mask(**options)).hides_plainly("mask") is plain
