"""Rows of unlike lengths answer together, and no bit of one depends on the others."""

import random
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from fakes.decoders import DEMO, BitsDecoder, TokenDecoder, demo_graph, session_of
from onnx import helper, numpy_helper
from packaging.requirements import Requirement

from fairgate.onnx import attention, decoder_graph
from fairgate.onnx.attention import JOINT_INPUT, GraphIndex, join_attention
from fairgate.onnx.decoder_session import DecoderSession, JointRows

ROOT = Path(__file__).parents[3]
RNG = np.random.default_rng(7)
LENGTHS = (1, 2, 31, 32, 33, 64, 65, 90, 128, 129, 200)
PROMPTS = [RNG.integers(3, 1000, size).tolist() for size in LENGTHS]
STEPS = 70
"""More than the slots that are kept free, so that the cache grows."""


class Uneven(BitsDecoder):
    """Ends each row after a number of tokens of its own."""

    def _take(self, row, logits, likeliest):
        super()._take(row, logits, likeliest)
        if len(row.tokens) >= 1 + 29 * len(row.prompt) % STEPS:
            row.stopped = row.stopped or "end"


@pytest.fixture(scope="module")
def alone():
    engine = Uneven(DEMO, STEPS, threads=1)
    return [engine.bits_of([prompt])[0] for prompt in PROMPTS]


@pytest.mark.walk(1)
@pytest.mark.parametrize(("batch_size", "threads"), [(1, 2), (3, 1), (32, 2)])
def test_no_bit_of_a_step_depends_on_the_rows_beside_it(alone, batch_size, threads):
    assert len({len(bits) for bits in alone}) > 5
    order = random.Random(batch_size).sample(range(len(PROMPTS)), len(PROMPTS))
    engine = Uneven(DEMO, STEPS, batch_size=batch_size, threads=threads)
    assert engine._session.joins
    assert engine.bits_of([PROMPTS[place] for place in order]) == [alone[n] for n in order]


def test_replaced_attention_reads_prompts_as_the_graphs_own(monkeypatch):
    rows = PROMPTS[:4]
    replaced, cache = session_of().prefill(rows, 40)
    monkeypatch.setattr(decoder_graph, "join_attention", lambda _: False)
    plain, expected = session_of().prefill(rows, 40)
    assert np.allclose(replaced, plain, rtol=0, atol=1e-5 * np.abs(plain).max())
    for own, value in zip(cache.values, expected.values, strict=True):
        for place, row in enumerate(rows):  # what padding has there is read by nothing
            slots = np.s_[place, :, : len(row)]
            assert np.allclose(own.numpy()[slots], value.numpy()[slots], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("by", ["scale", "batch"])
def test_where_steps_do_not_follow_from_reading_attention_is_the_graphs_own(by, monkeypatch):
    if by == "scale":
        joint = attention._joint
        monkeypatch.setattr(
            attention,
            "_joint",
            lambda layer, prefix: joint(replace(layer, scale=1.5 * layer.scale), prefix),
        )
    else:
        run = DecoderSession.step_in_place
        monkeypatch.setattr(
            DecoderSession,
            "step_in_place",
            lambda self, arrays, lengths, tokens: (
                run(self, arrays, lengths, tokens) * np.float32(1 + 2e-7 * (len(tokens) > 2))
            ),
        )
    engine = TokenDecoder(DEMO, 6)
    assert JOINT_INPUT not in engine._session._inputs
    assert not engine._session.joins
    monkeypatch.undo()
    assert engine.answers(PROMPTS) == TokenDecoder(DEMO, 6).answers(PROMPTS)


def changed_axis(model):
    node = next(n for n in model.graph.node if n.input and n.input[0] == "past_key_values.1.key")
    node.attribute[0].i = 1


def older(model):
    model.opset_import[0].version = 12


def halved(model):
    """In float16 the last bit of a step depends on the batch: `make test-export` sees it."""
    for value in model.graph.input:
        if value.name.startswith("past_key_values."):
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16


@pytest.mark.parametrize("change", [changed_axis, older, halved])
def test_a_graph_with_any_other_attention_is_left_as_it_is(change):
    model = demo_graph()
    change(model)
    before = model.SerializeToString()
    assert not join_attention(model)
    assert model.SerializeToString() == before


def test_layers_whose_rotation_is_another_join_by_what_it_gives(monkeypatch):
    expected = TokenDecoder(DEMO, 20).answers(PROMPTS)
    monkeypatch.setattr(GraphIndex, "plain_inputs", lambda *_: None)
    engine = TokenDecoder(DEMO, 20)
    assert engine._session.joins
    assert engine.answers(PROMPTS) == expected


def made_otherwise(operator, other):
    def change(model):
        for node in model.graph.node:
            if node.op_type == operator:
                node.op_type = other

    return change


def other_halves(model):
    angles = next(node for node in model.graph.node if node.op_type in {"Cos", "Sin"}).input[0]
    concat = next(node for node in model.graph.node if angles in node.output)
    negated = helper.make_node("Neg", [concat.input[0]], ["another half"])
    concat.input[1] = "another half"
    model.graph.node.insert(list(model.graph.node).index(concat), negated)


def parted_elsewhere(model):
    """The halves of what is rotated are its first and its last three quarters."""
    parted = next(n for n in model.graph.node if n.op_type == "Neg").input[0]
    index = GraphIndex(model)
    middle = index.makers[index.makers[parted].input[1]]
    while middle.op_type != "Div":
        middle = index.makers[middle.input[0]]
    four = numpy_helper.from_array(np.array(4), "four")
    model.graph.initializer.append(four)
    middle.input[1] = "four"


@pytest.mark.parametrize(
    "change",
    [
        made_otherwise("Cos", "Sin"),
        made_otherwise("Sin", "Cos"),
        made_otherwise("Neg", "Abs"),
        other_halves,
        parted_elsewhere,
    ],
)
def test_a_rotation_in_any_other_way_stays_as_it_is(change):
    model = demo_graph()
    assert all(layer.plain_inputs for layer in GraphIndex(model).attention())
    change(model)
    layers = GraphIndex(model).attention()
    assert len(layers) == 3
    assert not all(layer.plain_inputs for layer in layers)


def oldest_runtime():
    """Return the oldest ONNX Runtime for the CPU that pyproject.toml allows, in every extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        Requirement(line) for extra in project["optional-dependencies"].values() for line in extra
    ]
    versions = {str(one.specifier) for one in wanted if one.name == "onnxruntime"}
    [version] = versions
    return version.removeprefix(">=")


@pytest.mark.parametrize("change", ["lengths of masks", "older runtime"])
def test_graphs_and_runtimes_with_less_to_go_by_join_too(change, monkeypatch):
    expected = TokenDecoder(DEMO, 20).answers(PROMPTS)
    if change == "lengths of masks":
        monkeypatch.setattr(attention, "_POSITIONS", "no input")
    else:
        monkeypatch.setattr(onnxruntime, "__version__", oldest_runtime())
    engine = TokenDecoder(DEMO, 20)
    assert engine._session.joins
    assert engine.answers(PROMPTS) == expected


def test_keys_and_values_are_not_moved_for_a_longer_row_that_was_announced(monkeypatch):
    moved = []
    reserve = JointRows._reserve

    def counting(self, *given):
        before = self._arrays
        reserve(self, *given)
        moved.append(self._arrays is not before)

    monkeypatch.setattr(JointRows, "_reserve", counting)
    engine = Uneven(DEMO, 8, batch_size=3)
    engine.bits_of(PROMPTS)
    assert sum(moved) == 1
