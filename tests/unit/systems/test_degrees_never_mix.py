"""Stored degrees are those of one model, prompt and set of forms: a change of any is asked anew."""

from dataclasses import replace

import pytest

from fairgate.domain.cases import Case
from fairgate.domain.degrees import Degrees
from fairgate.domain.executions import Decoding, Execution
from fairgate.domain.ports import SILENT
from fairgate.systems.execute import LocalParts, LocalSystem

FORMS = (("bad", "bad"), ("bad", "- bad"), ("good", "good"), ("good", "- good"))


class Memory:
    """A store that is never emptied."""

    def __init__(self):
        self.texts = {}

    def get_many(self, kind, keys):
        return {key: self.texts[kind, key] for key in keys if (kind, key) in self.texts}

    def put_many(self, kind, items):
        self.texts |= {(kind, key): text for key, text in items}


class Counting:
    """Counts what it is asked; its numbers follow from its fingerprint and the prompt."""

    def __init__(self, fingerprint):
        self.fingerprint, self.asked = fingerprint, 0

    def _nats(self, prompt, count):
        place = sum(map(ord, self.fingerprint + prompt)) % 7
        return [-2.0 - 0.1 * place - n for n in range(count)]

    def generate(self, requests):
        for position, request in enumerate(requests):
            self.asked += 1
            found = None
            if request.forms:
                labels = [label for label, _ in request.forms]
                found = Degrees.summed(labels, self._nats(request.prompt, len(labels)))
            yield position, Execution(response="good", degrees=found)

    def score_options(self, requests):
        self.asked += len(requests)
        return [self._nats(each.prompt, len(each.options)) for each in requests]


def cases(**changes):
    """Make four cases with the same question about each text."""
    return [
        Case(
            key=f"s{n}", query=f"Text {n}.", suite="s", instruction="Good or bad?",
            labels=("bad", "good"), cluster=f"s{n}", retriever=None, forms=FORMS,
        )._replace(**changes)
        for n in range(4)
    ]  # fmt: skip


PARTS = LocalParts(
    retrievers={},
    generator=Counting("fp32"),
    template="{instruction} {text}",
    document_characters=100,
    decoding=Decoding(),
)
CHANGES = {
    "precision or engine": (replace(PARTS, generator=Counting("int4")), cases()),
    "template": (replace(PARTS, template="{instruction}\n{text}"), cases()),
    "forms": (PARTS, cases(forms=FORMS[:3])),
    "groups of labels": (
        PARTS,
        cases(forms=tuple(("bad", text) for _, text in FORMS[:2]) + FORMS[2:3]),
    ),
    "their order": (PARTS, cases(forms=FORMS[::-1])),
    "none": (PARTS, cases(forms=())),
    "instruction": (PARTS, cases(instruction="Bad or good?")),
}


def run(parts, asked, store):
    parts.generator.asked = 0
    found = LocalSystem(parts, store).execute(asked, SILENT)
    return {key: each.degrees for key, each in found.items()}, parts.generator.asked


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("generated", [True, False], ids=["beside answers", "alone"])
def test_a_change_is_asked_anew_and_its_degrees_are_its_own(name, generated):
    generated = generated or name == "none"  # nothing is scored without forms
    store, (parts, asked) = Memory(), CHANGES[name]
    asked = [case._replace(is_generated=generated) for case in asked]
    before = cases(is_generated=generated)
    first, count = run(PARTS, before, store)
    assert count == 4
    own, count = run(parts, asked, store)
    assert count == 4
    assert own == run(parts, asked, Memory())[0], "nothing of the first run is in it"
    # Both are there still, in whatever order they are asked for.
    assert run(PARTS, before[::-1], store) == (first, 0)
    assert run(parts, asked[::-1], store) == (own, 0)


def test_degrees_alone_and_beside_answers_are_the_same_numbers_under_names_of_their_own():
    store = Memory()
    beside, count = run(PARTS, cases(), store)
    alone, again = run(PARTS, cases(is_generated=False), store)
    assert (count, again) == (4, 4)
    assert beside == alone
