"""Rows of unlike lengths answer together, and no bit of one depends on the others."""

from __future__ import annotations

import json
import random
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from fakes.decoders import DEMO, TokenDecoder, builder_folder
from packaging.requirements import Requirement

from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx import attention_layers, decoder_graph, joint_attention
from fairgate.onnx.attention_layers import plain_attention, plain_inputs
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_graph import drop_softmax_guards
from fairgate.onnx.decoder_session import BoundStep, DecoderSession
from fairgate.onnx.joint_attention import JOINT_INPUT, join_attention
from fairgate.onnx.joint_rows import JointRows
from fairgate.onnx.model_folder import ModelFolder

ROOT = Path(__file__).parents[3]
RNG = np.random.default_rng(7)
LENGTHS = (1, 2, 31, 32, 33, 64, 65, 90, 128, 129, 200)
PROMPTS = [RNG.integers(3, 1000, size).tolist() for size in LENGTHS]
STEPS = 70
"""More than the slots that are kept free, so that the cache grows."""


class Uneven(TokenDecoder):
    """Keeps every bit of every step; each row ends after a number of tokens of its own."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.bits = {}

    def _take(self, row, logits, likeliest):
        self.bits.setdefault(row.position, []).append(logits.tobytes())
        super()._take(row, logits, likeliest)
        if len(row.tokens) >= 1 + 29 * len(row.prompt) % STEPS:
            row.stopped = row.stopped or "end"

    def bits_of(self, prompts):
        self.bits.clear()
        self.answers(prompts)
        return [self.bits[place] for place in range(len(prompts))]


def session_of(folder=DEMO):
    return DecoderSession(ModelFolder.find(folder), device="cpu", threads=1)


def demo_graph():
    model = onnx.load(str(DEMO / "model.onnx"))
    drop_softmax_guards(model)
    return model


@pytest.fixture(scope="module")
def alone():
    engine = Uneven(DEMO, STEPS, threads=1)
    return [engine.bits_of([prompt])[0] for prompt in PROMPTS]


@pytest.mark.parametrize(("batch_size", "threads"), [(1, 2), (3, 1), (32, 2)])
def test_no_bit_of_a_step_depends_on_the_rows_beside_it(alone, batch_size, threads):
    assert len({len(bits) for bits in alone}) > 5
    order = random.Random(batch_size).sample(range(len(PROMPTS)), len(PROMPTS))
    engine = Uneven(DEMO, STEPS, batch_size=batch_size, threads=threads)
    assert engine._session.joins
    assert engine.bits_of([PROMPTS[place] for place in order]) == [alone[n] for n in order]


def test_rows_of_different_widths_are_stepped_in_one_batch(monkeypatch):
    steps, step = [], JointRows.step
    monkeypatch.setattr(
        JointRows, "step", lambda self, tokens: steps.append(len(tokens)) or step(self, tokens)
    )
    engine = TokenDecoder(DEMO, 9)
    engine._session  # noqa: B018 what it tries out is not counted
    steps.clear()
    engine.answers(PROMPTS)
    assert steps == [len(PROMPTS)] * 8


def test_greedy_tokens_are_those_of_a_graph_that_attends_in_one_way(monkeypatch):
    joint = TokenDecoder(DEMO, 30).answers(PROMPTS)
    monkeypatch.setattr(decoder_graph, "join_attention", lambda _: False)
    plain = TokenDecoder(DEMO, 30)
    assert not plain._session.joins
    assert joint == plain.answers(PROMPTS)


def test_prompts_are_read_with_the_same_bits_whether_a_graph_joins_or_not(monkeypatch):
    rows = PROMPTS[:4]
    joint, cache = session_of().prefill(rows, 40)
    monkeypatch.setattr(decoder_graph, "join_attention", lambda _: False)
    plain, expected = session_of().prefill(rows, 40)
    assert np.array_equal(joint, plain)
    for own, value in zip(cache.values, expected.values, strict=True):
        for place, row in enumerate(rows):  # what padding has there is read by nothing
            slots = np.s_[place, :, : len(row)]
            assert np.array_equal(own.numpy()[slots], value.numpy()[slots])


def test_what_lies_in_free_slots_is_not_read():
    session = session_of()
    _, cache = session.prefill([PROMPTS[2], PROMPTS[3]], 32)
    clean, dirty = JointRows(session, spare=5), JointRows(session, spare=90)
    for rows in (clean, dirty):
        rows.join(cache, [0, 1])
    for array in dirty._arrays:
        for row, length in zip(array, cache.lengths, strict=True):
            row[:, length:] = np.nan
    for token in range(4):
        assert np.array_equal(clean.step([token, 9]), dirty.step([token, 9]))


def test_rows_that_leave_are_replaced_from_the_end_and_others_join_their_slots():
    session = session_of()
    _, cache = session.prefill(PROMPTS[:6], 64)
    together, expected = JointRows(session), {}
    for place in range(6):
        one = JointRows(session)
        one.join(cache, [place])
        expected[place] = [one.step([token])[0].copy() for token in (5, 6)]
    together.join(cache, [0, 1, 2, 3, 4])
    first = together.step([5] * 5)
    assert all(np.array_equal(first[n], expected[n][0]) for n in range(5))
    order = together.leave([1, 4, 0])
    assert order == [2, 3]
    later = together.step([6, 6])
    assert all(np.array_equal(row, expected[n][1]) for row, n in zip(later, order, strict=True))
    together.join(cache, [5])
    assert np.array_equal(together.step([7, 7, 5])[2], expected[5][0])
    assert together.leave([]) == [0, 1, 2]
    assert together.leave([0, 1, 2]) == []


def test_a_cache_that_moves_takes_only_what_its_rows_have_written():
    session = session_of()
    _, cache = session.prefill([PROMPTS[2], PROMPTS[3]], 64)
    rows, other = JointRows(session, spare=3), JointRows(session, spare=90)
    for each in (rows, other):
        each.join(cache, [0, 1])
    used = int(cache.lengths.max())
    for array in rows._arrays:
        array[:, :, used:] = 7
    before = rows._arrays
    rows.join(cache, [0])  # more rows
    assert rows._arrays[0] is not before[0]
    assert not any(array[:, :, used:].any() for array in rows._arrays)
    assert rows.leave([2]) == [0, 1]
    before = rows._arrays
    for token in range(9):  # and more slots
        assert np.array_equal(rows.step([token, 9]), other.step([token, 9]))
    assert rows._arrays[0] is not before[0]


def test_a_row_that_is_moved_takes_its_own_tokens_only():
    session = session_of()
    _, cache = session.prefill([PROMPTS[5], PROMPTS[2]], 64)
    rows, alone = JointRows(session), JointRows(session)
    rows.join(cache, [0, 1])
    alone.join(cache, [1])
    length = int(cache.lengths[1])
    for array in rows._arrays:
        array[0, :, length:], array[1, :, length:] = 5, 7
    assert rows.leave([0]) == [1]
    assert all((array[0, :, length:] == 5).all() for array in rows._arrays)
    assert np.array_equal(rows.step([4]), alone.step([4]))


def test_rows_of_the_trial_are_not_each_others_in_another_order(monkeypatch):
    caches, join = [], JointRows.join
    monkeypatch.setattr(
        JointRows,
        "join",
        lambda self, cache, places: caches.append(cache) or join(self, cache, places),
    )
    assert session_of().joins
    for cache in caches:
        slots = [np.sort(row, axis=None).tobytes() for row in cache.values[0].numpy()]
        assert len(set(slots)) == len(slots) > 1


@pytest.mark.parametrize("by", ["scale", "batch"])
def test_a_second_way_that_is_not_the_first_is_not_taken(by, monkeypatch):
    if by == "scale":
        monkeypatch.setattr(
            joint_attention,
            "plain_attention",
            lambda model: [replace(one, scale=1.5 * one.scale) for one in plain_attention(model)],
        )
    else:
        run = BoundStep.run
        monkeypatch.setattr(
            BoundStep,
            "run",
            lambda self, tokens, lengths: (
                run(self, tokens, lengths) * np.float32(1 + 2e-7 * (len(tokens) > 2))
            ),
        )
    engine = TokenDecoder(DEMO, 6)
    assert JOINT_INPUT in engine._session._inputs
    assert not engine._session.joins
    monkeypatch.undo()
    assert engine.answers(PROMPTS) == TokenDecoder(DEMO, 6).answers(PROMPTS)


def test_a_second_way_that_fails_is_not_taken(monkeypatch):
    monkeypatch.setattr(
        joint_attention,
        "plain_attention",
        lambda model: [replace(one, heads=one.heads * 3) for one in plain_attention(model)],
    )
    engine = TokenDecoder(DEMO, 3)
    assert not engine._session.joins
    assert engine.answers(PROMPTS[:2])


def test_models_that_count_slots_step_by_the_batch(tmp_path):
    folder = tmp_path / "windowed"
    shutil.copytree(DEMO, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "sliding_window": 64}))
    assert not session_of(folder).joins
    assert not session_of(builder_folder(tmp_path / "builder")).joins


def changed_softmax(model):
    next(node for node in model.graph.node if node.op_type == "Softmax").op_type = "Sigmoid"


def changed_axis(model):
    node = next(n for n in model.graph.node if n.input and n.input[0] == "past_key_values.1.key")
    node.attribute[0].i = 1


def changed_order(model):
    softmax = [node for node in model.graph.node if node.op_type == "Softmax"][1]
    added = next(node for node in model.graph.node if softmax.input[0] in node.output)
    added.op_type = "Sub"


def older(model):
    model.opset_import[0].version = 12


def halved(model):
    """In float16 the last bit of a step depends on the batch: `make test-export` sees it."""
    for value in model.graph.input:
        if value.name.startswith("past_key_values."):
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16


@pytest.mark.parametrize("change", [changed_softmax, changed_axis, changed_order, older, halved])
def test_a_graph_with_any_other_attention_is_left_as_it_is(change):
    model = demo_graph()
    change(model)
    before = model.SerializeToString()
    assert not join_attention(model)
    assert model.SerializeToString() == before


def test_a_graph_that_keeps_needed_positions_before_its_last_projection_joins():
    model = demo_graph()
    nodes = list(model.graph.node)
    place, last = [
        (n, node) for n, node in enumerate(nodes) if node.name.endswith("o_proj/MatMul")
    ][-1]
    kept = onnx.helper.make_node(
        "GatherND", [last.input[0], "fairgate_positions"], ["kept"], batch_dims=1
    )
    last.input[0] = "kept"
    model.graph.node.insert(place, kept)
    assert join_attention(model)


def test_a_graph_with_both_ways_is_valid_and_changed_once():
    model = demo_graph()
    assert join_attention(model)
    onnx.checker.check_model(model)
    ways = [node for node in model.graph.node if node.op_type == "If"]
    assert len(ways) == 3 + 1  # the mask, which all layers share
    assert not join_attention(model)


def test_answers_without_a_rule_to_end_them_are_the_text_of_all_tokens():
    decoding = Decoding(max_new_tokens=25)
    requests = [GenerationRequest(prompt=f"Reader {n} says:") for n in range(5)]
    engine = OnnxDecoder(DEMO, decoding=decoding)
    for _, answer in engine.generate(requests):
        assert answer.text
        assert answer.tokens <= 25


def test_a_joint_step_computes_no_mask_and_no_rotation_node_by_node():
    model = demo_graph()
    assert join_attention(model)
    always = [node for node in model.graph.node if node.op_type not in {"If", "Constant"}]
    assert not [node for node in always if "attention_mask" in node.input]
    assert {"Neg", "LessOrEqual", "Softmax"}.isdisjoint(node.op_type for node in always)
    for node in model.graph.node:
        for branch in [each.g for each in node.attribute if each.name == "then_branch"]:
            assert len(branch.node) <= 5


def without_rotation(*_):
    return None


def test_layers_whose_rotation_is_another_join_by_what_it_gives(monkeypatch):
    expected = TokenDecoder(DEMO, 20).answers(PROMPTS)
    monkeypatch.setattr(attention_layers, "plain_inputs", without_rotation)
    engine = TokenDecoder(DEMO, 20)
    assert engine._session.joins
    assert engine.answers(PROMPTS) == expected


def test_a_rotation_that_is_not_the_graphs_own_is_not_taken(monkeypatch):
    def exchanged(*given):
        found = plain_inputs(*given)
        return replace(found, cosines=found.sines, sines=found.cosines)

    monkeypatch.setattr(attention_layers, "plain_inputs", exchanged)
    assert not session_of().joins


def oldest_runtime():
    """Return the oldest ONNX Runtime for the CPU that pyproject.toml allows, in every extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        Requirement(line) for extra in project["optional-dependencies"].values() for line in extra
    ]
    versions = {str(one.specifier) for one in wanted if one.name == "onnxruntime"}
    [version] = versions
    return version.removeprefix(">=")


