"""Cross-encoders: the order of their labels, batches, and what is wrong with a folder."""

import itertools
import json

import pytest
from fakes.cross_encoders import LABELS, write_cross_encoder

from fairgate.domain.errors import ModelError
from fairgate.onnx.cross_encoder import OnnxCrossEncoder

TEXTS = ["boil it", "boil it and serve it", "serve it", "it", "", "boil and serve it and eat it"]
PAIRS = list(itertools.product(TEXTS, repeat=2))
EXPECTED = [set(second.split()) <= set(first.split()) for first, second in PAIRS]


def test_entailment_is_read_where_the_config_says_whatever_the_order(tmp_path):
    wrong = []
    orders = [*itertools.permutations(LABELS), ("Entailment", "not_entailment")]
    for number, order in enumerate(orders):
        folder = write_cross_encoder(tmp_path / str(number), TEXTS, labels=order)
        if len(order) == 2:
            folder = write_cross_encoder(tmp_path / "2", TEXTS, labels=("entailment", "neutral"))
            config = json.loads((folder / "config.json").read_text())
            config["id2label"] = dict(enumerate(order))
            (folder / "config.json").write_text(json.dumps(config))
        if OnnxCrossEncoder(folder, threads=1).entails(PAIRS) != EXPECTED:
            wrong.append(order)
    assert not wrong
    assert 0 < sum(EXPECTED) < len(EXPECTED)


def test_a_pair_is_read_alike_beside_any_others(tmp_path):
    folder = write_cross_encoder(tmp_path / "nli", TEXTS)
    assert OnnxCrossEncoder(folder, batch_size=5, threads=2).entails(PAIRS) == EXPECTED
    assert OnnxCrossEncoder(folder, threads=1).entails(PAIRS[::-1]) == EXPECTED[::-1]
    single = OnnxCrossEncoder(folder, threads=1)
    assert [single.entails([pair])[0] for pair in PAIRS] == EXPECTED


def test_long_texts_are_cut_and_no_error(tmp_path):
    folder = write_cross_encoder(tmp_path / "nli", TEXTS, most_tokens=12)
    long = " ".join(["boil it"] * 50)
    assert OnnxCrossEncoder(folder, threads=1).entails([(long, "boil"), (long, "eat")]) == [
        True,
        False,
    ]


def test_the_fingerprint_covers_the_files(tmp_path):
    first = OnnxCrossEncoder(write_cross_encoder(tmp_path / "a", TEXTS)).fingerprint
    assert OnnxCrossEncoder(write_cross_encoder(tmp_path / "b", TEXTS)).fingerprint == first
    other = write_cross_encoder(tmp_path / "c", TEXTS, labels=LABELS[::-1])
    assert OnnxCrossEncoder(other).fingerprint != first


def test_a_folder_that_tells_no_entailment_is_refused(tmp_path):
    wrong = {
        "labels of another task": (("LABEL_0", "LABEL_1"), "expected one `entailment`"),
        "two of them": (("entailment", "Entailment"), "expected one `entailment`"),
        "one label": (("entailment",), "two labels or more"),
    }
    for name, (labels, message) in wrong.items():
        folder = write_cross_encoder(tmp_path / name, TEXTS, labels=labels)
        with pytest.raises(ModelError, match=message):
            OnnxCrossEncoder(folder)
    folder = write_cross_encoder(tmp_path / "no tokens", TEXTS)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="tokenizer"):
        OnnxCrossEncoder(folder)


def test_scores_that_do_not_fit_are_an_error(tmp_path):
    folder = write_cross_encoder(tmp_path / "many", TEXTS)
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {"0": "entailment", "1": "other"}
    (folder / "config.json").write_text(json.dumps(config))
    broken = write_cross_encoder(tmp_path / "nan", TEXTS, factor=float("nan"))
    for bad in (folder, broken):
        with pytest.raises(ModelError, match="scores a pair"):
            OnnxCrossEncoder(bad, threads=1).entails(PAIRS)
