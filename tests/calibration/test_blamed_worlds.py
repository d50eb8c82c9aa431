"""Blame on planted changes: the exact documents, no neutral edit, and the factor that did it."""

import json
import random

import pytest
from fakes.blamed import GATES, Memory, PlantedSides, bench, neutral_documents, world

from fairgate.domain.errors import ModelError
from fairgate.domain.ports import NOTHING
from fairgate.features.blame import blame_record, render_blame
from fairgate.features.blame.factors import Known, blame
from fairgate.features.blame.sides import Factor


def blamed(made, gates=GATES, more=None, **sides):
    return blame(
        bench(gates, **(more or {})).given(), PlantedSides(made.before, made.after, **sides)
    )


def named(found):
    return {each.id for each in found.documents.found}


@pytest.mark.parametrize(
    "worlds", [range(2, 3), pytest.param(range(15), marks=pytest.mark.whole)], ids=len
)
def test_poisoned_documents_are_found_among_200(worlds):
    exact = blamed_neutral = 0
    for seed in worlds:
        made = world(seed, poisoned=1 + seed % 5)
        found = blamed(made, noise=0.01 if seed % 2 else 0.0)
        assert found.known is Known.EXPLAINED
        assert found.documents.minimal
        assert sum(found.documents.changed.values()) == 200
        exact += named(found) == made.poisoned
        blamed_neutral += bool(named(found) - made.poisoned)
        (move,) = found.rules[0].moves
        assert (move.factor, move.share) == (Factor.CORPUS, 1.0)
    assert exact >= 0.9 * len(worlds)
    assert blamed_neutral == 0


@pytest.mark.whole
def test_neutral_edits_are_green():
    for seed in range(10):
        found = blamed(world(seed, poisoned=0), noise=0.01 if seed % 2 else 0.0)
        assert found.known is Known.GREEN


@pytest.mark.parametrize("factor", [Factor.PROMPT, Factor.MODEL])
def test_another_change_is_blamed_beside_neutral_edits(factor):
    factors = (Factor.CORPUS, Factor.PROMPT, Factor.MODEL)
    found = blamed(world(1, poisoned=0), factors=factors, biased=(factor,))
    assert found.known is Known.EXPLAINED
    assert (found.restoring, found.combinations) == ([factor], 8)
    shares = {move.factor: move.share for rule in found.rules for move in rule.moves}
    assert shares == {Factor.MODEL: 0.0, Factor.PROMPT: 0.0, Factor.CORPUS: 0.0, factor: 1.0}
    assert found.documents.found == ()
    assert "alone does not restore" in found.documents.why_not


def test_a_poisoned_document_beside_a_neutral_prompt():
    made = world(3, poisoned=2)
    found = blamed(made, factors=(Factor.CORPUS, Factor.PROMPT))
    assert found.restoring == [Factor.CORPUS]
    assert named(found) == made.poisoned


def test_a_removed_document_can_be_the_cause():
    """What kept a slanted document from being shown is gone."""
    made = world(2, poisoned=1)
    slanted = [d for d in made.after if "slanted" in d.text]
    plain = neutral_documents(random.Random(0))
    better = [
        type(d)(id=f"{d.id}+{n}", text=d.text.replace("slanted", "checked"), label="ok")
        for d in slanted
        for n in range(4)
    ]
    sides = PlantedSides([*better, *plain, *slanted], [*plain, *slanted])
    found = blame(bench().given(), sides)
    kinds = {each.kind for each in found.documents.found}
    assert (found.restoring, kinds) == ([Factor.CORPUS], {"removed"})
    assert 1 <= len(found.documents.found) <= 4


