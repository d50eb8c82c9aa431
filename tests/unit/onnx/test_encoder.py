from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

import fairgate
from fairgate.domain.errors import ModelError
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import EmbedderChoice

MINILM = Path(fairgate.__file__).parent / "data" / "models" / "minilm"
TEXTS = [
    "A gay person says the following text: “the soup was cold”",
    "Never again.",
    "",
    "The lamp has two switches, and one of them is hidden behind the shelf in the hall.",
    "emoji 🙂 and NUL \x00 and a lone surrogate \ud800",
    "long " * 400,
    *(f"text number {i} " * (i % 9 + 1) for i in range(30)),
]


@pytest.fixture(scope="module")
def expected():
    return OnnxEncoder(MINILM, threads=1).embed(TEXTS)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "minilm"
    shutil.copytree(MINILM, path)
    return path


def change(folder, name, **values):
    file = folder / name
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def test_vectors_are_unit_float32_in_the_order_of_the_texts(expected):
    assert expected.shape == (len(TEXTS), 384)
    assert expected.dtype == np.float32
    assert np.linalg.norm(expected, axis=1) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(("batch_size", "threads"), [(1, 2), (7, 1), (32, 2), (5, 3), (32, 64)])
def test_vectors_do_not_depend_on_batch_order_or_threads(expected, batch_size, threads):
    order = list(range(len(TEXTS)))
    random.Random(batch_size).shuffle(order)
    engine = OnnxEncoder(MINILM, batch_size=batch_size, threads=threads)
    vectors = engine.embed([TEXTS[place] for place in order])
    assert np.array_equal(vectors, expected[order])


def test_a_text_by_itself_and_repeated_gives_the_same_bytes(expected):
    engine = OnnxEncoder(MINILM)
    assert np.array_equal(engine.embed([TEXTS[3]])[0], expected[3])
    assert np.array_equal(engine.embed([TEXTS[3]] * 3), expected[[3, 3, 3]])


def test_related_texts_are_closer_than_unrelated_ones():
    engine = OnnxEncoder(MINILM)
    cold, chilly, switch = engine.embed(
        ["The soup was cold.", "My soup was not hot.", "The lamp has two switches."]
    )
    assert cold @ chilly > 0.6 > cold @ switch


def test_no_texts_give_an_empty_array_of_the_right_width():
    assert OnnxEncoder(MINILM).embed([]).shape == (0, 384)
    assert OnnxEncoder(MINILM).dimensions == 384


def test_a_model_is_loaded_at_the_first_text_only(folder):
    (folder / "model.onnx").write_bytes(b"no graph")
    engine = OnnxEncoder(folder)
    assert engine.fingerprint.startswith("onnx-encoder/2:")
    with pytest.raises(ModelError, match="cannot be loaded"):
        engine.embed(["x"])


@pytest.mark.parametrize("pooling", ["cls", "max"])
def test_pooling_is_read_and_changes_vectors_and_fingerprint(folder, expected, pooling):
    mode = {"cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens"}[pooling]
    change(folder, "1_Pooling/config.json", pooling_mode_mean_tokens=False, **{mode: True})
    engine = OnnxEncoder(folder)
    assert engine.settings.poolings == (pooling,)
    vectors = engine.embed(TEXTS[:4])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-6)
    assert np.abs(vectors - expected[:4]).max() > 0.01
    assert engine.fingerprint != OnnxEncoder(MINILM).fingerprint


def test_the_new_spelling_of_pooling_is_read_too(folder):
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "cls"}))
    assert OnnxEncoder(folder).settings.poolings == ("cls",)


def test_dense_layers_are_refused_by_name(folder):
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": 3, "type": "sentence_transformers.models.Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelError, match="Normalize, Dense"):
        OnnxEncoder(folder)


def test_lengths_stay_as_they_are_where_the_model_does_not_normalise(folder):
    modules = json.loads((folder / "modules.json").read_text())[:2]
    (folder / "modules.json").write_text(json.dumps(modules))
    raw = OnnxEncoder(folder, unit=False).embed(TEXTS[:2])
    unit = OnnxEncoder(folder).embed(TEXTS[:2])
    assert (np.linalg.norm(raw, axis=1) > 1.5).all()
    assert raw / np.linalg.norm(raw, axis=1, keepdims=True) == pytest.approx(unit, abs=1e-6)


def test_texts_are_cut_at_the_models_length(folder):
    change(folder, "sentence_bert_config.json", max_seq_length=8)
    engine = OnnxEncoder(folder)
    assert engine.settings.max_tokens == 8
    first, second = engine.embed(["a b c d e f g h i j", "a b c d e f and something else"])
    assert np.array_equal(first, second)


def test_a_decoder_is_no_encoder():
    pooling = EmbedderChoice(pooling="mean")
    with pytest.raises(ModelError, match="no text encoder"):
        OnnxEncoder(MINILM.parent / "demo-slm", choice=pooling).embed(["x"])
