"""Sequence classifiers: label maps, batches, and what is wrong with a folder."""

import itertools

import numpy as np
import pytest
from fakes.classifiers import LABELS, MEANS, write_classifier
from fakes.encoders import TABLE, WORDS

from fairgate.domain.cases import TONES
from fairgate.domain.errors import DataError, ModelError
from fairgate.onnx.encoder import OnnxClassifier

TEXTS = [
    " ".join(words)
    for length, most in ((1, 4), (2, 16), (3, 64), (9, 60))
    for words in itertools.islice(itertools.product("abcd", repeat=length), most)
]


@pytest.fixture
def folder(tmp_path):
    return write_classifier(tmp_path / "emotions")


def by_hand(text):
    """Scores and tones of a text, computed from the table."""
    tokens = ["[CLS]", *text.split(), "[SEP]"]
    scores = TABLE[[WORDS.index(token) for token in tokens]].astype(np.float64).sum(axis=0)
    shares = np.exp(scores) / np.exp(scores).sum()
    by_tone = dict.fromkeys(set(MEANS.values()), 0.0)
    for label, share in zip(LABELS, shares, strict=True):
        by_tone[MEANS[label]] += share
    return sorted(by_tone.items(), key=lambda item: -item[1])


def test_labels_of_one_tone_share_its_probability(folder):
    found = OnnxClassifier(folder, MEANS, TONES, threads=1).classify(TEXTS)
    for text, classified in zip(TEXTS, found, strict=True):
        (best, share), (_, next_best) = by_hand(text)[:2]
        assert classified.label == best
        assert classified.margin == pytest.approx(np.log(share / next_best), abs=2e-4)
    assert len({each.label for each in found}) > 1


def test_a_label_depends_on_its_text_alone(folder):
    together = OnnxClassifier(folder, MEANS, TONES, batch_size=7, threads=1).classify(TEXTS)
    turned = OnnxClassifier(folder, MEANS, TONES, batch_size=64, threads=1).classify(TEXTS[::-1])
    single = OnnxClassifier(folder, MEANS, TONES, threads=1)
    assert together == turned[::-1] == [single.classify([text])[0] for text in TEXTS]


def test_the_fingerprint_covers_files_and_map(folder, tmp_path):
    first = OnnxClassifier(folder, MEANS, TONES, threads=1).fingerprint
    assert OnnxClassifier(folder, MEANS | {"love": "neutral"}, TONES).fingerprint != first
    other = write_classifier(tmp_path / "other", files={"tokenizer_config.json": {"x": 1}})
    assert OnnxClassifier(other, MEANS, TONES).fingerprint != first
    assert OnnxClassifier(folder, MEANS, TONES, threads=1).fingerprint == first


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({}, "`joy`, `love`, `anger` and `sadness` are none of"),
        (MEANS | {"disgust": "angry"}, "no label 'disgust'"),
        (
            {k: v for k, v in MEANS.items() if k != "love"},
            "has no meaning for the classifier's `love`",
        ),
        (MEANS | {"love": "lovely"}, "found 'lovely', expected one of `happy`"),
        (dict.fromkeys(MEANS, "happy"), "maps everything to one label"),
    ],
)
def test_a_map_that_does_not_fit_is_refused(folder, labels, message):
    with pytest.raises(DataError, match=message):
        OnnxClassifier(folder, labels, TONES)


NO_LABELS = [None, {}, {"0": "a"}, {"1": "a", "2": "b"}, {"x": "a", "y": "b"}, ["a", "b"], 3]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        *(({"files": {"config.json": {"id2label": one}}}, "id2label") for one in NO_LABELS),
        ({"outputs": "last_hidden_state"}, "expected logits"),
        ({"scores": 5}, "5 scores a text, expected 6"),
    ],
)
def test_a_folder_that_is_no_classifier_of_these_labels_is_refused(tmp_path, written, message):
    folder = write_classifier(tmp_path / "c", **written)
    with pytest.raises(ModelError, match=message):
        OnnxClassifier(folder, MEANS, TONES, threads=1).classify(["a"])
