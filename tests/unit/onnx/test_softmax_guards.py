"""The exporters' check for rows without a key: left out where it never applies, and only there."""

from __future__ import annotations

import json
import shutil

import numpy as np
import onnx
import pytest
from fakes.decoders import DEMO

from fairgate.onnx import decoder_graph, decoder_opening
from fairgate.onnx.decoder_graph import drop_softmax_guards
from fairgate.onnx.decoder_session import DecoderSession
from fairgate.onnx.model_folder import ModelFolder

LAYERS = 3


def operators(model):
    return [node.op_type for node in model.graph.node]


def demo():
    return onnx.load(str(DEMO / "model.onnx"))


def logits():
    """Return the logits of prompts of unlike lengths in one batch, and of two steps after them."""
    numbers = np.random.default_rng(5)
    rows = [numbers.integers(3, 2000, size).tolist() for size in (1, 7, 64, 300)]
    session = DecoderSession(ModelFolder.find(DEMO), device="cpu", threads=1)
    first, cache = session.prefill(rows, 320)
    return [first, *(session.step(cache, [token, 5, 6, token]) for token in (9, 11))]


def test_answers_stay_the_same_bit_by_bit(monkeypatch):
    without = logits()
    monkeypatch.setattr(decoder_graph, "drop_softmax_guards", lambda _: 0)
    for plain, guarded in zip(without, logits(), strict=True):
        assert np.array_equal(plain, guarded)


def test_all_checks_of_an_export_are_taken_out_and_the_graph_stays_valid():
    model = demo()
    assert operators(model).count("IsNaN") == operators(model).count("Softmax") == LAYERS
    others = operators(model).count("Where") - LAYERS
    assert drop_softmax_guards(model) == LAYERS
    onnx.checker.check_model(model)
    assert "IsNaN" not in operators(model)
    assert operators(model).count("Where") == others
    assert drop_softmax_guards(model) == 0


@pytest.mark.parametrize(
    ("settings", "is_dropped"),
    [
        ({}, True),
        ({"sliding_window": None}, True),
        ({"sliding_window": 4096}, False),
        ({"text_config": {"attention_chunk_size": 8192}}, False),
        ({"attention_types": [[["global", "local"], 12]], "window_size": 256}, False),
    ],
)
def test_models_that_attend_to_a_part_keep_it(tmp_path, monkeypatch, settings, is_dropped):
    folder = tmp_path / "model"
    shutil.copytree(DEMO, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | settings))
    seen = []
    read = decoder_opening.read_decoder_graph
    monkeypatch.setattr(
        decoder_opening,
        "read_decoder_graph",
        lambda *given, **named: seen.append(read(*given, **named)) or seen[0],
    )
    DecoderSession(ModelFolder.find(folder), device="cpu", threads=1)
    best = onnx.load_model_from_string(seen[0].contents[0])
    assert ("IsNaN" not in operators(best)) is is_dropped


def test_other_choices_between_two_values_are_kept():
    model = demo()
    for node in model.graph.node:
        if node.op_type == "Where":
            # The other way round, NaNs are kept and everything else is replaced.
            node.input[1], node.input[2] = node.input[2], node.input[1]
    before = operators(model)
    assert drop_softmax_guards(model) == 0
    assert operators(model) == before


def test_a_check_that_is_an_output_of_the_graph_is_kept():
    model = demo()
    asked = {node.output[0] for node in model.graph.node if node.op_type == "IsNaN"}
    outcomes = [
        node.output[0]
        for node in model.graph.node
        if node.op_type == "Where" and node.input[0] in asked
    ]
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(outcomes[0]))
    assert drop_softmax_guards(model) == LAYERS - 1
    assert operators(model).count("IsNaN") == 1


def test_a_question_that_others_ask_too_is_kept():
    model = demo()
    asked = next(node.output[0] for node in model.graph.node if node.op_type == "IsNaN")
    model.graph.node.append(onnx.helper.make_node("Not", [asked], ["is_number"]))
    assert drop_softmax_guards(model) == LAYERS
    assert operators(model).count("IsNaN") == 1