def test_the_oldest_runtime_opens_graphs_whose_weights_are_in_another_file():
    """1.20.1 does not find them; 1.21.0, 1.21.1, 1.22.1 and 1.31.1 do: seen by installing them."""
    assert oldest_runtime() == "1.21"


@pytest.mark.parametrize("change", ["lengths of masks", "unknown formats", "older runtime"])
def test_graphs_and_runtimes_with_less_to_go_by_join_too(change, monkeypatch):
    expected = TokenDecoder(DEMO, 20).answers(PROMPTS)
    if change == "lengths of masks":
        monkeypatch.setattr(joint_attention, "_POSITIONS", "no input")
    elif change == "unknown formats":
        monkeypatch.setattr(joint_attention, "_kinds", lambda *_: {})
    else:
        monkeypatch.setattr(onnxruntime, "__version__", oldest_runtime())
    engine = TokenDecoder(DEMO, 20)
    assert engine._session.joins
    assert engine.answers(PROMPTS) == expected


def test_a_step_that_is_bound_once_has_the_bits_of_one_that_is_bound_anew():
    session = session_of()
    _, cache = session.prefill(PROMPTS[2:5], 64)
    once, anew = JointRows(session), JointRows(session)
    for rows in (once, anew):
        rows.join(cache, range(3))
    for token in range(3, 12):
        anew._bound = None
        assert np.array_equal(once.step([token] * 3), anew.step([token] * 3))
