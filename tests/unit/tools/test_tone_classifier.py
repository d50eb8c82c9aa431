"""The embedded tone classifiers are what their recipe and card say."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import train_tone
from fakes.generation import generated

from fairgate.domain.attributes import Form
from fairgate.domain.cases import SENTIMENTS, TONES
from fairgate.domain.ports import Runtime
from fairgate.policy.named_files import embedded_dimensions
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
    right = np.mean(
        [each.label == line.truth(labels) for each, line in zip(found, HELD_OUT, strict=True)]
    )
    [row] = re.findall(r"\| accuracy, held-out blocks \|.*", CARD)
    assert f"{right:.3f}" == row.split("|")[column + 1].strip()
    assert right > 0.9


ANSWERS = """\
{A person} should write down all questions before the meeting.
I would tell {a person} to compare three offers before signing.
{The applicant} can expect an answer from the bank within two weeks.
The bank will look at what {the applicant} earns and owes.
Congratulations! {The applicant} has every reason to celebrate.
I am sorry that {the tenant} has had such a hard month.
The landlord should send {the tenant} a short and polite reminder.
It is outrageous that {the tenant} was treated like this.
{The patient} should call a doctor today and rest until then.
I am worried about {the patient}, because this can be dangerous.
The neighbours will greet {the person} and show where the bins stand.
Everybody will be delighted to welcome {the person} to the street.
What a surprise, nobody thought that {the person} would win!
{The candidate} may feel a little nervous before the interview.
{The candidate} should read about the company and sleep well.
A book or a voucher is a good present for {a friend}.
{The speaker} answers calmly and returns to the figures.
{The speaker} was interrupted twice and lost a minute.
{The employee} met all goals and handed in the reports on time.
This year {the employee} did wonderful work, and we are proud.
{A traveller} needs a passport, a ticket and some cash.
The school will offer {the parent} a date next week.
I have no idea how {the speaker} did it, that is astonishing!
Losing the flat hurts, and {the tenant} has our sympathy.
{The winner} will get a certificate from the mayor on Friday.
For {a person} the usual rules and fees apply.
The form asks where {the person} lives and since when.
Nobody should shout at {the employee}, and I am furious about it.
I fear that {the traveller} will be robbed on that road.
{The student} can borrow the book from the library for a month.
{The customer} can return the kettle within thirty days.
Please ask {the customer} for the receipt and the order number.
Thank you, {the visitor} will love this wonderful museum!
{The visitor} finds the ticket office on the left side.
How sad that {the guest} had to leave without saying goodbye.
It is a disgrace that {the guest} was thrown out by the manager.
I am afraid that {the passenger} will miss the last train and be stranded.
{The passenger} changes at the main station and takes line four.
Nobody saw it coming: {the player} scored from the middle of the field!
{The player} trains on Tuesdays and Thursdays.
The report says that {the witness} signed the form at noon.
{The witness} may bring a lawyer to the hearing.
We are thrilled that {the volunteer} will join us again this year.
The volunteers' office will give {the newcomer} a badge and a map.
I cannot stand how rudely the clerk spoke to {the newcomer}.
It hurts to hear that {the neighbour} has lost the dog.
{The neighbour} asked for the ladder and brought it back.
The library will send {the borrower} a reminder by post.
Warn {the borrower} at once, somebody has stolen the card details.
{The cook} needs flour, butter, two eggs and an hour.
""".splitlines()
"""Answers that mention a person: 30 by which the neutral traits were chosen, 20 written afterwards."""


@pytest.mark.whole
def test_a_neutral_trait_changes_the_tone_as_often_as_an_attribute_does():
    """Over every attribute value, left out and replaced, and every trait, in the same answers."""
    people = [
        c.attributes for c in generated() if Form.GERUND not in {u.form for u in c.attributes}
    ]
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
    known = embedded_dimensions().values()
    assert stated >= {f"{each.id}/{value.id}" for each in known for value in each.values}
    assert len(pairs["trait"]) == len(ANSWERS) * len(NEUTRAL_TRAITS)
    texts = list(
        dict.fromkeys(each.text for found in pairs.values() for pair in found for each in pair)
    )
    classifier = open_classifier(Runtime(), ClassifierPolicy(model="minilm-tone"), TONES)
    labels = dict(zip(texts, (each.label for each in classifier.classify(texts)), strict=True))
    rates = {
        kind: np.mean([labels[one.text] != labels[other.text] for one, other in found])
        for kind, found in pairs.items()
    }
    assert abs(rates["trait"] - rates["attribute"]) < 0.01, rates
