"""The embedded tone classifiers are what their recipe and card say."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
import train_tone

from fairgate.domain.classifiers import SENTIMENTS, TONES
from fairgate.domain.runtime import Runtime
from fairgate.suites.metamorphic.policy import ClassifierPolicy
from fairgate.systems.classifiers import open_classifier

LINES = train_tone.lines()
HELD_OUT = [line for line in LINES if line.held_out]
CARD = (train_tone.TARGET / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_no_sentence_stands_twice_and_no_block_is_on_both_sides():
    texts = Counter(line.text.lower() for line in LINES)
    assert [text for text, count in texts.items() if count > 1] == []
    blocks = {line.block for line in LINES if not line.held_out}
    assert blocks.isdisjoint(line.block for line in HELD_OUT)
    assert {line.tone for line in LINES} == set(TONES)
    assert {line.sentiment for line in LINES} == set(SENTIMENTS)
    assert min(Counter(line.tone for line in HELD_OUT).values()) >= 18


@pytest.mark.parametrize(("name", "column"), [("minilm-tone", 1), ("minilm-sentiment", 2)])
def test_the_card_gives_the_accuracy_on_the_held_out_blocks(name, column):
    labels = train_tone.HEADS[name]
    classifier = open_classifier(Runtime(), ClassifierPolicy(model=name), labels)
    found = classifier.classify([line.text for line in HELD_OUT])
    right = np.mean(
        [each.label == line.truth(labels) for each, line in zip(found, HELD_OUT, strict=True)]
    )
    [row] = re.findall(r"\| accuracy, held-out blocks \|.*", CARD)
    assert f"{right:.3f}" == row.split("|")[column + 1].strip()
    assert right > 0.9


def test_a_head_is_learnt_from_what_it_is_given():
    """Two clouds that a line parts: the fit finds it, and a stronger penalty shrinks the weights."""
    rng = np.random.default_rng(3)
    truths = np.arange(60) % 2
    points = rng.normal(size=(60, 4)) + truths[:, None] * 4
    weights, bias = train_tone.fitted(points, truths, 2, 0.1)
    assert train_tone.hits(points, truths, weights, bias).all()
    smaller, _ = train_tone.fitted(points, truths, 2, 10.0)
    assert np.abs(smaller).sum() < np.abs(weights).sum()