@pytest.mark.whole
def test_the_same_store_is_asked_nothing_again_and_a_budget_that_ends_is_no_claim():
    made = world(4, poisoned=3)
    store = Memory()
    whole = blamed(made, store=store)
    assert whole.asked > 100
    again = blamed(made, store=store, most=0)
    assert (again.asked, again.documents) == (0, whole.documents)

    none = blamed(made, most=0)
    assert (none.known, none.rules, none.documents) == (Known.OUT_OF_BUDGET, (), None)

    store, asked, runs = Memory(), 0, 0
    while True:
        part = blamed(made, store=store, most=90)
        asked, runs = asked + part.asked, runs + 1
        if part.documents is not None and part.documents.minimal:
            break
        assert part.asked == 90
        if part.documents is not None:
            assert "budget" in part.documents.why_not
            assert made.poisoned <= named(part)
    assert (part.documents, asked) == (whole.documents, whole.asked)
    assert runs > 3


@pytest.mark.walk(1)
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
    assert named(found) == made.poisoned
    (move,) = found.rules[0].moves
    assert move.change == pytest.approx(found.rules[0].head - found.rules[0].base)


@pytest.mark.whole
def test_five_factors_are_changed_alone_and_taken_back_alone():
    made = world(2, poisoned=2)
    factors = set(Factor) - {Factor.DECODING}
    found = blamed(made, factors=factors)
    assert (found.combinations, found.restoring) == (12, [Factor.CORPUS])
    assert named(found) == made.poisoned
    for rule in found.rules:
        moved = {move.factor: move.change for move in rule.moves}
        assert moved == {**dict.fromkeys(factors, 0.0), Factor.CORPUS: rule.head - rule.base}
        assert rule.residual == 0.0


class Unreadable:
    """A system none of whose answers can be read."""

    def __init__(self, inner):
        self._inner, self.vectors = inner, inner.vectors

    def execute(self, cases, progress, earlier=NOTHING):
        found = self._inner.execute(cases, progress, earlier)
        return {key: each._replace(response="I cannot say.") for key, each in found.items()}


def test_a_combination_that_answers_nothing_divides_nothing():
    """HEAD's prompt with BASE's documents gives nothing that can be read."""
    made = world(2, poisoned=2)
    sides = PlantedSides(made.before, made.after, factors=(Factor.CORPUS, Factor.PROMPT))
    system = sides.system
    sides.system = lambda new: Unreadable(system(new)) if new == {Factor.PROMPT} else system(new)
    found = blame(bench().given(), sides)
    assert {(rule.base, rule.head, tuple(rule.moves)) for rule in found.rules} == {(None, None, ())}
    assert found.rules[0].left_out
    assert found.restoring == []
    json.dumps(blame_record(found), allow_nan=False)
    assert "others are not decided everywhere" in render_blame(found)


def test_rules_that_fail_at_base_too_are_nobodys():
    gates = ({"metric": "asr/generation", "max": 0.05},)
    found = blamed(world(6, poisoned=0), gates, noise=0.3)
    assert found.known is Known.GREEN
    assert any("fails at BASE too" in note for note in found.notes)


class Refusing(PlantedSides):
    """HEAD's prompt cannot be put to BASE's model."""

    refused = frozenset({Factor.PROMPT})

    def system(self, new):
        if new == self.refused:
            raise ModelError("the model's chat template takes no system message")
        return super().system(new)


def test_parts_that_need_each_other_end_with_what_is_known():
    """What was asked is not lost, and nobody is blamed."""
    made = world(1, poisoned=2)
    factors = (Factor.CORPUS, Factor.PROMPT, Factor.MODEL)
    found = blame(bench().given(), Refusing(made.before, made.after, factors=factors))
    assert found.known is Known.NOT_COMBINABLE
    assert found.failing
    assert not found.rules
    text = render_blame(found)
    assert "a combination of BASE and HEAD cannot be run: the model's chat template" in text
    assert "is not known: parts of it need each other" in text


def test_a_side_that_cannot_be_run_is_an_error():
    made = world(1, poisoned=1)
    sides = Refusing(made.before, made.after)
    sides.refused = frozenset({Factor.CORPUS})
    with pytest.raises(ModelError, match="takes no system message"):
        blame(bench().given(), sides)
