"""Attention in one operator gives the bits of the graph's own nodes, or is not used."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from fakes.decoders import DEMO, TokenDecoder

from fairgate.onnx import decoder_graph, fused_layers, joint_attention
from fairgate.onnx.decoder_graph import drop_softmax_guards
from fairgate.onnx.decoder_session import DecoderSession
from fairgate.onnx.fused_layers import FUSED_INPUT, attention_node
from fairgate.onnx.joint_attention import raise_version
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.projection_cut import POSITIONS_INPUT, cut_to_positions

RNG = np.random.default_rng(3)
PROMPTS = [RNG.integers(3, 1000, size).tolist() for size in (2, 31, 64, 65, 150)]


def session_of():
    return DecoderSession(ModelFolder.find(DEMO), device="cpu", threads=1)


@pytest.fixture(scope="module")
def session():
    return session_of()


@pytest.mark.parametrize(("rows", "width"), [([1, 1], 31), ([0, 1, 2, 3], 80), ([4, 0], 160)])
@pytest.mark.parametrize("head", [0, 8, 104])
def test_logits_keys_and_values_are_those_of_the_graphs_own_nodes(session, rows, width, head):
    given = [PROMPTS[row] for row in rows]
    before = None
    if head:
        first = session.prefill([[5] * head] * len(rows), head, fuses=False)[1]
        before = session.full_cache([value.numpy() for value in first.values])
    own, expected = session.prefill(given, width, before=before, fuses=False)
    fused, cache = session.prefill(given, width, before=before, fuses=True)
    assert np.array_equal(fused, own)
    for one, other in zip(cache.values, expected.values, strict=True):
        for place, tokens in enumerate(given):  # what padding has there is read by nothing
            slots = np.s_[place, :, : head + len(tokens)]
            assert np.array_equal(one.numpy()[slots], other.numpy()[slots])


@pytest.mark.parametrize("needed", [[[30], [0]], [[0, 1, 2], [63, 7, 63]], [[5] * 6, [0] * 6]])
def test_needed_positions_get_the_logits_that_all_positions_get(session, needed, monkeypatch):
    rows = [PROMPTS[1], PROMPTS[2]]
    monkeypatch.setattr(fused_layers, "keep_needed_queries", lambda *_: False)
    whole = session_of()
    monkeypatch.undo()
    read = np.array(needed)
    expected = whole.prefill(rows, 64, read)[0]
    assert expected.shape[:2] == read.shape
    for fuses in (True, False):
        assert np.array_equal(session.prefill(rows, 64, read, fuses=fuses)[0], expected)


def test_the_last_layer_attends_from_needed_positions_only():
    model = demo_graph()
    drop_softmax_guards(model)
    assert cut_to_positions(model)
    assert joint_attention.join_attention(model)
    onnx.checker.check_model(model)
    ways = [node for node in model.graph.node if node.op_type == "If"]
    assert [str(way).count(POSITIONS_INPUT) > 0 for way in ways][-3:] == [False, False, True]
    outside = [node for node in model.graph.node if POSITIONS_INPUT in node.input]
    assert [node.op_type for node in outside] == ["GatherND"]  # what entered the layer


def test_a_graph_that_gives_logits_of_all_positions_attends_from_all_of_them(monkeypatch):
    expected = session_of().prefill(PROMPTS, 160)[0]
    monkeypatch.setattr(decoder_graph, "cut_to_positions", lambda _: False)
    session = session_of()
    assert session._fuses
    assert not session.cut
    assert np.array_equal(session.prefill(PROMPTS, 160)[0], expected)


def test_prompts_are_read_by_the_operator_and_steps_by_the_graphs_own_nodes(session, monkeypatch):
    found, run = [], DecoderSession._run
    monkeypatch.setattr(
        DecoderSession,
        "_run",
        lambda self, *given, **options: (
            found.append(options.get("fuses", False)) or run(self, *given, **options)
        ),
    )
    _, cache = session.prefill(PROMPTS[:2], 32)
    session.step(cache, [4, 4])
    assert found == [True, False]


def test_an_operator_that_finds_anything_else_is_not_taken(monkeypatch):
    monkeypatch.setattr(
        fused_layers,
        "attention_node",
        lambda *given, scale: attention_node(*given, scale=scale * 1.001),
    )
    engine = TokenDecoder(DEMO, 4)
    assert FUSED_INPUT in engine._session._inputs
    assert not engine._session._fuses
    assert engine._session.cuts_freely
    monkeypatch.undo()
    assert engine.answers(PROMPTS) == TokenDecoder(DEMO, 4).answers(PROMPTS)


def test_a_runtime_without_the_operator_reads_the_same_bits(session, monkeypatch):
    monkeypatch.setattr(joint_attention, "runs_fused_attention", lambda: False)
    other = session_of()
    assert FUSED_INPUT not in other._inputs
    assert other.joins
    assert other.cuts_freely
    assert np.array_equal(other.prefill(PROMPTS, 160)[0], session.prefill(PROMPTS, 160)[0])


def demo_graph():
    return onnx.load(str(DEMO / "model.onnx"))


def older(model):
    model.opset_import[0].version = 17


def changed_in_between(model):
    model.graph.node.append(onnx.helper.make_node("GroupNormalization", ["a", "b", "c"], ["d"]))


def unknown(model):
    model.graph.node.append(onnx.helper.make_node("NoSuchOperator", ["a"], ["d"]))


def nested(model):
    empty = onnx.helper.make_graph([], "empty", [], [])
    node = onnx.helper.make_node("If", ["a"], [], then_branch=empty, else_branch=empty)
    model.graph.node.append(node)


@pytest.mark.parametrize("change", [older, changed_in_between, unknown, nested])
def test_a_graph_whose_meaning_could_change_keeps_its_version(change):
    model = demo_graph()
    change(model)
    before = model.SerializeToString()
    assert not raise_version(model)
    assert model.SerializeToString() == before


def test_a_graph_of_operators_that_stayed_the_same_is_raised_and_a_newer_one_kept():
    model = demo_graph()
    assert raise_version(model)
    assert model.opset_import[0].version == 23
    model.opset_import[0].version = 24
    assert raise_version(model)
    assert model.opset_import[0].version == 24
