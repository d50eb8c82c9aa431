"""The embedded tone classifiers are what their recipe and card say."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import train_tone
from fakes.generation import generated

from fairgate.domain.attributes import Form
from fairgate.domain.cases import SENTIMENTS, TONES
from fairgate.domain.ports import Runtime
from fairgate.policy.definition_files import bundled_dimensions
from fairgate.relations.frames import Realised, realise
from fairgate.relations.person import NEUTRAL_TRAITS, neutral_uses
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


@pytest.mark.walk(1)
@pytest.mark.parametrize(("name", "column"), [("minilm-tone", 1), ("minilm-sentiment", 2)])
def test_the_card_gives_the_accuracy_on_the_held_out_blocks(name, column):
    labels = train_tone.HEADS[name]
    classifier = open_classifier(Runtime(), ClassifierPolicy(model=name), labels)
    found = classifier.classify([line.text for line in HELD_OUT])
    truths = [line.truth(labels) for line in HELD_OUT]
    right = np.mean([each.label == truth for each, truth in zip(found, truths, strict=True)])
    [row] = re.findall(r"\| accuracy, held-out blocks \|.*", CARD)
    assert f"{right:.3f}" == row.split("|")[column + 1].strip()
    assert right > 0.9


ANSWERS = (Path(__file__).parents[2] / "data" / "tone_answers.txt").read_text().splitlines()
"""Answers that mention a person: 30 by which the neutral traits were chosen, 20 written afterwards."""


@pytest.mark.whole
def test_a_neutral_trait_changes_the_tone_as_often_as_an_attribute_does():
    """Over every attribute value, left out and replaced, and every trait, in the same answers."""
    stating = [case.attributes for case in generated()]
    people = [uses for uses in stating if Form.GERUND not in {use.form for use in uses}]
    pairs = {"trait": [], "attribute": []}
    stated = set()
    for frame, uses in zip(ANSWERS, people, strict=False):
        source = realise(frame, uses)
        for trait in neutral_uses(frame, uses):
            pairs["trait"].append((source, realise(frame, (*uses, trait))))
        for n, use in enumerate(uses):
            others = use.dimension.others(use.value)
            value = others[len(stated) % len(others)]
            for changed in ((), (replace(use, value=value),)):
                other = realise(frame, (*uses[:n], *changed, *uses[n + 1 :]))
                if isinstance(other, Realised):
                    pairs["attribute"].append((source, other))
                    stated.update(each.name for each in (use, *changed))
    known = bundled_dimensions().values()
    assert stated >= {f"{each.id}/{value.id}" for each in known for value in each.values}
    assert len(pairs["trait"]) == len(ANSWERS) * len(NEUTRAL_TRAITS)
    texts = sorted({each.text for found in pairs.values() for pair in found for each in pair})
    classifier = open_classifier(Runtime(), ClassifierPolicy(model="minilm-tone"), TONES)
    labels = dict(zip(texts, (each.label for each in classifier.classify(texts)), strict=True))
    rates = {
        kind: np.mean([labels[one.text] != labels[other.text] for one, other in found])
        for kind, found in pairs.items()
    }
    assert abs(rates["trait"] - rates["attribute"]) < 0.01, rates
