"""Blame on planted changes: the exact documents, no neutral edit, and the factor that did it."""

import json
import random

import pytest
from fakes.blamed import GATES, PlantedSides, bench, neutral_documents, world

from fairgate.domain.errors import ModelError
from fairgate.domain.ports import NOTHING
from fairgate.features.blame.causes import blame
from fairgate.features.blame.report import blame_record, render_blame
from fairgate.features.blame.sides import Factor

CORPUS, PROMPT, MODEL = (Factor.CORPUS,), (Factor.PROMPT,), (Factor.MODEL,)


def blamed(made, gates=GATES, more=None, **sides):
    return blame(
        bench(gates, **(more or {})).given(), PlantedSides(made.before, made.after, **sides)
    )


def named(found):
    return {each.id for each in found.documents.found}


@pytest.mark.whole
def test_poisoned_documents_are_found_among_200():
    worlds = range(15)
    exact = blamed_neutral = 0
    for seed in worlds:
        made = world(seed, poisoned=1 + seed % 5)
        found = blamed(made, noise=0.01 if seed % 2 else 0.0)
        assert found.restoring == [CORPUS]
        assert sum(found.documents.changed.values()) == 200
        exact += named(found) == made.poisoned
        blamed_neutral += bool(named(found) - made.poisoned)
    assert exact >= 0.9 * len(worlds)
    assert blamed_neutral == 0


@pytest.mark.whole
def test_neutral_edits_are_green():
    for seed in range(10):
        found = blamed(world(seed, poisoned=0), noise=0.01 if seed % 2 else 0.0)
        assert (found.rules, found.documents) == ((), None)


@pytest.mark.parametrize("parts", [PROMPT, MODEL])
def test_another_change_is_blamed_beside_neutral_edits(parts):
    found = blamed(world(1, poisoned=0), factors=CORPUS + PROMPT + MODEL, biased=parts)
    assert (found.restoring, found.documents) == ([parts], None)
    assert sorted(found.trials) == sorted([CORPUS, PROMPT, MODEL])
    for rule in found.rules:
        values = dict(zip(found.trials, rule.taken_back, strict=True))
        assert values == {CORPUS: rule.head, PROMPT: rule.head, MODEL: rule.head, parts: rule.base}


def test_two_that_do_the_same_are_found_together():
    """Taking back one of them changes nothing: the other is there."""
    found = blamed(world(1, poisoned=0), factors=CORPUS + PROMPT + MODEL, biased=PROMPT + MODEL)
    assert found.restoring == [MODEL + PROMPT]
    assert len(found.trials) == 6


@pytest.mark.whole
def test_a_poisoned_document_beside_a_neutral_prompt():
    made = world(3, poisoned=2)
    found = blamed(made, factors=CORPUS + PROMPT)
    assert found.restoring == [CORPUS]
    assert named(found) == made.poisoned


def test_a_removed_document_can_be_the_cause():
    """What kept a slanted document from being found is gone."""
    made = world(2, poisoned=1)
    slanted = [d for d in made.after if "slanted" in d.text]
    plain = neutral_documents(random.Random(0))
    better = [
        type(d)(id=f"{d.id}+{n}", text=d.text.replace("slanted", "checked following"), label="ok")
        for d in slanted
        for n in range(4)
    ]
    sides = PlantedSides([*better, *plain, *slanted], [*plain, *slanted])
    found = blame(bench().given(), sides)
    kinds = {each.kind for each in found.documents.found}
    assert (found.restoring, kinds) == ([CORPUS], {"removed"})
    assert 1 <= len(found.documents.found) <= 4


@pytest.mark.whole
@pytest.mark.parametrize(
    ("gate", "more"),
    [
        ({"parity": "answers", "max": 0.05}, {}),
        ({"metric": "asr/generation", "max": 0.1}, {}),
        ({"metric": "asr/generation", "max": 0.1, "evidence": "significant"}, {}),
        ({"parity": "answers", "max": 0.1}, {"repeats": 2}),
    ],
)
def test_rules_of_every_sort(gate, more):
    made = world(2, poisoned=2)
    found = blamed(made, (gate,), more)
    if "evidence" in gate:  # one of two is enough for chance to explain the rest
        assert named(found)
        assert named(found) <= made.poisoned
    else:
        assert named(found) == made.poisoned
    assert found.rules[0].taken_back == [found.rules[0].base]


class Unreadable:
    """A system none of whose answers can be read."""

    def __init__(self, inner):
        self._inner, self.vectors = inner, inner.vectors

    def execute(self, cases, progress, earlier=NOTHING):
        found = self._inner.execute(cases, progress, earlier)
        return {key: each._replace(response="I cannot say.") for key, each in found.items()}


def test_what_answers_nothing_restores_nothing():
    """HEAD's prompt with BASE's documents gives nothing that can be read."""
    made = world(2, poisoned=2)
    sides = PlantedSides(made.before, made.after, factors=CORPUS + PROMPT)
    system = sides.system
    sides.system = lambda new: Unreadable(system(new)) if new == {*PROMPT} else system(new)
    found = blame(bench().given(), sides)
    assert found.restoring == [PROMPT + CORPUS]
    values = dict(zip(found.trials, found.rules[0].taken_back, strict=True))
    assert values[CORPUS] is None
    json.dumps(blame_record(found), allow_nan=False)
    assert "– with BASE's corpus" in render_blame(found)


def test_rules_that_fail_at_base_too_are_nobodys():
    gates = ({"metric": "asr/generation", "max": 0.05},)
    found = blamed(world(6, poisoned=0), gates, noise=0.3)
    assert found.rules == ()
    assert any("fails at BASE too" in note for note in found.notes)


class Refusing(PlantedSides):
    """HEAD's prompt cannot be put to BASE's model."""

    refused = frozenset(PROMPT + CORPUS)

    def system(self, new):
        if new == self.refused:
            raise ModelError("the model's chat template takes no system message")
        return super().system(new)


@pytest.mark.whole
def test_parts_that_need_each_other_leave_the_rest():
    made = world(1, poisoned=2)
    found = blame(
        bench().given(), Refusing(made.before, made.after, factors=CORPUS + PROMPT + MODEL)
    )
    assert (found.restoring, len(found.trials)) == ([CORPUS], 2)
    text = render_blame(found)
    assert "HEAD with BASE's model cannot be run: the model's chat template" in text


def test_a_side_that_cannot_be_run_is_an_error():
    made = world(1, poisoned=1)
    sides = Refusing(made.before, made.after)
    sides.refused = frozenset(CORPUS)
    with pytest.raises(ModelError, match="takes no system message"):
        blame(bench().given(), sides)
