"""The exporters' check for rows without a key: taken out where it never applies, and only there."""

from __future__ import annotations

import json
import shutil

import numpy as np
import onnx
import pytest
from fakes.decoders import DEMO
from onnx import numpy_helper
from onnx.helper import make_node

from fairgate.adapters.onnx_engine.decoder_session import DecoderSession
from fairgate.adapters.onnx_engine.folder import ModelFolder
from fairgate.adapters.onnx_engine.softmax_guards import drop_softmax_guards


@pytest.fixture
def guarded(tmp_path):
    """Return a copy of the demonstration model whose softmaxes are followed by the check."""
    folder = tmp_path / "model"
    shutil.copytree(DEMO, folder)
    drop_softmax_guards(folder / "model.onnx")
    model = onnx.load(str(folder / "model.onnx"))
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0), "zero"))
    for place, node in reversed(list(enumerate(model.graph.node))):
        if node.op_type == "Softmax":
            plain, asked, clean = (node.output[0] + end for end in ("", "_asked", "_clean"))
            for other in model.graph.node:
                for slot, name in enumerate(other.input):
                    if name == plain:
                        other.input[slot] = clean
            model.graph.node.insert(place + 1, make_node("IsNaN", [plain], [asked]))
            model.graph.node.insert(place + 2, make_node("Where", [asked, "zero", plain], [clean]))
    onnx.checker.check_model(model)
    onnx.save(model, str(folder / "model.onnx"))
    return folder


def operators(folder):
    return [node.op_type for node in onnx.load(str(folder / "model.onnx")).graph.node]


def logits(folder):
    """Return the logits of prompts of unlike lengths in one batch, and of two steps after them."""
    numbers = np.random.default_rng(5)
    rows = [numbers.integers(3, 2000, size).tolist() for size in (1, 7, 64, 300)]
    session = DecoderSession(ModelFolder.find(folder), device="cpu", threads=1)
    first, cache = session.prefill(rows, 320)
    return [first, *(session.step(cache, [token, 5, 6, token]) for token in (9, 11))]


def test_answers_stay_the_same_bit_by_bit(guarded):
    before, many = logits(guarded), operators(guarded).count("Softmax")
    assert operators(guarded).count("IsNaN") == many
    assert drop_softmax_guards(guarded / "model.onnx") == many
    assert "IsNaN" not in operators(guarded)
    onnx.checker.check_model(onnx.load(str(guarded / "model.onnx")))
    for old, new in zip(before, logits(guarded), strict=True):
        assert np.array_equal(old, new)
    assert drop_softmax_guards(guarded / "model.onnx") == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"sliding_window": 4096},
        {"text_config": {"attention_chunk_size": 8192}},
        {"layer_types": ["full_attention", "sliding_attention"]},
        {"attention_types": [[["global", "local"], 12]]},
        {"use_local_attention": True},
    ],
)
def test_graphs_that_attend_to_a_part_keep_it(guarded, settings):
    config = json.loads((guarded / "config.json").read_text())
    (guarded / "config.json").write_text(json.dumps(config | settings))
    before = (guarded / "model.onnx").read_bytes()
    assert drop_softmax_guards(guarded / "model.onnx") == 0
    assert (guarded / "model.onnx").read_bytes() == before


@pytest.mark.parametrize("text", [None, "", "[]", "{", "\udcff"])
def test_a_folder_whose_settings_cannot_be_read_keeps_it(guarded, text):
    (guarded / "config.json").unlink()
    if text is not None:
        (guarded / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert drop_softmax_guards(guarded / "model.onnx") == 0


def test_what_is_off_or_a_name_is_no_window(guarded):
    config = json.loads((guarded / "config.json").read_text())
    off = {"sliding_window": None, "use_sliding_window": False, "_name_or_path": "/usr/local/model"}
    (guarded / "config.json").write_text(json.dumps(config | off))
    assert drop_softmax_guards(guarded / "model.onnx") > 0


def test_other_choices_between_two_values_are_kept(guarded):
    path = guarded / "model.onnx"
    model = onnx.load(str(path))
    for node in model.graph.node:
        if node.op_type == "Where" and node.input[1] == "zero":
            # The other way round, zeros are kept and everything else is replaced.
            node.input[1], node.input[2] = node.input[2], node.input[1]
    onnx.save(model, str(path))
    assert drop_softmax_guards(path) == 0


def test_a_check_that_is_an_output_of_the_graph_is_kept(guarded):
    path = guarded / "model.onnx"
    model = onnx.load(str(path))
    outcome = next(
        n.output[0] for n in model.graph.node if n.op_type == "Where" and n.input[1] == "zero"
    )
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(outcome))
    onnx.save(model, str(path))
    many = operators(guarded).count("IsNaN")
    assert drop_softmax_guards(path) == many - 1
